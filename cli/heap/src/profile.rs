//! The profile: sampled allocations by call stack. Also switches sampling on in a running process.

use crate::control::{Control, Field};
use crate::error::{Error, Result};
use crate::fields::{
    Cache, Owner, Registry, Sample as SampleFields, SampleBucket, SampleTables, SampleThread,
    Samples, Stack as StackFields, StackBucket, Sums as SumsFields, ThreadBucket,
};
use crate::live::LiveProcess;
use crate::memory::{Memory, Wanted};
use crate::python::Python;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;

/// Limits: more than any release keeps.
const BUCKETS_MAX: usize = 1 << 20;
const RECORDS_MAX: usize = 1 << 20;
const FRAMES_MAX: usize = 1 << 10;
const CACHES_MAX: usize = 1 << 16;

/// Estimates from samples.
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

    /// What was added since `before`.
    pub fn since(&self, before: &Sums) -> Sums {
        Sums {
            samples: self.samples.saturating_sub(before.samples),
            bytes: (self.bytes - before.bytes).max(0.0),
            blocks: (self.blocks - before.blocks).max(0.0),
        }
    }

    /// Two standard deviations of `bytes`, as if all samples had the same weight; the true value is within that in 19 of 20
    /// cases. 0 if each sample stands for one block: these were sampled for sure. With different weights it is rather too
    /// much.
    pub fn bytes_off(&self) -> f64 {
        let samples = self.samples.max(1) as f64;
        let by_chance = (1.0 - samples / self.blocks.max(samples)).sqrt();
        2.0 * self.bytes / samples.sqrt() * by_chance
    }
}

/// The allocations of one call stack.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    pub address: u64,
    /// The places that the calls return to, the innermost first; then the places of a Python program's frames.
    pub frames: Vec<u64>,
    /// It has as many native frames as are kept, so there may have been more.
    pub is_cut: bool,
    pub allocated: Sums,
    pub live: Sums,
    pub peak: Sums,
}

/// A live sampled block.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub address: u64,
    pub bytes: u64,
    pub block_bytes: u64,
    /// How many blocks the sample stands for.
    pub blocks: f64,
    /// In nanoseconds of the process's CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The thread's number in the process's own PID namespace.
    pub thread: u64,
    /// An index into `Profile::stacks`.
    pub stack: usize,
}

/// The allocations of one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thread {
    /// The thread's number in the process's own PID namespace; 0: all threads for which there was no room.
    pub id: u64,
    pub allocated: Sums,
}

#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The mean distance of samples in bytes; 0: sampling is off.
    pub every: u64,
    /// A tool has switched sampling on, and its lease has not ended or was never checked.
    pub is_lent: bool,
    pub stacks: Vec<Stack>,
    /// Explains the places of Python frames.
    pub python: Python,
    pub samples: Vec<Sample>,
    pub threads: Vec<Thread>,
    pub live: Sums,
    pub peak: Sums,
    pub taken: u64,
    /// Samples for which there was no room.
    pub dropped: u64,
    /// Samples without a stack, as there was no room for theirs.
    pub stackless: u64,
    /// About how long it took to take the samples.
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
            tables: SampleTables::find(control)?,
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
    /// The most native frames of a stack that are kept; None: as many as a record has room for.
    frames: Option<u64>,
    all: Samples,
    tables: SampleTables,
    stack: StackFields,
    sums: SumsFields,
    sample: SampleFields,
}

impl Reader<'_> {
    fn profile(&self) -> Result<Profile> {
        let root = self.control.root("hak_samples")?;
        let record = self.memory.read_vec(root.address, self.all.size)?;
        let peak_number = self.all.peak_number.number(&record);
        let first = StackBucket::find(self.control)?.first;
        let heads = self.heads(&record, self.tables.stack_buckets, first)?;
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
        let first = SampleBucket::find(self.control)?.first;
        let heads = self.heads(&record, self.tables.buckets, first)?;
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
        let fields = SampleThread::find(self.control)?;
        let first = ThreadBucket::find(self.control)?.first;
        let heads = self.heads(record, self.tables.thread_buckets, first)?;
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

    /// The heads of a hash table's lists. `record`: what has the tables' address, 0 before the first sample.
    fn heads(&self, record: &[u8], buckets: Field, first: Field) -> Result<Vec<u64>> {
        let tables = self.all.tables.number(record);
        if tables == 0 || buckets.bytes == 0 {
            return Ok(Vec::new());
        }
        let bytes = buckets.count.min(BUCKETS_MAX) * buckets.bytes;
        let start = tables.wrapping_add(buckets.offset as u64);
        let table = self.memory.read_vec(start, bytes)?;
        let heads = table
            .chunks_exact(buckets.bytes)
            .map(|part| first.number(part));
        Ok(heads.filter(|head| *head != 0).collect())
    }

    /// Every record of these lists; all lists advance together, one step at a time. The lists may change during the walk: one
    /// that leads nowhere or in a circle ends.
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
        // A record ends behind the last frame that it has.
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

/// The address of an option's value.
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
    /// The process has option `remote` switched off.
    ByOption,
    For(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::For(error)
    }
}

/// How long a process goes on sampling if no tool renews the lease.
const LEASE_NS: u64 = 10_000_000_000;

/// A process that samples for us, and possibly for other tools as well.
pub struct Sampling<'a> {
    process: &'a LiveProcess,
    control: Control,
    /// The mean distance of samples in bytes; the first tool chooses it.
    pub every: u64,
    /// Shared by all tools; the tool that can lock it exclusively is the last one.
    lock: Option<Flock<File>>,
}

impl Sampling<'_> {
    /// Makes a process take a sample every so many bytes on average. This writes the option, the end of the lease, and into
    /// each cache with a thread two numbers that make its next free look at the option.
    pub fn begin(process: &LiveProcess, every: u64) -> std::result::Result<Sampling<'_>, Refused> {
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
        sampling.renew()?;
        if set_before == 0 {
            sampling.set(every)?;
        }
        Ok(sampling)
    }

    /// Extends the lease. A tool that is killed cannot switch sampling off; the process does that when the lease ends.
    pub fn renew(&self) -> Result<()> {
        let now = self.process.now_ns().unwrap_or(0);
        self.set_lease(now.saturating_add(LEASE_NS))
    }

    /// Switches sampling off, unless another tool still uses it. False: it was already off, because the lease had ended.
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

    /// Older libraries have no lease.
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
    // Older libraries lack this field: a thread that allocates only large blocks does not notice the option.
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

#[cfg(test)]
mod tests {
    use super::Sums;

    #[test]
    fn a_sum_is_exact_if_chance_had_no_part_in_it() {
        let off = |samples, bytes, blocks| {
            let sums = Sums {
                samples,
                bytes,
                blocks,
            };
            sums.bytes_off()
        };
        assert_eq!(off(1, 6e8, 1.0), 0.0);
        assert_eq!(off(7, 7e5, 7.0), 0.0);
        assert_eq!(off(0, 0.0, 0.0), 0.0);
        // 100 samples for a million blocks: a fifth. Half of the chance is gone if each stands for two blocks.
        assert!((off(100, 1e8, 1e6) / 2e7 - 1.0).abs() < 0.001);
        assert!((off(100, 1e8, 200.0) / 2e7 - 0.5_f64.sqrt()).abs() < 0.001);
    }
}
