//! Judges a run's output: is it right, and which numbers does it contain?

use crate::clients::{run_unmeasured, until_stopped};
use crate::elf;
use crate::interrupt;
use crate::launch::{End, Run};
use crate::meter::Stop;
use crate::trust::file_name;
use crate::usage;
use crate::workload::{Judge, Workload};
use indexmap::IndexMap;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The run's output as one text to compare, and the numbers that it reports.
pub fn judge(
    workload: &Workload,
    run: &Run,
    mut output: File,
    server_said: Option<&[u8]>,
) -> Result<(String, IndexMap<String, f64>), Stop> {
    let explain =
        |error: std::io::Error| crate::failed!("cannot read what the program printed: {error}");
    output.rewind().map_err(explain)?;
    if let Judge::Answer(expected) = &workload.judge {
        let mut text = String::new();
        output.read_to_string(&mut text).map_err(explain)?;
        let answer = answer_in(&text);
        if answer != *expected {
            return Err(Stop::Refused(format!(
                "wrong answer: {answer} instead of {expected}"
            )));
        }
        return Ok((answer, numbers_in(&text)));
    }
    let mut digest = Sha256::new();
    if workload.judge == Judge::Reference {
        if workload.server.is_none() {
            // A server's own log contains times.
            digest.update(filtered(workload, output)?);
        }
        for path in &workload.outputs {
            let content = fs::read(path)
                .map_err(|_| Stop::Refused(format!("{} was not written", file_name(path))))?;
            digest.update(content);
        }
        digest.update(server_said.unwrap_or_default());
        digest.update(run_unmeasured(workload, &workload.verify, "verification")?);
    }
    let content = &elf::hexadecimal(&digest.finalize())[..16];
    let answer = match run.end {
        End::Exited(code) if code != 0 => format!("{content}, exit code {code}"),
        _ => content.to_string(),
    };
    Ok((answer, IndexMap::new()))
}

fn filtered(workload: &Workload, mut output: File) -> Result<Vec<u8>, Stop> {
    let explain =
        |error: std::io::Error| crate::failed!("cannot read what the program printed: {error}");
    let Some(filter) = &workload.filter else {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).map_err(explain)?;
        return Ok(bytes);
    };
    let done = Command::new("/bin/sh")
        .arg("-c")
        .arg(filter)
        .stdin(output)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .and_then(|child| until_stopped(child, workload.timeout))
        .map_err(explain)?;
    if interrupt::requested() {
        return Err(Stop::Interrupted);
    }
    let Some(done) = done else {
        let limit = workload.timeout.unwrap_or_default().as_secs();
        return Err(Stop::Error(usage!(
            "the filter '{filter}' had not finished after {limit} s"
        )));
    };
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        let said = match text.trim().lines().next_back() {
            Some(last) => format!(": {last}"),
            None if done.stdout.is_empty() && done.status.code() == Some(1) => {
                ", and left nothing; if it may, as 'grep' may that finds no line, end it with '|| true'"
                    .into()
            }
            None => ", and did not say why".into(),
        };
        return Err(Stop::Error(usage!(
            "the filter '{filter}' failed ({}){said}",
            done.status
        )));
    }
    Ok(done.stdout)
}

fn answer_in(text: &str) -> String {
    text.lines()
        .find_map(|line| line.strip_prefix("answer: "))
        .map_or_else(|| "none".into(), |answer| answer.trim().to_string())
}

/// Parses the lines 'name: number' and 'name   number ns' that our own workloads print.
fn numbers_in(text: &str) -> IndexMap<String, f64> {
    let mut numbers = IndexMap::new();
    for line in text.lines() {
        let (line, unit) = match line.trim().strip_suffix(" ns") {
            Some(rest) => (rest, " ns"),
            None => (line.trim(), ""),
        };
        let Some((name, number)) = line.rsplit_once([':', ' ']) else {
            continue;
        };
        let name = name.trim_end_matches([':', ' ']);
        if let (Ok(number), false) = (number.parse(), name.is_empty() || name == "answer") {
            numbers.insert(format!("{name}{unit}"), number);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_that_a_workload_prints_are_read() {
        let text =
            "answer: 12\nops/s: 5.5e6\nmalloc p99.9    1234 ns\nnothing here\nseconds: 0.25\n";
        let numbers = numbers_in(text);
        let found: Vec<(&str, f64)> = numbers
            .iter()
            .map(|(name, number)| (name.as_str(), *number))
            .collect();
        assert_eq!(
            found,
            [
                ("ops/s", 5.5e6),
                ("malloc p99.9 ns", 1234.0),
                ("seconds", 0.25)
            ]
        );
    }
}
