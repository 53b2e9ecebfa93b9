//! Recorded allocations: written, read, put in order, replayed.

pub mod analysis;
pub mod channel;
mod code_files;
pub mod codec;
pub mod collector;
mod debug_files;
mod debuginfod;
pub mod event;
pub mod export;
pub mod format;
mod functions;
mod futex;
pub mod histogram;
mod kept_files;
pub mod order;
mod outer_pid;
pub mod own_malloc;
pub mod pages;
pub mod plan;
pub mod reader;
pub mod record;
pub mod replay;
pub mod replayer;
mod slots;
pub mod symbols;
mod words;
pub mod writer;
