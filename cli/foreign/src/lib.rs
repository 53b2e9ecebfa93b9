//! Heaps of other allocators, read from outside: of a process that has never heard of hakmem, or of the core dump of
//! one. Nothing is written, nothing has to stand still, and no symbols are needed.
//!
//! What is read may change meanwhile, and may be damaged: every walk is bounded, what does not agree with its
//! neighbours is counted as unclear, and nothing that is not resident is touched.

pub mod figures;
pub mod glibc;
pub mod heaps;
pub mod jemalloc;
pub mod judge;
pub mod ledger;
pub mod map;
pub mod mimalloc;
#[cfg(test)]
mod nothing;
pub mod pieces;
mod present;
pub mod sizes;
pub mod space;
mod window;
