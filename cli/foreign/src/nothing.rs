//! For tests: a memory that cannot be read anywhere.

use hakmem_heap::error::Error;
use hakmem_heap::memory::Memory;
use std::ops::Range;

pub struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        Vec::new()
    }

    fn explain(&self, _: u64) -> Error {
        Error::NotHakmem
    }
}
