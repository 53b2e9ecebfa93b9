//! Recorded allocations: written, read, put in order, replayed.

pub mod analysis;
pub mod channel;
pub mod codec;
pub mod collector;
pub mod event;
pub mod export;
pub mod format;
pub mod order;
pub mod reader;
pub mod record;
pub mod symbols;
pub mod writer;
