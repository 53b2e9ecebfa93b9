//! What return addresses are called.

use crate::code_files::{self, Found};
use crate::functions::Functions;
use crate::reader::Reader;
use hakmem_heap::code::{self, Code, Identity, Whose};
use hakmem_heap::code_files::{Missing, file_name};
use hakmem_lab::error::Result;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

pub use hakmem_heap::code_files::Sources;

/// Names the stacks of one recorded process.
pub struct Symbols {
    pub names: Names,
    stacks: FxHashMap<u32, Vec<u64>>,
    /// Frames that were asked for; a stack with more of them went on.
    most: usize,
}

impl Symbols {
    pub fn of(reader: &Reader, process: u32) -> Result<Symbols> {
        // The second in which it began is over one later.
        let started = Duration::from_secs(reader.beginning.started + 1);
        let sources = Sources {
            process: None,
            as_of: SystemTime::UNIX_EPOCH.checked_add(started),
        };
        Ok(Symbols {
            names: Names {
                names: reader.names(process)?.into_iter().collect(),
                ..Names::new(reader.code(process)?, sources)
            },
            stacks: reader.stacks(process)?.into_iter().collect(),
            most: reader.beginning.stack_frames as usize,
        })
    }

    /// The frames of a stack, innermost first, those included that the compiler inlined.
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

/// Names the return addresses of one process, from the files that were mapped into it: from those, or not at all.
pub struct Names {
    code: Vec<Code>,
    sources: Sources,
    /// By path and identity.
    files: FxHashMap<(Vec<u8>, Identity), Rc<Looked>>,
    names: FxHashMap<u64, Vec<String>>,
    notes: Vec<String>,
}

type Looked = std::result::Result<Known, Missing>;

/// A file whose functions are known.
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
            names: FxHashMap::default(),
            notes: Vec::new(),
        }
    }

    /// The function that a return address is in, behind those that the compiler inlined there. By place.
    pub fn of(&mut self, place: u64) -> Vec<String> {
        if let Some(names) = self.names.get(&place) {
            return names.clone();
        }
        let address = code::address_of(place);
        // A return address is behind its call, and may be behind the function's end.
        let inside = address.saturating_sub(1);
        let names = match code::whose(place) {
            // The newest mapping of the address counts.
            Whose::Untold => self.look_up(inside, |code| {
                code.number == 0 && code.range.contains(&inside)
            }),
            Whose::Of(number) => self.look_up(inside, |code| code.number == number),
            Whose::Nobody => Some(vec![format!("{address:#x} (of no file)")]),
            Whose::Forgotten => {
                self.note(
                    "no names from some files: the process has loaded too many to tell all".into(),
                );
                None
            }
        };
        let names = names.unwrap_or_else(|| vec![format!("{address:#x}")]);
        self.names.insert(place, names.clone());
        names
    }

    /// Why some of the addresses that were asked for have no names: a sentence a file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn look_up(&mut self, address: u64, is_it: impl Fn(&Code) -> bool) -> Option<Vec<String>> {
        let code = self.code.iter().rev().find(|code| is_it(code))?.clone();
        let known = self.file(&code);
        let names = match known.as_ref() {
            Ok(known) => known.functions.at(address, &code, known.is_debug_only),
            Err(missing) => {
                self.note(missing.text(&code));
                Vec::new()
            }
        };
        if names.is_empty() {
            let at = address.wrapping_sub(code.range.start) + code.offset.unwrap_or(0);
            return Some(vec![format!("{}+{at:#x}", file_name(&code.path))]);
        }
        Some(names)
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
