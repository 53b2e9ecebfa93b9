//! The events of a chunk, and where they end: if some threads' events did not fit, all end at the time of the first that is
//! missing. What others did later would look like frees that never happened, or like frees of unknown blocks.

use super::{Chunk, Reader};
use crate::codec::{ChunkHead, Decoder};
use crate::event::Event;
use crate::format::Tag;
use hakmem_lab::error::Result;
use hakmem_lab::failed;

impl Reader {
    /// Appends a chunk's events.
    pub fn read_chunk(
        &self,
        chunk: &Chunk,
        decoder: &mut Decoder,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        let start = events.len();
        let contents = self.record(chunk.offset, Tag::Events)?;
        decoder
            .unpack(&contents, events)
            .filter(|head| is_part(&chunk.head, head))
            .ok_or_else(|| self.damaged(chunk.offset, "an unreadable chunk"))?;
        events.truncate(start + chunk.head.count as usize);
        Ok(())
    }

    /// Takes the events off that are too late.
    pub(super) fn cut(&mut self) -> Result<()> {
        let Some(end) = self.ending.as_ref().and_then(|ending| ending.cut_at) else {
            return Ok(());
        };
        let mut decoder = Decoder::new().map_err(|error| failed!("cannot decompress: {error}"))?;
        let mut events = Vec::new();
        let mut chunks = std::mem::take(&mut self.chunks);
        chunks.retain(|chunk| chunk.head.first < end);
        for chunk in chunks.iter_mut().filter(|chunk| chunk.head.last >= end) {
            events.clear();
            self.read_chunk(chunk, &mut decoder, &mut events)?;
            let count = events.partition_point(|event| event.time < end);
            chunk.head.count = count as u32;
            chunk.head.last = events[count - 1].time;
        }
        self.chunks = chunks;
        Ok(())
    }
}

fn is_part(part: &ChunkHead, whole: &ChunkHead) -> bool {
    let same = |head: &ChunkHead| (head.process, head.thread, head.first);
    same(part) == same(whole) && part.count <= whole.count && part.last <= whole.last
}
