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

/// Reads so many bytes at each of these addresses; None: they cannot be read.
pub fn read_all(
    memory: &dyn Memory,
    places: impl Iterator<Item = (u64, usize)>,
) -> Vec<Option<Vec<u8>>> {
    let mut read: Vec<(u64, Vec<u8>)> = places
        .map(|(address, bytes)| (address, vec![0; bytes]))
        .collect();
    let mut wanted: Vec<Wanted> = read
        .iter_mut()
        .map(|(address, target)| Wanted::new(*address, target))
        .collect();
    memory.read_many(&mut wanted);
    let is_read: Vec<bool> = wanted.iter().map(|one| one.is_read).collect();
    let read = read.into_iter().zip(is_read);
    read.map(|((_, bytes), is_read)| is_read.then_some(bytes))
        .collect()
}

/// Reads an array of addresses, which are numbered from 0; without those that are 0.
pub fn read_addresses(
    memory: &dyn Memory,
    start: u64,
    count: usize,
) -> Result<Vec<(u64, u64)>, Error> {
    let words = memory.read_vec(start, count * 8)?;
    let words = words
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    Ok((0..)
        .zip(words)
        .filter(|(_, address)| *address != 0)
        .collect())
}
