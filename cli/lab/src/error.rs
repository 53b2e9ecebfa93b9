//! The errors of all crates here: one line that says what, where, and what to do.

use std::fmt;

/// Why a command ends without a result.
#[derive(Debug)]
pub enum Error {
    /// The user's request is impossible or makes no sense: exit code 2.
    Usage(String),
    /// The request could not be carried out: exit code 1.
    Failed(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Usage(line) | Error::Failed(line) => formatter.write_str(line),
        }
    }
}

impl std::error::Error for Error {}

/// A usage error with a formatted line: `return Err(usage!("no allocator '{name}'"))`.
#[macro_export]
macro_rules! usage {
    ($($part:tt)*) => { $crate::error::Error::Usage(format!($($part)*)) };
}

/// A failure with a formatted line.
#[macro_export]
macro_rules! failed {
    ($($part:tt)*) => { $crate::error::Error::Failed(format!($($part)*)) };
}
