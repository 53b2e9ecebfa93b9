//! The memory that a heap is read from.

use crate::error::Error;
use std::ops::Range;

/// One place in a batch of reads.
pub struct Wanted<'a> {
    pub address: u64,
    pub target: &'a mut [u8],
    pub is_read: bool,
}

impl<'a> Wanted<'a> {
    pub fn new(address: u64, target: &'a mut [u8]) -> Wanted<'a> {
        Wanted {
            address,
            target,
            is_read: false,
        }
    }
}

/// The mapping of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    pub range: Range<u64>,
    /// The file offset at which it begins.
    pub offset: u64,
    pub path: Vec<u8>,
}

pub trait Memory {
    /// Fills `target` from `address`; false if not all of it can be read.
    fn read(&self, address: u64, target: &mut [u8]) -> bool;

    /// Reads all places, each by itself.
    fn read_many(&self, wanted: &mut [Wanted]) {
        for one in wanted {
            one.is_read = self.read(one.address, one.target);
        }
    }

    /// Private mappings of files that may have been written to: they contain the data of programs and libraries.
    fn data_areas(&self) -> Vec<Range<u64>>;

    /// Why `address`, which should be mapped, cannot be read.
    fn explain(&self, address: u64) -> Error;

    /// Why nothing can be read any more: for example, the process has ended.
    fn lost(&self) -> Option<Error> {
        None
    }

    fn read_u64(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)
            .then(|| u64::from_le_bytes(bytes))
    }

    fn read_vec(&self, address: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        let mut target = vec![0; bytes];
        if self.read(address, &mut target) {
            Ok(target)
        } else {
            Err(self.explain(address))
        }
    }
}
