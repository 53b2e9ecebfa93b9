//! Snapshots: everything that commands read from a process, in a file for any machine. hakmem's own metadata are stored as they
//! lie in memory; other heaps, the kernel's figures and names are stored as results.

use crate::doctor::kept::Kept;
use crate::doctor::{Patient, Visit};
use crate::frames;
use crate::profile::look::{now_ns, of_threads};
use crate::target::Opened;
use hakmem_heap::control::Control;
use hakmem_heap::error::Error;
use hakmem_heap::failures::Failures;
use hakmem_heap::heap::Heap;
use hakmem_heap::memory::Memory;
use hakmem_heap::profile::Profile;
use hakmem_heap::shown::ShownPath;
use hakmem_heap::snapshot::{Image, Recorder};
use hakmem_heap::{decisions, options};
use hakmem_lab::error::Result;
use hakmem_lab::machine::timestamp;
use hakmem_lab::{failed, usage};
use hakmem_trace::symbols::{Names, Place};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// A process that changes during a read may look damaged.
const TRIES: usize = 3;

/// What is stored beside memory.
#[derive(Serialize, Deserialize)]
struct Told {
    /// The release of the command that has taken it.
    release: String,
    taken: String,
    title: String,
    /// By the clock of samples and slabs.
    now_ns: Option<u64>,
    threads: HashMap<u64, String>,
    /// How many blocks moved; hakmem's figures may be off by this.
    moved_blocks: u64,
    places: Vec<(u64, Place)>,
    notes: Vec<String>,
    visit: Kept,
}

pub struct Snapshot {
    pub image: Image,
    told: Told,
}

/// The result of taking a snapshot.
pub struct Taken {
    pub file: Vec<u8>,
    pub memory_bytes: u64,
    pub places: usize,
    pub has_hakmem: bool,
}

impl Snapshot {
    pub fn open(path: &Path) -> hakmem_heap::error::Result<Snapshot> {
        let image = Image::open(path)?;
        let told = serde_json::from_str(&image.text).map_err(|error| Error::NoSnapshot {
            path: path.to_path_buf(),
            why: format!("it is damaged, or of another release: {error}"),
        })?;
        Ok(Snapshot { image, told })
    }

    pub fn path(&self) -> &Path {
        &self.image.path
    }

    /// "process 4711: redis-server *:6379, 2026-11-27T09:54:29Z"
    pub fn title(&self) -> String {
        format!("{}, {}", self.told.title, self.told.taken)
    }

    /// The process's title, and when the snapshot was taken.
    pub fn told_at(&self) -> (&str, &str) {
        (&self.told.title, &self.told.taken)
    }

    pub fn heap(&self) -> hakmem_heap::error::Result<Heap> {
        Ok(Heap {
            moved_blocks: self.told.moved_blocks,
            ..Heap::read(&self.image)?
        })
    }

    pub fn names(&self) -> Names {
        Names::of_known(self.told.places.clone(), self.told.notes.clone())
    }

    pub fn threads(&self) -> &HashMap<u64, String> {
        &self.told.threads
    }

    pub fn now_ns(&self) -> Option<u64> {
        self.told.now_ns
    }

    pub fn visit(&self) -> &Kept {
        &self.told.visit
    }

    pub fn take(opened: Opened) -> Result<Taken> {
        if let Opened::Snapshot(snapshot) = &opened {
            return Err(usage!("{} is a snapshot already", snapshot.path().shown()));
        }
        let now_ns = now_ns(&opened);
        let patient = Patient::of(opened).with_map();
        let visit = Visit::pay(&patient, None)?;
        let opened = patient.opened();
        let mut told = opened.whole(Told {
            release: env!("CARGO_PKG_VERSION").into(),
            taken: timestamp(),
            title: opened.title(),
            now_ns,
            threads: of_threads(opened),
            moved_blocks: 0,
            places: Vec::new(),
            notes: Vec::new(),
            visit: Kept::of(visit),
        })?;
        let has_hakmem = opened.uses_hakmem();
        let image = match has_hakmem {
            true => of_hakmem(opened, &mut told)?,
            false => Image::without_memory(text(&told)?),
        };
        let file = image.encode();
        Ok(Taken {
            file: file.map_err(|error| failed!("the snapshot cannot be made: {error}"))?,
            memory_bytes: image.memory_bytes(),
            places: told.places.len(),
            has_hakmem,
        })
    }
}

fn text(told: &Told) -> Result<String> {
    serde_json::to_string(told).map_err(|error| failed!("the snapshot cannot be written: {error}"))
}

fn of_hakmem(opened: &Opened, told: &mut Told) -> Result<Image> {
    let memory = opened.memory();
    told.moved_blocks = opened.heap()?.moved_blocks;
    let mut tries = 1;
    loop {
        let read = record(memory, opened, told);
        match read {
            Ok((recorder, heap)) => {
                return Ok(recorder.finish(&heap.metadata, text(told)?));
            }
            Err(Error::Damaged(_)) if tries < TRIES => tries += 1,
            Err(error) => return Err(opened.refused(&error)),
        }
    }
}

/// Reads everything that commands read, once.
fn record<'a>(
    memory: &'a dyn Memory,
    opened: &Opened,
    told: &mut Told,
) -> hakmem_heap::error::Result<(Recorder<'a>, Heap)> {
    let recorder = Recorder::new(memory, &Control::find(memory)?);
    let control = Control::find(&recorder)?;
    let heap = Heap::read_by(&recorder, &control)?;
    options::read_features(&control, &recorder)?;
    decisions::read(&control, &recorder)?;
    let profile = Profile::read_by(&control, &recorder)?;
    let failures = Failures::read_by(&recorder, &control)?;
    let mut names = opened.names();
    for stack in &profile.stacks {
        frames::places(stack, &profile.python, &mut names);
    }
    for failure in &failures.latest {
        names.place(failure.place);
    }
    told.places = names.known();
    told.notes = names.notes().to_vec();
    match memory.lost() {
        Some(error) => Err(error),
        None => Ok((recorder, heap)),
    }
}
