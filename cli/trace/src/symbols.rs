//! Names for return addresses.

use crate::code_files::{self, Found};
use crate::functions::Functions;
use crate::kept_files::PlaceNames;
use crate::reader::Reader;
use hakmem_heap::code::{self, Code, Identity, Whose};
use hakmem_heap::code_files::{Missing, file_name};
use hakmem_heap::perf_map::{Absent, MapPlace, PerfMap};
use hakmem_lab::error::Result;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

pub use hakmem_heap::code_files::Sources;

/// Names the stacks of one recorded process.
pub struct Symbols {
    pub names: Names,
    stacks: FxHashMap<u32, Vec<u64>>,
    /// How many frames were requested; a stack with more frames is incomplete.
    most: usize,
}

impl Symbols {
    pub fn of(reader: &Reader, process: u32) -> Result<Symbols> {
        // `started` is in whole seconds, so the recording began before the next one.
        let started = Duration::from_secs(reader.beginning.started + 1);
        let sources = Sources {
            as_of: SystemTime::UNIX_EPOCH.checked_add(started),
            ..Sources::default()
        };
        Ok(Symbols {
            names: Names {
                places: reader.names(process)?.into_iter().map(named).collect(),
                ..Names::new(reader.code(process)?, sources)
            },
            stacks: reader.stacks(process)?.into_iter().collect(),
            most: reader.beginning.stack_frames as usize,
        })
    }

    /// The frames of a stack, the innermost first, including inlined functions.
    pub fn stack(&mut self, number: u32) -> Vec<String> {
        let mut frames = self.stacks.get(&number).cloned().unwrap_or_default();
        let goes_on = self.most > 0 && frames.len() > self.most;
        frames.truncate(if goes_on { self.most } else { frames.len() });
        let mut names: Vec<String> = frames
            .into_iter()
            .flat_map(|frame| self.names.of(frame))
            .collect();
        if goes_on {
            names.push(format!(
                "… (more callers: {} frames were recorded)",
                self.most
            ));
        }
        names
    }
}

/// Names the return addresses of one process, only from the very files that were mapped into it.
pub struct Names {
    code: Vec<Code>,
    sources: Sources,
    /// By path and identity.
    files: FxHashMap<(Vec<u8>, Identity), Rc<Looked>>,
    places: FxHashMap<u64, Rc<Place>>,
    /// Names of generated code; None: not read yet.
    map: Option<PerfMap>,
    notes: Vec<String>,
}

/// What is known of a place.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Place {
    /// The address of the call, not of its return.
    pub address: u64,
    /// The function, after those that were inlined there; or what is shown if there is no name.
    pub frames: Vec<String>,
    pub has_names: bool,
    /// The mapping that contains the address.
    pub code: Option<Code>,
}

const OF_THE_LAST: &str = "names are those of the libraries mapped last: libraries unloaded \
                           before are not known (with a glibc before 2.35, and in traces of older versions)";

/// A place whose names are in the trace.
fn named((place, frames): PlaceNames) -> (u64, Rc<Place>) {
    let known = Place {
        address: code::address_of(place).saturating_sub(1),
        frames,
        has_names: true,
        code: None,
    };
    (place, Rc::new(known))
}

type Looked = std::result::Result<Known, Missing>;

/// A file whose functions were read.
struct Known {
    functions: Functions,
    is_debug_only: bool,
}

impl Names {
    pub fn new(code: Vec<Code>, sources: Sources) -> Names {
        Names {
            code,
            sources,
            files: FxHashMap::default(),
            places: FxHashMap::default(),
            map: None,
            notes: Vec::new(),
        }
    }

    /// Made from saved names (`known`) and notes, if neither code nor files exist any more.
    pub fn of_known(places: Vec<(u64, Place)>, notes: Vec<String>) -> Names {
        let places = places.into_iter();
        Names {
            places: places
                .map(|(place, known)| (place, Rc::new(known)))
                .collect(),
            notes,
            ..Names::new(Vec::new(), Sources::default())
        }
    }

    /// All places that were asked for so far.
    pub fn known(&self) -> Vec<(u64, Place)> {
        let places = self.places.iter();
        let mut places: Vec<(u64, Place)> = places
            .map(|(place, known)| (*place, Place::clone(known)))
            .collect();
        places.sort_unstable_by_key(|(place, _)| *place);
        places
    }

    /// The function that contains a return address, after those that were inlined there. By place.
    pub fn of(&mut self, place: u64) -> Vec<String> {
        self.place(place).frames.clone()
    }

    pub fn place(&mut self, place: u64) -> Rc<Place> {
        if let Some(known) = self.places.get(&place) {
            return known.clone();
        }
        let address = code::address_of(place);
        // A return address is behind its call, and may be behind the function's end.
        let inside = address.saturating_sub(1);
        let mut known = match code::whose(place) {
            // The newest mapping of the address counts.
            Whose::Untold => {
                let known = self.look_up(inside, |code| {
                    code.number == 0 && code.range.contains(&inside)
                });
                if known.has_names {
                    self.note(OF_THE_LAST.into());
                }
                match known.code {
                    Some(_) => known,
                    None => self.made_at_run_time(inside).unwrap_or_default(),
                }
            }
            Whose::Of(number) => self.look_up(inside, |code| code.number == number),
            Whose::Nobody => {
                let known = self.made_at_run_time(inside);
                let known = known.or_else(|| self.copied(inside));
                known.unwrap_or_else(|| Place {
                    frames: vec![format!("{address:#x} (of no file)")],
                    ..Place::default()
                })
            }
            Whose::Forgotten => {
                self.note(
                    "no names from some files: the process has loaded too many to keep them all"
                        .into(),
                );
                Place::default()
            }
        };
        known.address = inside;
        if known.frames.is_empty() {
            known.frames.push(format!("{address:#x}"));
        }
        let known = Rc::new(known);
        self.places.insert(place, known.clone());
        known
    }

    /// A place that is not an address; `name` names it.
    pub fn told(&mut self, place: u64, name: impl FnOnce() -> String) -> Rc<Place> {
        let known = self.places.entry(place).or_insert_with(|| {
            Rc::new(Place {
                frames: vec![name()],
                has_names: true,
                ..Place::default()
            })
        });
        known.clone()
    }

    /// Why some of the requested addresses have no names: one sentence per file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn look_up(&mut self, address: u64, is_it: impl Fn(&Code) -> bool) -> Place {
        let Some(code) = self.code.iter().rev().find(|code| is_it(code)).cloned() else {
            return Place::default();
        };
        let known = self.file(&code);
        let mut frames = match known.as_ref() {
            Ok(known) => known.functions.at(address, &code, known.is_debug_only),
            Err(missing) => {
                self.note(missing.text(&code));
                Vec::new()
            }
        };
        let has_names = !frames.is_empty();
        if !has_names {
            let at = address.wrapping_sub(code.range.start) + code.offset.unwrap_or(0);
            frames.push(format!("{}+{at:#x}", file_name(&code.path)));
        }
        Place {
            address,
            frames,
            has_names,
            code: Some(self.mapped(address, code)),
        }
    }

    /// The name that the process has written down for perf.
    fn made_at_run_time(&mut self, address: u64) -> Option<Place> {
        if self.map.is_none() {
            let map = match &self.sources.map {
                Some(place) => place.read(),
                None => match self.sources.process.and_then(MapPlace::of) {
                    Some(place) => place.read(),
                    None => Err(Absent::Never),
                },
            };
            if let Err(why @ Absent::Refused { .. }) = &map {
                self.note(why.to_string());
            }
            self.map = Some(map.unwrap_or_default());
        }
        let name = self.map.as_ref()?.name(address)?;
        Some(Place {
            frames: vec![name],
            has_names: true,
            ..Place::default()
        })
    }

    /// A second mapping of a part of a file, unknown to the dynamic linker: Node copies its own functions to addresses near its
    /// generated code. The names are those of the first mapping.
    fn copied(&mut self, address: u64) -> Option<Place> {
        let is_at = |code: &Code, address| code.number == 0 && code.range.contains(&address);
        let copy = self.code.iter().rev().find(|code| is_at(code, address))?;
        let in_file = copy.offset? + (address - copy.range.start);
        let there = |code: &Code| {
            let from_start = in_file.checked_sub(code.offset?)?;
            let there = code.range.start.checked_add(from_start)?;
            let is_first = code.range != copy.range
                && code.path == copy.path
                && code.identity == copy.identity
                && is_at(code, there);
            is_first.then_some(there)
        };
        let first = self.code.iter().find_map(there)?;
        let copy = copy.clone();
        let known = self.look_up(first, |code| is_at(code, first));
        Some(Place {
            code: Some(copy),
            ..known
        })
    }

    /// The part of a file that is mapped at the address, if it is known: a process's numbers refer to whole files.
    fn mapped(&self, address: u64, whole: Code) -> Code {
        let is_part = |code: &&Code| {
            code.number == 0
                && code.range.contains(&address)
                && code.identity == whole.identity
                && code.base == whole.base
        };
        let part = self.code.iter().rev().find(is_part).cloned();
        part.unwrap_or(whole)
    }

    fn file(&mut self, code: &Code) -> Rc<Looked> {
        let key = (code.path.clone(), code.identity.clone());
        if let Some(known) = self.files.get(&key) {
            return known.clone();
        }
        let known = code_files::find(code, &self.sources).map(|found| {
            let Found { is_debug_only, .. } = found;
            let name = file_name(&code.path);
            Known {
                functions: Functions::read(&found, code, &self.sources, name),
                is_debug_only,
            }
        });
        let known = Rc::new(known);
        self.files.insert(key, known.clone());
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakmem_heap::live::LiveProcess;

    #[test]
    fn code_of_a_second_mapping_has_the_names_of_the_first() {
        let process = LiveProcess::open(i32::try_from(std::process::id()).unwrap()).unwrap();
        let mut code = code::mapped_now(&code::of_files(&process.areas), &process);
        let function = Symbols::of as *const () as u64 + 1;
        let mut copy = code
            .iter()
            .find(|code| code.range.contains(&function))
            .unwrap()
            .clone();
        let distance = (1_u64 << 46).wrapping_sub(copy.range.start);
        let there = |address: u64| address.wrapping_add(distance);
        copy.range = there(copy.range.start)..there(copy.range.end);
        code.push(copy);
        let nobodys = 0xFFFE << code::PLACE_LOG2;
        let mut names = Names::new(code, Sources::default());
        let name = names.of(function + 1);
        assert!(name[0].contains("Symbols"), "{name:?}");
        assert_eq!(names.of(nobodys | there(function + 1)), name);
        let elsewhere = names.of(nobodys | 4096);
        assert!(elsewhere[0].ends_with("(of no file)"), "{elsewhere:?}");
    }
}
