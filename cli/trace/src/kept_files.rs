//! Keeps the files of recorded code open until the recording ends. If a file is removed or replaced by then, its names are
//! written to the trace. So are the names that a process has written down for code that it generated.

use crate::code_files::Found;
use crate::functions::Functions;
use hakmem_heap::code::{self, Code, Identity, Whose};
use hakmem_heap::code_files::{Sources, file_name, find_mapped};
use hakmem_heap::perf_map::MapPlace;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::AsRawFd;

/// The most descriptors for files; the usual limit for all is 1,024.
const FILES_MAX: usize = 512;
/// The most descriptors for perf maps, one per running process.
const MAPS_MAX: usize = 128;

/// A place and its functions, the innermost first.
pub type PlaceNames = (u64, Vec<String>);

#[derive(Default)]
pub struct KeptFiles {
    files: HashMap<Identity, File>,
    /// By recorded process, then by the process's number for the file.
    codes: BTreeMap<u32, HashMap<u16, Code>>,
    places: BTreeMap<u32, BTreeSet<u64>>,
    /// By running process: where it may write names of generated code.
    maps: BTreeMap<u32, MapPlace>,
    /// Names of generated code, of processes that have ended.
    made: Vec<(u32, Vec<PlaceNames>)>,
}

impl KeptFiles {
    /// Keeps a file of the process that the kernel knows as `pid`; None: it has ended, or its number is unknown.
    pub fn keep(&mut self, pid: Option<i32>, code: &Code) {
        let is_full = self.files.len() >= FILES_MAX;
        if code.identity == Identity::Unknown || is_full || self.files.contains_key(&code.identity)
        {
            return;
        }
        let sources = Sources {
            process: pid,
            ..Sources::default()
        };
        let found = find_mapped(code, &sources).ok();
        if let Some(file) = found.and_then(|path| File::open(path).ok()) {
            self.files.insert(code.identity.clone(), file);
        }
    }

    pub fn note_code(&mut self, process: u32, code: Code) {
        self.codes
            .entry(process)
            .or_default()
            .insert(code.number, code);
    }

    /// Begins a process that the kernel knows as `pid`.
    pub fn begin(&mut self, process: u32, pid: i32) {
        if self.maps.len() < MAPS_MAX {
            let map = MapPlace::of(pid);
            self.maps.extend(map.map(|map| (process, map)));
        }
    }

    pub fn note_places(&mut self, process: u32, places: impl Iterator<Item = u64>) {
        self.places.entry(process).or_default().extend(places);
    }

    /// The process has ended or executed another program, so its names of generated code are complete.
    pub fn end(&mut self, process: u32) {
        let map = self.maps.remove(&process);
        let (Some(map), Some(places)) = (map, self.places.get(&process)) else {
            return;
        };
        let mut places = places
            .iter()
            .filter(|place| is_of_no_file(**place))
            .peekable();
        if places.peek().is_none() {
            return;
        }
        let Ok(map) = map.read() else {
            return;
        };
        let named: Vec<PlaceNames> = places
            .filter_map(|&place| {
                let inside = code::address_of(place).saturating_sub(1);
                Some((place, vec![map.name(inside)?]))
            })
            .collect();
        if !named.is_empty() {
            self.made.push((process, named));
        }
    }

    /// The names that cannot be found after the recording, by process.
    pub fn names(&mut self) -> Vec<(u32, Vec<PlaceNames>)> {
        let running: Vec<u32> = self.maps.keys().copied().collect();
        running.into_iter().for_each(|process| self.end(process));
        let mut all = self.lost_names();
        all.append(&mut self.made);
        all
    }

    /// The names of places whose files cannot be found any more.
    fn lost_names(&self) -> Vec<(u32, Vec<PlaceNames>)> {
        let mut lost: HashMap<&Identity, Option<Functions>> = HashMap::new();
        let mut all = Vec::new();
        for (process, places) in &self.places {
            let Some(codes) = self.codes.get(process) else {
                continue;
            };
            let mut named = Vec::new();
            for &place in places {
                let Whose::Of(number) = code::whose(place) else {
                    continue;
                };
                let Some(code) = codes.get(&number) else {
                    continue;
                };
                let functions = lost
                    .entry(&code.identity)
                    .or_insert_with(|| self.lost(code));
                let inside = code::address_of(place).saturating_sub(1);
                let names = functions
                    .as_ref()
                    .map(|functions| functions.at(inside, code, false));
                named.extend(
                    names
                        .filter(|names| !names.is_empty())
                        .map(|names| (place, names)),
                );
            }
            if !named.is_empty() {
                all.push((*process, named));
            }
        }
        all
    }

    /// The functions of a file that is open here and cannot be found anywhere else.
    fn lost(&self, code: &Code) -> Option<Functions> {
        let file = self.files.get(&code.identity)?;
        let sources = Sources::default();
        if find_mapped(code, &sources).is_ok() {
            return None;
        }
        let found = Found {
            path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
            is_debug_only: false,
        };
        Some(Functions::read(
            &found,
            code,
            &sources,
            file_name(&code.path),
        ))
    }
}

fn is_of_no_file(place: u64) -> bool {
    code::whose(place) == Whose::Nobody
}
