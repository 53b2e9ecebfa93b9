//! Finds out which file a process really gets its memory from.
//!
//! A mapped library proves nothing: it may never be called (if the program has its own malloc), or not be what its name says.
//! So the proof checks what the dynamic linker did, for each function of the malloc family, in two independent ways:
//!
//! - order: the first object in lookup order that defines the function;
//! - slots: the addresses that are stored in the loaded objects' import slots.
//!
//! A process proves its allocator if both name no other file than the requested library, something other than the C library
//! calls it, and the program contains no allocator.

use crate::control::{self, Blocks};
use crate::process::{Blind, Process};
use crate::{elf, family};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where one object's calls of one function go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    File(PathBuf),
    /// Code outside of any mapped file.
    Anonymous,
    /// Not called so far: the first definition in lookup order will be used.
    NotBoundYet,
}

/// An object that imports functions of the family.
#[derive(Clone, Debug)]
pub struct Bindings {
    pub object: PathBuf,
    pub targets: BTreeMap<&'static str, Target>,
}

#[derive(Clone, Debug, Default)]
pub struct Proof {
    pub program: PathBuf,
    /// The first object that defines each function of the family.
    pub definers: BTreeMap<&'static str, PathBuf>,
    pub bindings: Vec<Bindings>,
    /// Functions of the family that the program defines for itself, invisible to others.
    pub private: BTreeSet<&'static str>,
    /// Allocators that were recognised inside other objects than their own libraries.
    pub bundled: Vec<(PathBuf, Vec<&'static str>)>,
    pub build_ids: BTreeMap<PathBuf, String>,
    /// The allocators that were recognised in each object. Its file may have been removed since.
    pub allocators: BTreeMap<PathBuf, BTreeSet<&'static str>>,
    /// What hakmem's address map knows of the pointers in the process; None without hakmem.
    pub blocks: Option<Blocks>,
    /// Why `blocks` is None.
    pub no_blocks: String,
    /// It has no dynamic linker: all its calls stay inside.
    pub is_static: bool,
}

impl Proof {
    /// A proof from the file of a statically linked program, and from the process if there is one.
    pub fn of_static(program: &Path, pid: Option<i32>) -> Result<Proof, Blind> {
        let file = elf::read_cached(program).map_err(|error| Blind::Other(error.0))?;
        if file.exports("_r_debug") {
            return Err(Blind::Other(
                "the dynamic linker was started as a command; start the program itself".into(),
            ));
        }
        // A stripped file does not have the names.
        let mut inside: BTreeSet<&'static str> = file.private.clone();
        inside.insert("malloc");
        let mut proof = Proof {
            program: program.to_path_buf(),
            definers: inside
                .into_iter()
                .map(|name| (name, program.to_path_buf()))
                .collect(),
            build_ids: file
                .build_id
                .iter()
                .map(|id| (program.to_path_buf(), id.clone()))
                .collect(),
            allocators: BTreeMap::from([(program.to_path_buf(), file.allocators.clone())]),
            is_static: true,
            ..Proof::default()
        };
        if let Some(pid) = pid {
            proof.note_blocks(&Process::open_memory(pid)?);
        }
        Ok(proof)
    }

    fn note_blocks(&mut self, process: &Process) {
        match control::count_blocks(process) {
            Ok(blocks) => self.blocks = Some(blocks),
            Err(why) => self.no_blocks = why.to_string(),
        }
    }

    /// Examines a process. It should be stopped; for a running one, the answer holds for that moment.
    pub fn collect(pid: i32) -> Result<Proof, Blind> {
        let process = Process::open(pid)?;
        let mut proof = Proof {
            program: process.objects[0].path.clone(),
            ..Proof::default()
        };
        proof.private = process.objects[0].file.private.clone();
        for name in family::all() {
            if let Some(object) = process
                .objects
                .iter()
                .find(|object| object.file.exports(name))
            {
                proof.definers.insert(name, object.path.clone());
            }
        }
        proof.bindings = process
            .objects
            .iter()
            .filter(|object| !object.file.slots.is_empty())
            .map(|object| Bindings {
                object: object.path.clone(),
                targets: targets_of(&process, object),
            })
            .collect();
        for object in &process.objects {
            if let Some(id) = &object.file.build_id {
                proof.build_ids.insert(object.path.clone(), id.clone());
            }
            let allocators = object.file.allocators.clone();
            proof.allocators.insert(object.path.clone(), allocators);
            let bundled = object.file.bundled();
            if !bundled.is_empty() && !object.file.exports("malloc") {
                proof.bundled.push((object.path.clone(), bundled));
            }
        }
        proof.note_blocks(&process);
        process.check()?;
        Ok(proof)
    }

    /// All files that own a core function of the family, by either way.
    pub fn owners(&self) -> BTreeSet<&Path> {
        let first = self
            .definers
            .iter()
            .filter(|(name, _)| family::is_core(name))
            .map(|(_, path)| path.as_path());
        let bound = self
            .bindings
            .iter()
            .flat_map(|bindings| &bindings.targets)
            .filter(|(name, _)| family::is_core(name))
            .filter_map(|(_, target)| match target {
                Target::File(path) => Some(path.as_path()),
                Target::Anonymous => Some(Path::new("[anonymous]")),
                Target::NotBoundYet => None,
            });
        first.chain(bound).collect()
    }

    /// The allocators that were recognised in an object.
    pub fn inside(&self, object: &Path) -> BTreeSet<&'static str> {
        self.allocators.get(object).cloned().unwrap_or_default()
    }

    /// The objects whose calls for memory are bound to another object, even if they have made none yet.
    pub fn callers(&self) -> impl Iterator<Item = &Path> {
        self.bindings
            .iter()
            .filter(|bindings| {
                bindings.targets.iter().any(|(name, target)| {
                    family::is_core(name)
                        && *target != Target::NotBoundYet
                        && *target != Target::File(bindings.object.clone())
                })
            })
            .map(|bindings| bindings.object.as_path())
    }

    /// Functions that some object imports and that another file than `owner` provides.
    pub fn fallen_through(&self, owner: &Path) -> BTreeMap<&'static str, &Path> {
        let asked: BTreeSet<&'static str> = self
            .bindings
            .iter()
            .flat_map(|bindings| bindings.targets.keys().copied())
            .collect();
        self.definers
            .iter()
            .filter(|(name, path)| path.as_path() != owner && asked.contains(*name))
            .map(|(name, path)| (*name, path.as_path()))
            .collect()
    }

    /// Calls that do not follow the lookup order: from objects with a scope of their own.
    pub fn bound_elsewhere(&self) -> Vec<(&Path, &'static str, &Target)> {
        let mut found = Vec::new();
        for bindings in &self.bindings {
            for (name, target) in &bindings.targets {
                let first = self.definers.get(name);
                let expected = matches!(target, Target::File(path) if Some(path) == first);
                if !expected && *target != Target::NotBoundYet {
                    found.push((bindings.object.as_path(), *name, target));
                }
            }
        }
        found
    }

    /// An allocator inside the program, which no library can replace.
    pub fn inside_program(&self) -> Option<String> {
        if let Some((_, names)) = self.bundled.iter().find(|(path, _)| *path == self.program) {
            return Some(format!("has {} inside", names.join(" and ")));
        }
        self.private
            .contains("malloc")
            .then(|| "has its own malloc, which no library can replace".to_string())
    }
}

fn targets_of(
    process: &Process,
    object: &crate::process::Object,
) -> BTreeMap<&'static str, Target> {
    let mut targets: BTreeMap<&'static str, Target> = BTreeMap::new();
    for slot in &object.file.slots {
        let value = process
            .read_u64(object.base.wrapping_add(slot.offset))
            .unwrap_or(0);
        if value == 0 {
            continue; // a weak reference that nothing defines
        }
        let target = target_at(process, object, value, slot);
        // An object can have several slots for one name; a bound one tells more.
        let known = targets.entry(slot.name).or_insert(Target::NotBoundYet);
        if *known == Target::NotBoundYet {
            *known = target;
        }
    }
    targets
}

/// The meaning of a slot's value. If it points into the importing object or the program, but not at such a function there, it
/// still points at a stub: nothing was called through it so far. A variable that points at another function was set by the
/// program: Python's decimal sets its library's malloc to Python's own.
fn target_at(
    process: &Process,
    object: &crate::process::Object,
    value: u64,
    slot: &elf::Slot,
) -> Target {
    let Some(path) = process.file_at(value) else {
        return if slot.is_variable {
            Target::NotBoundYet
        } else {
            Target::Anonymous
        };
    };
    let may_be_other = slot.is_variable || path == object.path || path == process.objects[0].path;
    let is_function = process.object_at(path).is_some_and(|target| {
        target
            .file
            .exported_at(slot.name)
            .iter()
            .any(|at| target.base.wrapping_add(*at) == value)
    });
    if may_be_other && !is_function {
        Target::NotBoundYet
    } else {
        Target::File(path.to_path_buf())
    }
}
