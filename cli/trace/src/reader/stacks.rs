//! What a trace has on call stacks: their frames, the files of these, and names.

use super::Reader;
use crate::codec::get;
use crate::format::{Modules, Named, Tag};
use hakmem_heap::code::{self, Code};
use hakmem_lab::error::Result;

impl Reader {
    /// The call stacks of a process: pairs of a number and places, the innermost first.
    pub fn stacks(&self, process: u32) -> Result<Vec<(u32, Vec<u64>)>> {
        let mut stacks = Vec::new();
        for &offset in &self.stacks {
            let contents = self.record(offset, Tag::Stacks)?;
            parse_stacks(&contents, process, self.version >= 3, &mut stacks)
                .ok_or_else(|| self.damaged(offset, "unreadable stacks"))?;
        }
        Ok(stacks)
    }

    /// What a process had mapped, the newest last.
    pub fn code(&self, process: u32) -> Result<Vec<Code>> {
        let mut code = Vec::new();
        for &offset in &self.modules {
            let contents = self.record(offset, Tag::Modules)?;
            let record: Modules = self.json(offset, &contents)?;
            if record.process == process {
                code.extend(record.modules.into_iter().map(Code::from));
            }
        }
        Ok(code)
    }

    /// Names that were found at the end of the recording, by place.
    pub fn names(&self, process: u32) -> Result<Vec<(u64, Vec<String>)>> {
        let mut names = Vec::new();
        for &offset in &self.names {
            let contents = self.record(offset, Tag::Names)?;
            let record: Named = self.json(offset, &contents)?;
            if record.process == process {
                names.extend(record.names);
            }
        }
        Ok(names)
    }
}

fn parse_stacks(
    mut contents: &[u8],
    process: u32,
    has_places: bool,
    stacks: &mut Vec<(u32, Vec<u64>)>,
) -> Option<()> {
    if get(&mut contents)? != u64::from(process) {
        return Some(());
    }
    for _ in 0..get(&mut contents)? {
        let number = get(&mut contents)?.try_into().ok()?;
        let count = get(&mut contents)?;
        let mut frame = || {
            let number = if has_places { get(&mut contents)? } else { 0 };
            Some(number << code::PLACE_LOG2 | code::address_of(get(&mut contents)?))
        };
        let frames: Option<Vec<u64>> = (0..count.min(255)).map(|_| frame()).collect();
        stacks.push((number, frames?));
    }
    Some(())
}
