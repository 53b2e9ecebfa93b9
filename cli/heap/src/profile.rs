//! The profile: allocations that were sampled, by call stack; and switching that on in a running process.

use crate::control::{Control, Field};
use crate::error::{Error, Result};
use crate::fields::{
    Cache, Owner, Registry, Sample as SampleFields, SampleBucket, SampleThread, Samples,
    Stack as StackFields, StackBucket, Sums as SumsFields, ThreadBucket,
};
use crate::live::LiveProcess;
use crate::memory::{Memory, Wanted};
use crate::python::Python;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;

/// Limits on what is believed: more than any release keeps.
const BUCKETS_MAX: usize = 1 << 20;
const RECORDS_MAX: usize = 1 << 20;
const FRAMES_MAX: usize = 1 << 10;
const CACHES_MAX: usize = 1 << 16;

/// What samples stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    pub samples: u64,
    pub bytes: f64,
    pub blocks: f64,
}

impl Sums {
    pub fn add(&mut self, more: &Sums) {
        self.samples += more.samples;
        self.bytes += more.bytes;
        self.blocks += more.blocks;
    }

    /// What has come since.
    pub fn since(&self, before: &Sums) -> Sums {
        Sums {
            samples: self.samples.saturating_sub(before.samples),
            bytes: (self.bytes - before.bytes).max(0.0),
            blocks: (self.blocks - before.blocks).max(0.0),
        }
    }

    /// Two deviations of the estimate of bytes, one sample like the other; in 19 of 20 cases it is
    /// nearer than that.
    pub fn bytes_off(&self) -> f64 {
        2.0 * self.bytes / (self.samples.max(1) as f64).sqrt()
    }
}

/// All that was allocated at one call stack.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    pub address: u64,
    /// Places where the calls return to, the innermost first, and behind them those of a Python program's frames.
    pub frames: Vec<u64>,
    /// Of the native ones, as many as are kept: there may have been more.
    pub is_cut: bool,
    pub allocated: Sums,
    pub live: Sums,
    pub peak: Sums,
}

/// A sampled block that is live.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub address: u64,
    pub bytes: u64,
    pub block_bytes: u64,
    /// For how many blocks it stands.
    pub blocks: f64,
    /// By CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The kernel's number of the thread, as the process knows it.
    pub thread: u64,
    /// In `Profile::stacks`.
    pub stack: usize,
}

/// All that one thread has allocated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thread {
    /// The kernel's number, as the process knows it; 0: all threads that found no place.
    pub id: u64,
    pub allocated: Sums,
}

#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// One in so many bytes is a sample; 0: sampling is off.
    pub every: u64,
    /// A tool has switched sampling on, and its time is not over or was never looked at.
    pub is_lent: bool,
    pub stacks: Vec<Stack>,
    /// What places of Python's frames mean.
    pub python: Python,
    pub samples: Vec<Sample>,
    /// None of a library that is older.
    pub threads: Vec<Thread>,
    pub live: Sums,
    pub peak: Sums,
    pub taken: u64,
    /// Samples that found no place.
    pub dropped: u64,
    /// Samples of stacks that found none.
    pub stackless: u64,
    /// What taking them has cost, about.
    pub spent_ns: u64,
}

impl Profile {
    pub fn read(memory: &dyn Memory) -> Result<Profile> {
        Profile::read_by(&Control::find(memory)?, memory)
    }

    pub fn read_by(control: &Control, memory: &dyn Memory) -> Result<Profile> {
        let reader = Reader {
            memory,
            control,
            python: Python::of(control)?,
            frames: control.constant("sample_frames").ok(),
            all: Samples::find(control)?,
            stack: StackFields::find(control)?,
            sums: SumsFields::find(control)?,
            sample: SampleFields::find(control)?,
        };
        reader.profile()
    }
}

struct Reader<'a> {
    memory: &'a dyn Memory,
    control: &'a Control,
    python: Python,
    /// Of a native stack that are kept; None: all that there is room for.
    frames: Option<u64>,
    all: Samples,
    stack: StackFields,
    sums: SumsFields,
    sample: SampleFields,
}

impl Reader<'_> {
    fn profile(&self) -> Result<Profile> {
        let root = self.control.root("hak_samples")?;
        let record = self.memory.read_vec(root.address, self.all.size)?;
        let peak_number = self.all.peak_number.number(&record);
        let bucket = StackBucket::find(self.control)?;
        let heads = self.heads("hak_sample_stack_buckets", bucket.size, bucket.first)?;
        let mut stacks: Vec<Stack> = self
            .chains(heads, self.stack.frames.offset, self.stack.next)
            .iter()
            .map(|(address, record)| self.stack(*address, record, peak_number))
            .collect();
        let other = self.all.other.part(&record, 0);
        let other_address = root.address + self.all.other.offset as u64;
        stacks.push(self.stack(other_address, other, peak_number));
        let stackless = stacks.last().map_or(0, |other| other.allocated.samples);
        let lease = self.control.field("hak_samples", "lease_ns").ok();
        let by_address: HashMap<u64, usize> = stacks
            .iter()
            .enumerate()
            .map(|(index, stack)| (stack.address, index))
            .collect();
        let bucket = SampleBucket::find(self.control)?;
        let heads = self.heads("hak_sample_buckets", bucket.size, bucket.first)?;
        let samples = self
            .chains(heads, self.sample.size, self.sample.next)
            .iter()
            .filter_map(|(_, record)| self.sample(record, &by_address))
            .collect();
        let timed = self.control.constant("samples_timed")?;
        Ok(Profile {
            every: option(self.control, self.memory, "sample_bytes")?,
            is_lent: lease.is_some_and(|lease| lease.number(&record) != 0),
            stackless,
            stacks,
            python: self.python.with_functions(self.control, self.memory)?,
            samples,
            threads: self.threads(&record)?,
            live: self.sums(self.all.live.part(&record, 0)),
            peak: self.sums(self.all.peak.part(&record, 0)),
            taken: self.all.taken.number(&record),
            dropped: self.all.dropped_samples.number(&record),
            spent_ns: self.all.timed_ns.number(&record).saturating_mul(timed),
        })
    }

    fn threads(&self, record: &[u8]) -> Result<Vec<Thread>> {
        let Ok(fields) = SampleThread::find(self.control) else {
            return Ok(Vec::new());
        };
        let bucket = ThreadBucket::find(self.control)?;
        let heads = self.heads("hak_sample_thread_buckets", bucket.size, bucket.first)?;
        let thread = |record: &[u8]| Thread {
            id: fields.thread_id.number(record),
            allocated: self.sums(fields.allocated.part(record, 0)),
        };
        let found = self.chains(heads, fields.size, fields.next);
        let mut threads: Vec<Thread> = found.iter().map(|(_, record)| thread(record)).collect();
        let other = self.control.field("hak_samples", "other_thread")?;
        threads.push(thread(other.part(record, 0)));
        threads.retain(|thread| thread.allocated.samples > 0);
        Ok(threads)
    }

    /// Where the lists of a hash table begin.
    fn heads(&self, name: &str, bytes: usize, first: Field) -> Result<Vec<u64>> {
        let root = self.control.root(name)?;
        let count = root.count.min(BUCKETS_MAX);
        let table = self.memory.read_vec(root.address, count * bytes)?;
        let heads = table.chunks_exact(bytes).map(|part| first.number(part));
        Ok(heads.filter(|head| *head != 0).collect())
    }

    /// Every record of these lists, all lists a step at a time. They change under us: a list that leads
    /// nowhere, or in a circle, ends.
    fn chains(&self, heads: Vec<u64>, bytes: usize, next: Field) -> Vec<(u64, Vec<u8>)> {
        let mut found: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut addresses = heads;
        while !addresses.is_empty() && found.len() < RECORDS_MAX {
            let mut records = vec![vec![0; bytes]; addresses.len()];
            let mut wanted: Vec<Wanted> = addresses
                .iter()
                .zip(&mut records)
                .map(|(address, record)| Wanted::new(*address, record))
                .collect();
            self.memory.read_many(&mut wanted);
            let is_read: Vec<bool> = wanted.iter().map(|one| one.is_read).collect();
            let mut following = Vec::new();
            for ((address, record), is_read) in addresses.into_iter().zip(records).zip(is_read) {
                if is_read && !found.contains_key(&address) {
                    following.push(next.number(&record));
                    found.insert(address, record);
                }
            }
            addresses = following.into_iter().filter(|next| *next != 0).collect();
        }
        let mut found: Vec<(u64, Vec<u8>)> = found.into_iter().collect();
        found.sort_unstable_by_key(|(address, _)| *address);
        found
    }

    fn sums(&self, record: &[u8]) -> Sums {
        Sums {
            samples: self.sums.samples.number(record),
            bytes: self.sums.bytes.number(record) as f64,
            blocks: self.sums.blocks_256.number(record) as f64 / 256.0,
        }
    }

    fn stack(&self, address: u64, record: &[u8], peak_number: u64) -> Stack {
        let count = self.stack.frame_count.number(record);
        let most = self.stack.frames.count.min(FRAMES_MAX);
        let bytes = usize::try_from(count).unwrap_or(0).min(most) * 8;
        // A record ends with the frames that it has.
        let frames = address.wrapping_add(self.stack.frames.offset as u64);
        let frames = self.memory.read_vec(frames, bytes).unwrap_or_default();
        let frames: Vec<u64> = frames.chunks_exact(8).map(le_u64).collect();
        let native = frames.iter().filter(|at| self.python.frame(**at).is_none());
        let native = native.count() as u64;
        let live = self.sums(self.stack.live.part(record, 0));
        let has_changed = self.stack.peak_number.number(record) == peak_number;
        Stack {
            address,
            frames,
            is_cut: most > 0 && native == self.frames.unwrap_or(most as u64),
            allocated: self.sums(self.stack.allocated.part(record, 0)),
            live,
            peak: if has_changed {
                self.sums(self.stack.peak.part(record, 0))
            } else {
                live
            },
        }
    }

    fn sample(&self, record: &[u8], stacks: &HashMap<u64, usize>) -> Option<Sample> {
        let block_bytes = self.sample.block_bytes.number(record).max(1);
        let every = self.sample.every.number(record).max(block_bytes);
        Some(Sample {
            address: self.sample.address.number(record),
            bytes: self.sample.bytes.number(record),
            block_bytes,
            blocks: every as f64 / block_bytes as f64,
            time_ns: self.sample.time_ns.number(record),
            thread: self.sample.thread_id.number(record),
            stack: *stacks.get(&self.sample.stack.number(record))?,
        })
    }
}

fn le_u64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Where an option's value lies.
fn option_address(control: &Control, name: &str) -> Result<u64> {
    let field = control.field("hak_options", name)?;
    Ok(control.root("hak_options")?.address + field.offset as u64)
}

fn option(control: &Control, memory: &dyn Memory, name: &str) -> Result<u64> {
    let address = option_address(control, name)?;
    memory
        .read_u64(address)
        .ok_or_else(|| memory.explain(address))
}

/// Why sampling cannot be switched on or off.
#[derive(Debug)]
pub enum Refused {
    /// The process has option remote off.
    ByOption,
    For(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::For(error)
    }
}

/// For how long a process samples when nobody asks it to go on.
const LEASE_NS: u64 = 10_000_000_000;

/// A process that samples because we want it to, and maybe others do.
pub struct Sampling<'a> {
    process: &'a LiveProcess,
    control: Control,
    /// One in so many bytes is a sample, as the first of those who want it has said.
    pub every: u64,
    /// Shared with the others; whoever has it alone is the last.
    lock: Option<Flock<File>>,
}

impl Sampling<'_> {
    /// Have a process sample one in so many bytes. This writes the option, until when it holds, and into each cache
    /// that has a thread two numbers which make its next free look at the option.
    pub fn begin(
        process: &LiveProcess,
        every: u64,
        now_ns: u64,
    ) -> std::result::Result<Sampling<'_>, Refused> {
        let control = Control::find(process)?;
        if option(&control, process, "remote")? == 0 {
            return Err(Refused::ByOption);
        }
        let file = File::open(format!("/proc/{}/mem", process.pid)).ok();
        let lock = file.and_then(|file| Flock::lock(file, FlockArg::LockShared).ok());
        let set_before = option(&control, process, "sample_bytes")?;
        let sampling = Sampling {
            process,
            control,
            every: if set_before == 0 { every } else { set_before },
            lock,
        };
        sampling.renew(now_ns)?;
        if set_before == 0 {
            sampling.set(every)?;
        }
        Ok(sampling)
    }

    /// Go on: who is killed does not say so, and then the process ends it by itself.
    pub fn renew(&self, now_ns: u64) -> Result<()> {
        self.set_lease(now_ns.saturating_add(LEASE_NS))
    }

    /// False: it had ended before, since it was not asked to go on in time. It goes on while somebody else wants it to.
    pub fn end(self) -> Result<bool> {
        let was_on = option(&self.control, self.process, "sample_bytes")? != 0;
        let lock = self.lock.as_ref();
        let is_last = lock.is_none_or(|lock| lock.relock(FlockArg::LockExclusiveNonblock).is_ok());
        if is_last {
            self.set(0)?;
            self.set_lease(0)?;
        }
        Ok(was_on)
    }

    fn set(&self, every: u64) -> Result<()> {
        let address = option_address(&self.control, "sample_bytes")?;
        self.process.write(address, &every.to_le_bytes())?;
        wake_caches(self.process, &self.control, every != 0)
    }

    /// A library that is older has none.
    fn set_lease(&self, until_ns: u64) -> Result<()> {
        let Ok(field) = self.control.field("hak_samples", "lease_ns") else {
            return Ok(());
        };
        let address = self.control.root("hak_samples")?.address + field.offset as u64;
        self.process.write(address, &until_ns.to_le_bytes())
    }
}

fn wake_caches(process: &LiveProcess, control: &Control, samples: bool) -> Result<()> {
    let (fields, registry) = (Cache::find(control)?, Registry::find(control)?);
    let owners = Owner::find(control)?;
    let hit_tag = control.field("hak_cache", "hit_tag")?;
    let is_direct = control.field("hak_cache", "is_direct")?;
    let less = if samples {
        control.constant("tops_apart")?
    } else {
        0
    };
    // A library that is older has none: a thread that has only large blocks stays as it is.
    let frees_apart = control.field("hak_cache", "frees_apart").ok();
    let asked = control.constant("frees_asked").unwrap_or(0);
    let dead = control.constant("owner_dead")?;
    let root = control.root("hak_registry")?;
    let record = process.read_vec(root.address, registry.size)?;
    let mut next = registry.all.number(&record);
    for _ in 0..CACHES_MAX {
        if next == 0 {
            break;
        }
        let cache = process.read_vec(next, fields.size)?;
        let owner = fields.owner.part(&cache, 0);
        let wants = owners.has_thread.number(owner) != 0
            && is_direct.number(&cache) == 0
            && owners.state.number(owner) != dead;
        if wants {
            let tag = owners.tag.number(owner).wrapping_sub(less);
            let bytes = tag.to_le_bytes();
            process.write(next + hit_tag.offset as u64, &bytes[..hit_tag.bytes.min(8)])?;
            if let Some(frees_apart) = &frees_apart {
                process.write(next + frees_apart.offset as u64, &[asked as u8])?;
            }
        }
        next = fields.next.number(&cache);
    }
    Ok(())
}
