//! Prints results. If standard output accepts nothing more, as on a full disk, the command continues, reports it at its end,
//! and saves the result in a file. Errors of standard error are ignored.

use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::{failed, inherited, whole_file};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fmt::Arguments;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

/// Replaces the standard library's macro, which ends the command on an error.
macro_rules! print {
    ($($part:tt)*) => { $crate::say::out(format_args!($($part)*)) };
}

macro_rules! println {
    () => { $crate::say::out(format_args!("\n")) };
    ($($part:tt)*) => { $crate::say::out(format_args!("{}\n", format_args!($($part)*))) };
}

macro_rules! eprint {
    ($($part:tt)*) => { $crate::say::aside(format_args!($($part)*)) };
}

macro_rules! eprintln {
    ($($part:tt)*) => { $crate::say::aside(format_args!("{}\n", format_args!($($part)*))) };
}

struct Output {
    /// The output cannot be made a second time.
    is_precious: bool,
    /// Why nothing more can be written.
    broken: Option<Errno>,
    rest: Vec<u8>,
}

static OUTPUT: Mutex<Output> = Mutex::new(Output {
    is_precious: false,
    broken: None,
    rest: Vec::new(),
});

fn with<T>(work: impl FnOnce(&mut Output) -> T) -> T {
    work(&mut OUTPUT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on, printed text is a result of work and must not be lost.
pub fn keep() {
    with(|output| output.is_precious = true);
}

pub fn out(text: Arguments) {
    let text = text.to_string();
    with(|output| {
        if output.broken.is_none() {
            output.broken = write_all(text.as_bytes()).err();
        }
        if output.broken.is_some() && output.is_precious {
            output.rest.extend(text.bytes());
        }
    });
}

pub fn aside(text: Arguments) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// Can nothing more be printed? A command that otherwise never ends should end then.
pub fn is_broken() -> bool {
    with(|output| output.broken.is_some())
}

/// At a command's end: fails if not everything was printed.
pub fn finish() -> Result<()> {
    with(|output| {
        let Some(error) = output.broken else {
            return Ok(());
        };
        let error = io::Error::from(error);
        let rest = std::mem::take(&mut output.rest);
        let kept = (!rest.is_empty())
            .then(|| whole_file::keep(&rest))
            .flatten();
        Err(match kept {
            Some(kept) => failed!(
                "cannot write to standard output: {error}; the result is kept in {}",
                kept.shown()
            ),
            None => failed!("cannot write to standard output: {error}"),
        })
    })
}

fn write_all(mut text: &[u8]) -> std::result::Result<(), Errno> {
    if inherited::is_closed(nix::libc::STDOUT_FILENO) {
        return Err(Errno::EBADF);
    }
    let out = io::stdout();
    while !text.is_empty() {
        match nix::unistd::write(out.as_fd(), text) {
            Ok(count) => text = &text[count..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                // The stream was made non-blocking.
                let mut wanted = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
                poll(&mut wanted, PollTimeout::NONE)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
