//! What the return addresses of call stacks are called.

use crate::format::Module;
use crate::reader::Reader;
use addr2line::Loader;
use hakmem_lab::error::Result;
use object::{Object, ObjectSegment, ReadCache};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;

/// Names the addresses of one process.
pub struct Symbols {
    modules: Vec<Module>,
    /// By path; None: the file is not there, or cannot be read.
    loaders: FxHashMap<String, Option<Loader>>,
    names: FxHashMap<u64, Vec<String>>,
    stacks: FxHashMap<u32, Vec<u64>>,
}

impl Symbols {
    pub fn of(reader: &Reader, process: u32) -> Result<Symbols> {
        Ok(Symbols {
            modules: reader.modules(process)?,
            loaders: FxHashMap::default(),
            names: FxHashMap::default(),
            stacks: reader.stacks(process)?.into_iter().collect(),
        })
    }

    /// The frames of a stack, innermost first, those included that the compiler inlined.
    pub fn stack(&mut self, number: u32) -> Vec<String> {
        let frames = self.stacks.get(&number).cloned().unwrap_or_default();
        frames
            .into_iter()
            .flat_map(|frame| self.name(frame))
            .collect()
    }

    fn name(&mut self, address: u64) -> Vec<String> {
        if let Some(names) = self.names.get(&address) {
            return names.clone();
        }
        // A return address is behind its call, and may be behind the function's end.
        let names = self
            .look_up(address - 1)
            .unwrap_or_else(|| vec![format!("{address:#x}")]);
        self.names.insert(address, names.clone());
        names
    }

    fn look_up(&mut self, address: u64) -> Option<Vec<String>> {
        // The newest mapping of the address counts.
        let module = self
            .modules
            .iter()
            .rev()
            .find(|module| (module.start..module.end).contains(&address))?;
        let in_file = address - module.start + module.offset;
        let loader = self
            .loaders
            .entry(module.path.clone())
            .or_insert_with(|| Loader::new(&module.path).ok());
        let file = Path::new(&module.path)
            .file_name()?
            .to_string_lossy()
            .into_owned();
        let plain = vec![format!("{file}+{in_file:#x}")];
        let Some(loader) = loader else {
            return Some(plain);
        };
        let Some(virtual_address) = virtual_address(Path::new(&module.path), in_file) else {
            return Some(plain);
        };
        let names = describe(loader, virtual_address, &file);
        Some(if names.is_empty() { plain } else { names })
    }
}

/// The functions that are there, and where: their source line, or their file.
fn describe(loader: &Loader, address: u64, file: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(mut frames) = loader.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame
                .function
                .as_ref()
                .and_then(|name| name.demangle().ok());
            if let Some(name) = name {
                let place = frame.location.and_then(|location| {
                    let source = Path::new(location.file?).file_name()?.to_string_lossy();
                    Some(format!("{source}:{}", location.line?))
                });
                names.push(format!("{name} ({})", place.as_deref().unwrap_or(file)));
            }
        }
    }
    if names.is_empty() {
        let symbol = loader.find_symbol(address);
        names.extend(symbol.map(|name| {
            let name = addr2line::demangle_auto(name.into(), None);
            format!("{name} ({file})")
        }));
    }
    names
}

/// Where the program headers put what lies there in the file.
fn virtual_address(path: &Path, in_file: u64) -> Option<u64> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    file.segments().find_map(|segment| {
        let (offset, bytes) = segment.file_range();
        (offset..offset + bytes)
            .contains(&in_file)
            .then(|| in_file - offset + segment.address())
    })
}
