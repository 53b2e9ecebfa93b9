//! Watches the descendants of this process, by the kernel's reports and in /proc, so that the trace can name those without the
//! recorder. If the kernel does not report them, a process that lives for only a few milliseconds may be missed.

use crate::births::{Births, Born};
use crate::channel::{Channel, address_limit, cut};
use crate::format::Unseen;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::executable::Executable;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(3);
/// By this time, a program has loaded its preloaded libraries.
const LOADED_AFTER: Duration = Duration::from_millis(50);
const UNSEEN_MAX: usize = 1000;

/// A process's program: its number, its start time, and the file.
type Key = (i32, String, PathBuf);

struct Seen {
    first: Instant,
    last: Instant,
    has_environment: bool,
    has_library: bool,
    has_channel: bool,
    /// Why it may not be able to open the channel.
    hindrance: Option<&'static str>,
}

pub struct Witness {
    /// "HAKMEM_RECORD=/proc/4711/fd/5"
    setting: Vec<u8>,
    channel_bytes: u64,
    own: PathBuf,
    own_namespace: PathBuf,
    own_user_namespace: PathBuf,
    own_root: PathBuf,
    seen: HashMap<Key, Seen>,
    /// Processes that have introduced themselves, by number and by the program's path, cut as in an entry.
    introduced: HashSet<(i32, PathBuf)>,
    looked: Instant,
    births: Option<Births>,
    /// Processes that had loaded the recorder, but neither introduced themselves nor were seen in /proc.
    brief: Vec<Unseen>,
}

/// A part of the preloaded file's name.
const LIBRARY: &str = "libhakmem_record.so";

fn link(id: &str, name: &str) -> PathBuf {
    fs::read_link(format!("/proc/{id}/{name}")).unwrap_or_default()
}

impl Witness {
    /// Must be called by the thread that starts the program.
    pub fn new(channel: &Channel) -> Witness {
        Witness {
            setting: format!("HAKMEM_RECORD={}", channel.path()).into_bytes(),
            channel_bytes: channel.bytes() as u64,
            own: link("self", "exe"),
            own_namespace: link("self", "ns/pid"),
            own_user_namespace: link("self", "ns/user"),
            own_root: link("self", "root"),
            seen: HashMap::new(),
            introduced: HashSet::new(),
            looked: Instant::now(),
            births: Births::watch().ok(),
            brief: Vec::new(),
        }
    }

    /// Looks at the running processes, if it is time to look again.
    pub fn look(&mut self) {
        if let Some(births) = &mut self.births {
            births.take();
        }
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        for id in descendants() {
            self.look_at(id);
        }
    }

    fn look_at(&mut self, id: i32) {
        let text = id.to_string();
        let program = link(&text, "exe");
        // Before its exec, a child is a copy of this process; a zombie has no program.
        if program == self.own || program.as_os_str().is_empty() {
            return;
        }
        let now = Instant::now();
        let key = (id, began(id), program);
        let seen = self.seen.entry(key).or_insert_with(|| Seen {
            first: now,
            last: now,
            has_environment: true,
            has_library: false,
            has_channel: false,
            hindrance: None,
        });
        seen.last = now;
        if seen.has_channel {
            return; // the recorder works in it
        }
        if let Ok(environment) = fs::read(format!("/proc/{id}/environ"))
            && !environment.is_empty() | (now - seen.first > LOADED_AFTER)
        {
            let setting = &self.setting;
            seen.has_environment = environment
                .split(|byte| *byte == 0)
                .any(|one| one == setting.as_slice());
        }
        let maps = fs::read(format!("/proc/{id}/maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        seen.has_library |= maps.contains(LIBRARY);
        seen.has_channel |= maps.contains("/memfd:hakmem-record");
        let own = [
            &self.own_namespace,
            &self.own_user_namespace,
            &self.own_root,
        ];
        let its = ["ns/pid", "ns/user", "root"].map(|name| link(&text, name));
        // An unreadable link tells nothing: the process may have ended.
        let mut pairs = its.iter().zip(own);
        if pairs.any(|(its, own)| !its.as_os_str().is_empty() && its != own) {
            seen.hindrance = Some("has a root, or a PID or user namespace, of its own");
        } else if is_of_another_user(id) {
            seen.hindrance = Some("runs as another user, who may not open the channel");
        } else if address_limit(id).is_some_and(|bytes| bytes < 2 * self.channel_bytes) {
            seen.hindrance =
                Some("may not map the channel's addresses (set 'ulimit -v' before record)");
        }
    }

    /// A process has introduced itself; `id` is its number in our namespace.
    pub fn introduce(&mut self, id: i32, program: &Path) {
        self.introduced.insert((id, program.to_path_buf()));
    }

    /// Processes that ran without the recorder, and whether the list is certainly complete.
    pub fn unseen(&mut self) -> (Vec<Unseen>, bool) {
        let mut unseen = self.listed(|(_, _, program), seen| why(program, seen));
        let born = self
            .births
            .take()
            .and_then(|births| births.programs(LIBRARY));
        let is_certain = born.is_some();
        for one in born.into_iter().flatten() {
            let program = one.program.shown();
            if one.has_library {
                if !self.is_known(&one) {
                    let why = TOO_SHORT.into();
                    self.brief.push(Unseen {
                        id: one.id,
                        program,
                        why,
                    });
                }
                continue;
            }
            let is_known = |known: &Unseen| known.id == one.id && known.program == program;
            if !unseen.iter().any(is_known) {
                unseen.push(Unseen {
                    id: one.id,
                    why: obstacle(&one.program).unwrap_or(NOT_LOADED.into()),
                    program,
                });
            }
        }
        unseen.sort_by_key(|one| one.id);
        unseen.truncate(UNSEEN_MAX);
        (unseen, is_certain)
    }

    /// Has it introduced itself, or was it seen in /proc? Compares the file's name only, as its folder may differ inside a
    /// container.
    fn is_known(&self, one: &Born) -> bool {
        let is_it = |id: i32, program: &Path, one_program: &Path| {
            id == one.id && program.file_name() == one_program.file_name()
        };
        let as_introduced = cut(&one.program);
        let mut introduced = self.introduced.iter();
        introduced.any(|(id, program)| is_it(*id, program, &as_introduced))
            || self
                .seen
                .keys()
                .any(|key| is_it(key.0, &key.2, &one.program))
    }

    /// Processes that ran with the recorder and made no call; call this after `unseen`.
    pub fn quiet(&mut self) -> Vec<Unseen> {
        let mut quiet = self.seen_quiet();
        quiet.append(&mut self.brief);
        quiet.sort_by_key(|one| one.id);
        quiet.truncate(UNSEEN_MAX);
        quiet
    }

    fn seen_quiet(&self) -> Vec<Unseen> {
        self.listed(|(id, began, program), seen| {
            // Between fork and exec, a process has no program of its own.
            let is_before_exec = self.seen.iter().any(|(other, later)| {
                (other.0, &other.1) == (*id, began) && later.first > seen.first
            });
            if is_before_exec || why(program, seen).is_some() {
                return None;
            }
            Some(match seen.has_library || seen.has_channel {
                true => "allocated nothing".into(),
                false => "allocated nothing, as far as could be seen in its short life".into(),
            })
        })
    }

    fn listed(&self, why: impl Fn(&Key, &Seen) -> Option<String>) -> Vec<Unseen> {
        let mut listed: Vec<Unseen> = self
            .seen
            .iter()
            .filter(|((id, _, program), _)| !self.introduced.contains(&(*id, cut(program))))
            .filter_map(|(key, seen)| {
                Some(Unseen {
                    id: key.0,
                    program: key.2.shown(),
                    why: why(key, seen)?,
                })
            })
            .collect();
        listed.sort_by_key(|one| one.id);
        listed.truncate(UNSEEN_MAX);
        listed
    }
}

const NOT_LOADED: &str = "did not load the recorder";
const TOO_SHORT: &str =
    "allocated nothing, or could not open the channel: its life was too short to tell";

fn obstacle(program: &Path) -> Option<String> {
    let found = Executable::find(program.as_os_str()).ok();
    Some(found?.obstacle()?.reason())
}

/// Why it was not recorded; None if it may simply have made no call.
fn why(program: &Path, seen: &Seen) -> Option<String> {
    if let Some(obstacle) = obstacle(program) {
        return Some(obstacle);
    }
    if !seen.has_environment {
        return Some("was started without the recorder's environment".into());
    }
    if seen.has_channel || !seen.has_library && seen.last - seen.first < LOADED_AFTER {
        return None;
    }
    let unloaded = (!seen.has_library).then_some(NOT_LOADED);
    seen.hindrance.or(unloaded).map(str::to_string)
}

fn is_of_another_user(id: i32) -> bool {
    let owner = |id: &str| Some(fs::metadata(format!("/proc/{id}")).ok()?.uid());
    owner(&id.to_string()).is_some_and(|its| Some(its) != owner("self"))
}

/// All descendants of this process.
fn descendants() -> Vec<i32> {
    let mut found = children(std::process::id() as i32);
    let mut next = 0;
    while next < found.len() {
        let more = children(found[next]);
        found.extend(more);
        next += 1;
    }
    found
}

fn children(id: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else {
        return Vec::new();
    };
    let texts = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    texts
        .flat_map(|text| {
            let ids = text.split_whitespace().filter_map(|id| id.parse().ok());
            ids.collect::<Vec<i32>>()
        })
        .collect()
}

/// When a process began, as the kernel writes it: tells apart processes that had the same number.
fn began(id: i32) -> String {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let field = rest.split_whitespace().nth(19);
    field.unwrap_or_default().to_string()
}
