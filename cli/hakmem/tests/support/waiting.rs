//! A program that prints "ready" and waits for the end of its input.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The source of such a program that does nothing else.
pub const WAITS: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

/// Dropping this value ends the program.
pub struct Waiting {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Waiting {
    pub fn start(command: &mut Command) -> Waiting {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut waiting = Waiting { child, output };
        assert_eq!(waiting.next_line(), "ready\n");
        waiting
    }

    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Tells it something, and waits for the answer.
    pub fn answers(&mut self, what: &str, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(what.as_bytes()).unwrap();
        assert_eq!(self.next_line().trim_end(), line);
    }

    pub fn tell(&mut self, what: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(what.as_bytes()).unwrap();
    }

    /// Waits for a byte that one of its threads writes when it is ready.
    pub fn wait_for_byte(&mut self) {
        self.output.read_exact(&mut [0]).unwrap();
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub fn end(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}
