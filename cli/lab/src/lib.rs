//! What measuring an allocator takes, apart from any command line.

pub mod error;
pub mod places;
