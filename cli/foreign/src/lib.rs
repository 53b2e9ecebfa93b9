//! Heaps of other allocators, read from outside: of a process that does not use hakmem, or of its core dump. Reading writes
//! nothing, stops nothing and needs no symbols.
//!
//! Memory may change during the read, and may be damaged: every walk is bounded, what contradicts its neighbours counts as
//! unclear, and absent pages are not touched.

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
