//! hakmem's heap, read from outside: of a process that runs, hangs or is stopped, or from a core dump. The process need not
//! cooperate, and reading writes nothing.
//!
//! Everything is found by name through the control block (`include/hakmem/control.h`), so this crate may be older or newer than
//! the library that it reads. Memory may change during the read, and may be damaged: every walk is bounded, and every figure
//! comes with its accuracy.

pub mod clock;
pub mod code;
pub mod code_files;
pub mod cold;
pub mod control;
pub mod core;
pub mod decisions;
pub mod effects;
pub mod error;
pub mod failures;
mod fields;
pub mod figures;
pub mod heap;
pub mod idle;
pub mod input;
pub mod judge;
pub mod ledger;
pub mod live;
pub mod memory;
pub mod metrics;
pub mod options;
pub mod perf_map;
pub mod profile;
pub mod python;
pub mod referenced;
pub mod resident;
pub mod runs;
mod scan;
pub mod shown;
pub mod snapshot;
pub mod timings;
mod walk;
mod zero_page;
