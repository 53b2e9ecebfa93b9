//! Takes the events of recorded programs from the channel, and writes them to a trace.

use crate::channel::{self, Channel, TIME_SHIFT, Visitor, clock};
use crate::codec::{CHUNK_EVENTS, Encoder, Pen};
use crate::event::Event;
use crate::format::{Module, Modules, Named, Process, Reason, Tag};
use crate::kept_files::KeptFiles;
use crate::outer_pid::outer_pid;
use crate::witness::Witness;
use crate::words::News;
use crate::writer::{Writer, Written};
use hakmem_heap::code::{self, Code, Identity, Whose};
use hakmem_heap::live::LiveProcess;
use hakmem_heap::shown::{ShownPath, shown};
use hakmem_lab::error::Result;
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Events are written in large batches, or after this time. A `hakmem record` that is killed may lose this much.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// At a limit, or on a full disk, all threads end where the first event is missing. So that it is not long ago, all rings are
/// emptied after each such part of the room.
const PARTS_OF_ROOM: u64 = 16;
const LOOK_FOR_DEAD_EVERY: Duration = Duration::from_millis(100);
const SLEEP: Duration = Duration::from_millis(10);

// The events of a ring fit into one chunk.
const _: () = assert!(channel::RING_WORDS <= CHUNK_EVENTS);

/// A program that has introduced itself.
struct Known {
    /// The number that it has in its own PID namespace.
    id: i32,
    pid: Option<i32>,
    number: u32,
    /// Its mappings at the last look; needed if its C library does not tell which file an address is in.
    mapped: Vec<Code>,
}

pub struct Collector<'a> {
    channel: &'a Channel,
    writer: Writer,
    known: HashMap<usize, Known>, // by entry
    flushed: Instant,
    flushed_length: u64,
    looked: Instant,
    /// Events of one thread's ring that are not written yet: the larger a chunk, the cheaper an event.
    encoder: Encoder,
    /// By thread, for rings that several threads share.
    encoders: HashMap<u32, Encoder>,
    news: News,
    files: KeptFiles,
    /// The time of the last event of each ring.
    times: Vec<u64>,
    pub processes: u64,
    pub witness: Witness,
    /// Why recording has stopped.
    pub stopped: Option<Reason>,
}

impl Visitor for Pen<'_> {
    #[inline(always)]
    fn visit(&mut self, _: u32, event: Event) {
        self.push(event);
    }
}

/// The time now, in the trace's units.
pub fn now() -> u64 {
    clock::ticks() >> TIME_SHIFT
}

impl<'a> Collector<'a> {
    pub fn new(channel: &'a Channel, writer: Writer) -> Collector<'a> {
        Collector {
            channel,
            writer,
            known: HashMap::new(),
            flushed: Instant::now(),
            flushed_length: 0,
            looked: Instant::now(),
            encoder: Encoder::new(0, 0),
            encoders: HashMap::new(),
            news: News::default(),
            files: KeptFiles::default(),
            times: vec![0; channel.rings().len()],
            processes: 0,
            witness: Witness::new(channel),
            stopped: None,
        }
    }

    /// First call `write_chunk`: events that are not written yet are lost.
    pub fn into_writer(self) -> Writer {
        self.writer
    }

    /// Does all the work that is there now; sleeps if there was none.
    pub fn round(&mut self) -> Result<()> {
        let mut has_worked = self.greet()?;
        self.witness.look();
        let part = self.writer.room() / PARTS_OF_ROOM;
        let is_late = self.flushed.elapsed() >= FLUSH_AFTER
            || self.writer.length() >= self.flushed_length.saturating_add(part);
        if self.looked.elapsed() >= LOOK_FOR_DEAD_EVERY {
            self.bury()?;
            self.looked = Instant::now();
        }
        for ring in 0..self.channel.rings().len() {
            // The order matters: what a thread wrote before it closed its ring is then pending.
            let is_closed = self.is_closed(ring);
            let pending = self.channel.pending(ring);
            if pending as usize >= channel::RING_WORDS / 2 || pending > 0 && (is_late || is_closed)
            {
                self.drain(ring)?;
                has_worked = true;
            }
            if is_closed {
                self.channel.release(ring);
            }
        }
        if is_late {
            self.write_chunk()?;
            self.flushed = Instant::now();
            self.flushed_length = self.writer.length();
        }
        if !has_worked {
            self.channel.sleep(SLEEP);
        }
        Ok(())
    }

    fn is_closed(&self, ring: usize) -> bool {
        let state = &self.channel.rings()[ring].state;
        state.load(Ordering::Acquire) == channel::RING_CLOSED // pairs with: end_thread in recorder.c
    }

    /// Takes everything that is left after all programs have ended.
    pub fn last_round(&mut self) -> Result<()> {
        self.greet()?;
        for ring in 0..self.channel.rings().len() {
            if self.channel.pending(ring) > 0 {
                self.drain(ring)?;
            }
        }
        Ok(())
    }

    /// Stops recording; the programs continue. Their threads see it one after the other, so what they do from now on is left out.
    pub fn stop(&mut self, reason: Reason) {
        self.stopped.get_or_insert(reason);
        self.writer.cut(now());
        self.channel.head().is_stopped.store(1, Ordering::Relaxed);
    }

    fn note(&mut self, written: Written) {
        match written {
            Written::Yes => {}
            Written::AtLimit => self.stop(Reason::Limit),
            Written::DiskFull => self.stop(Reason::DiskFull),
        }
    }

    /// Writes new programs to the trace.
    fn greet(&mut self) -> Result<bool> {
        let channel = self.channel;
        let mut has_worked = false;
        for (entry, process) in channel.processes().iter().enumerate() {
            if process.state.load(Ordering::Acquire) != channel::PROCESS_LIVE {
                continue;
            }
            has_worked = true;
            let pid = self.pid_of(process.id);
            self.bury_pid(pid)?; // the process has executed another program
            let id = pid.unwrap_or(process.id);
            self.witness.introduce(id, process.program());
            let command = pid.map(|pid| fs::read(format!("/proc/{pid}/cmdline")));
            let command = command.and_then(|command| command.ok()).unwrap_or_default();
            let command = command
                .split(|&byte| byte == 0)
                .filter(|part| !part.is_empty());
            let written = self.writer.json(
                Tag::Process,
                &Process {
                    process: process.number,
                    parent: process.parent,
                    id,
                    program: process.program().shown(),
                    command: command.map(shown).collect(),
                    start: process.start >> TIME_SHIFT,
                },
            )?;
            self.note(written);
            self.processes += 1;
            let known = Known {
                id: process.id,
                pid,
                number: process.number,
                mapped: Vec::new(),
            };
            self.known.insert(entry, known);
            if channel.with_stacks() {
                // The process waits for us here, so its files are still there.
                let codes = pid.map_or(Vec::new(), mapped);
                codes.iter().for_each(|code| self.files.keep(pid, code));
                pid.into_iter()
                    .for_each(|pid| self.files.begin(process.number, pid));
            }
            process
                .state
                .store(channel::PROCESS_KNOWN, Ordering::Release);
            channel::futex_wake(&process.state);
        }
        Ok(has_worked)
    }

    /// Writes what ended processes have left behind, and frees their entries.
    fn bury(&mut self) -> Result<()> {
        let dead: Vec<usize> = self
            .known
            .iter()
            .filter(|(_, known)| !is_alive(known.pid.unwrap_or(known.id)))
            .map(|(&entry, _)| entry)
            .collect();
        dead.into_iter()
            .try_for_each(|entry| self.bury_entry(entry))
    }

    /// Our number for a process that calls itself `id`.
    fn pid_of(&self, id: i32) -> Option<i32> {
        outer_pid(id, self.channel.inode())
    }

    fn bury_pid(&mut self, pid: Option<i32>) -> Result<()> {
        let is_it = |known: &Known| pid.is_some() && known.pid == pid;
        match self.known.iter().find(|(_, known)| is_it(known)) {
            Some((&entry, _)) => self.bury_entry(entry),
            None => Ok(()),
        }
    }

    fn bury_entry(&mut self, entry: usize) -> Result<()> {
        let number = self.known[&entry].number;
        for (index, ring) in self.channel.rings().iter().enumerate() {
            let is_in_use = ring.state.load(Ordering::Acquire) != channel::RING_FREE;
            if is_in_use && ring.process == number {
                self.drain(index)?;
                self.channel.release(index);
            }
        }
        self.known.remove(&entry);
        self.files.end(number);
        let process = &self.channel.processes()[entry];
        process
            .state
            .store(channel::PROCESS_FREE, Ordering::Release); // pairs with: introduce
        Ok(())
    }

    fn drain(&mut self, index: usize) -> Result<()> {
        let ring = &self.channel.rings()[index];
        let end = self.channel.end(index);
        if ring.thread == 0 {
            self.drain_closed(ring.process)?;
            self.write_chunk()?;
            self.drain_shared(index, end)
        } else {
            self.drain_own(index, end)
        }
    }

    /// A thread that has closed its ring continues in the shared one, so its own ring is emptied first.
    fn drain_closed(&mut self, process: u32) -> Result<()> {
        for index in 0..self.channel.rings().len() {
            let ring = &self.channel.rings()[index];
            if self.is_closed(index) && ring.process == process && ring.thread != 0 {
                self.drain_own(index, self.channel.end(index))?;
            }
        }
        Ok(())
    }

    fn drain_own(&mut self, index: usize, end: u64) -> Result<()> {
        let ring = &self.channel.rings()[index];
        let process = ring.process;
        if !self
            .encoder
            .has_room_for(process, ring.thread, self.channel.pending(index))
        {
            self.write_chunk()?;
            self.encoder.begin(process, ring.thread);
        }
        let Collector {
            channel,
            encoder,
            news,
            times,
            ..
        } = self;
        channel.take(index, end, now(), &mut times[index], news, encoder.pen());
        self.write_news(process)
    }

    /// Writes the events of one thread that were collected so far. This may find the disk full.
    pub fn write_chunk(&mut self) -> Result<()> {
        let head = self.encoder.head();
        if head.count > 0 {
            let written = self.writer.chunk(&mut self.encoder)?;
            self.note(written);
            self.encoder.begin(head.process, head.thread);
        }
        Ok(())
    }

    fn drain_shared(&mut self, index: usize, end: u64) -> Result<()> {
        let process = self.channel.rings()[index].process;
        let Collector {
            channel,
            encoders,
            news,
            times,
            ..
        } = self;
        channel.take(
            index,
            end,
            now(),
            &mut times[index],
            news,
            |thread, event| {
                encoders
                    .entry(thread)
                    .or_insert_with(|| Encoder::new(process, thread))
                    .push(event);
            },
        );
        self.write_news(process)?;
        for (_, mut encoder) in std::mem::take(&mut self.encoders) {
            let written = self.writer.chunk(&mut encoder)?;
            self.note(written);
        }
        Ok(())
    }

    fn write_news(&mut self, process: u32) -> Result<()> {
        let News { stacks, codes } = std::mem::take(&mut self.news);
        let entry = self.known.iter().find(|(_, known)| known.number == process);
        let (entry, pid) = entry.map_or((None, None), |(entry, known)| (Some(*entry), known.pid));
        for mut code in codes {
            if let (Some(pid), Identity::Head(_)) = (pid, &code.identity) {
                place_in_file(pid, &mut code);
            }
            self.files.keep(pid, &code);
            self.files.note_code(process, code.clone());
            self.write_modules(process, vec![code.into()])?;
        }
        if stacks.is_empty() {
            return Ok(());
        }
        let places = stacks.iter().flat_map(|(_, places)| places);
        if let Some(entry) = entry.filter(|_| places.clone().any(|place| is_untold(*place))) {
            self.look_at_mappings(entry)?;
        }
        self.files.note_places(process, places.copied());
        let written = self.writer.stacks(process, &stacks)?;
        self.note(written);
        Ok(())
    }

    fn write_modules(&mut self, process: u32, modules: Vec<Module>) -> Result<()> {
        let written = self
            .writer
            .json(Tag::Modules, &Modules { process, modules })?;
        self.note(written);
        Ok(())
    }

    /// Writes the files that a program has mapped since the last look.
    fn look_at_mappings(&mut self, entry: usize) -> Result<()> {
        let Some(known) = self.known.get_mut(&entry) else {
            return Ok(());
        };
        let mapped = known.pid.map_or(Vec::new(), mapped);
        let new: Vec<Code> = mapped
            .iter()
            .filter(|code| !known.mapped.contains(code))
            .cloned()
            .collect();
        let number = known.number;
        known.mapped = mapped;
        match new.is_empty() {
            true => Ok(()),
            false => self.write_modules(number, new.into_iter().map(Module::from).collect()),
        }
    }

    /// Writes the names that can only be found now, not later.
    pub fn write_names(&mut self) -> Result<()> {
        for (process, names) in self.files.names() {
            let written = self.writer.json(Tag::Names, &Named { process, names })?;
            self.note(written);
        }
        Ok(())
    }
}

fn is_untold(place: u64) -> bool {
    code::whose(place) == Whose::Untold
}

/// The files that a process has mapped.
fn mapped(pid: i32) -> Vec<Code> {
    let process = LiveProcess::open(pid);
    process.map_or(Vec::new(), |process| {
        code::mapped_now(&code::of_files(&process.areas), &process)
    })
}

/// Corrects a file that is only a part of one.
fn place_in_file(pid: i32, code: &mut Code) {
    if let Ok(process) = LiveProcess::open(pid) {
        let now = code::mapped_now(&code::of_files(&process.areas), &process);
        code::place_in_file(code, &now, &process);
    }
}

/// A zombie counts as ended.
fn is_alive(id: i32) -> bool {
    let stat = String::from_utf8_lossy(&fs::read(format!("/proc/{id}/stat")).unwrap_or_default())
        .into_owned();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Decoder;
    use crate::format::Ending;
    use crate::reader::Reader;

    /// A thread that has ended frees once more, into a ring that is older than its own.
    #[test]
    fn what_a_thread_does_after_its_end_comes_last() {
        let channel = Channel::create(0, 0).unwrap();
        let (shared, own) = (0, 1);
        channel.begin_ring(shared, 1, 0);
        channel.begin_ring(own, 1, 7);
        channel.write_free(own, None, 100, 0x10);
        channel.rings()[own]
            .state
            .store(channel::RING_CLOSED, Ordering::Release);
        channel.write_free(shared, Some(7), 200, 0x20);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut collector = Collector::new(&channel, Writer::create(&path, None).unwrap());
        collector.flushed -= FLUSH_AFTER;
        collector.round().unwrap();
        collector.write_chunk().unwrap();
        collector.into_writer().finish(Ending::default()).unwrap();

        let reader = Reader::open(&path).unwrap();
        let mut events = Vec::new();
        let mut decoder = Decoder::new().unwrap();
        for chunk in &reader.chunks {
            assert_eq!(chunk.head.thread, 7);
            reader.read_chunk(chunk, &mut decoder, &mut events).unwrap();
        }
        let addresses: Vec<u64> = events.iter().map(|event| event.address).collect();
        assert_eq!(addresses, [0x10, 0x20]);
        assert_eq!(
            channel.rings()[own].state.load(Ordering::Relaxed),
            channel::RING_FREE
        );
    }

    #[test]
    fn this_process_is_alive() {
        assert!(is_alive(std::process::id() as i32));
        assert!(!is_alive(i32::MAX));
    }
}
