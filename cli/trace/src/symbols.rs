//! What return addresses are called.

use crate::debug_files::{DebugFile, ROOT};
use crate::format::Module;
use crate::reader::Reader;
use addr2line::Loader;
use hakmem_lab::error::Result;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;

/// Names the stacks of one recorded process.
pub struct Symbols {
    names: Names,
    stacks: FxHashMap<u32, Vec<u64>>,
}

impl Symbols {
    pub fn of(reader: &Reader, process: u32) -> Result<Symbols> {
        Ok(Symbols {
            names: Names::new(reader.modules(process)?),
            stacks: reader.stacks(process)?.into_iter().collect(),
        })
    }

    /// The frames of a stack, innermost first, those included that the compiler inlined.
    pub fn stack(&mut self, number: u32) -> Vec<String> {
        let frames = self.stacks.get(&number).cloned().unwrap_or_default();
        frames
            .into_iter()
            .flat_map(|frame| self.names.of(frame))
            .collect()
    }
}

/// Names the return addresses of one process, from the files that are mapped into it.
pub struct Names {
    modules: Vec<Module>,
    /// By path.
    files: FxHashMap<String, Code>,
    names: FxHashMap<u64, Vec<String>>,
}

impl Names {
    pub fn new(modules: Vec<Module>) -> Names {
        Names {
            modules,
            files: FxHashMap::default(),
            names: FxHashMap::default(),
        }
    }

    /// The function that a return address is in, behind those that the compiler inlined there.
    pub fn of(&mut self, address: u64) -> Vec<String> {
        if let Some(names) = self.names.get(&address) {
            return names.clone();
        }
        // A return address is behind its call, and may be behind the function's end.
        let names = self
            .look_up(address.saturating_sub(1))
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
        let code = self
            .files
            .entry(module.path.clone())
            .or_insert_with(|| Code::read(Path::new(&module.path)));
        Some(code.describe(in_file))
    }
}

/// A file with code, as far as it can be read; it may be gone.
struct Code {
    name: String,
    loader: Option<Loader>,
    /// Where the program headers put what lies in the file: offset, bytes, address.
    segments: Vec<(u64, u64, u64)>,
    /// By address.
    functions: Vec<Function>,
}

struct Function {
    address: u64,
    bytes: u64,
    name: String,
}

impl Code {
    fn read(path: &Path) -> Code {
        let mut code = Code {
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            loader: None,
            segments: Vec::new(),
            functions: Vec::new(),
        };
        let Ok(file) = File::open(path) else {
            return code;
        };
        let cache = ReadCache::new(file);
        let Ok(file) = object::File::parse(&cache) else {
            return code;
        };
        let segments = file.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset, bytes, segment.address())
        });
        code.segments = segments.collect();
        let debug = DebugFile::of(path, &file, Path::new(ROOT));
        code.loader = match &debug {
            Some(debug) => Loader::new_with_sup(&debug.path, debug.shared.as_ref()).ok(),
            None => Loader::new(path).ok(),
        };
        code.add_functions(&file);
        if let Some(other) = debug.and_then(|debug| File::open(debug.path).ok()) {
            let cache = ReadCache::new(other);
            if let Ok(other) = object::File::parse(&cache) {
                code.add_functions(&other);
            }
        }
        code.functions.sort_by_key(|function| function.address);
        code
    }

    fn add_functions<'data, R: ReadRef<'data>>(&mut self, file: &object::File<'data, R>) {
        let symbols = file.symbols().chain(file.dynamic_symbols());
        self.functions
            .extend(symbols.filter_map(|symbol| function(&symbol)));
    }

    fn describe(&self, in_file: u64) -> Vec<String> {
        let segment = self
            .segments
            .iter()
            .find(|(offset, bytes, _)| (*offset..offset + bytes).contains(&in_file));
        let names = segment.map_or(Vec::new(), |(offset, _, address)| {
            self.names(in_file - offset + address)
        });
        if names.is_empty() {
            vec![format!("{}+{in_file:#x}", self.name)]
        } else {
            names
        }
    }

    /// The functions that are there, and where: their source line, or their file.
    fn names(&self, address: u64) -> Vec<String> {
        let mut names = Vec::new();
        let frames = self.loader.as_ref().map(|one| one.find_frames(address));
        if let Some(Ok(mut frames)) = frames {
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
                    names.push(format!("{name} ({})", place.unwrap_or(self.name.clone())));
                }
            }
        }
        if names.is_empty() {
            names.extend(self.function_at(address).map(|function| {
                let name = addr2line::demangle_auto(function.name.as_str().into(), None);
                format!("{name} ({})", self.name)
            }));
        }
        names
    }

    /// The function that has the address in it. One that only precedes it, as the last exported function
    /// before a stripped one does, would be a wrong name.
    fn function_at(&self, address: u64) -> Option<&Function> {
        let behind = self
            .functions
            .partition_point(|function| function.address <= address);
        let first = behind.checked_sub(1)?;
        let function = &self.functions[first];
        (address - function.address < function.bytes).then_some(function)
    }
}

fn function<'data>(symbol: &impl ObjectSymbol<'data>) -> Option<Function> {
    (symbol.is_definition() && symbol.kind() == SymbolKind::Text).then_some(Function {
        address: symbol.address(),
        bytes: symbol.size(),
        name: symbol.name().ok()?.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_behind_a_function_has_not_its_name() {
        let code = Code {
            name: "program".into(),
            loader: None,
            segments: vec![(0x1000, 0x1000, 0x5000)],
            functions: vec![Function {
                address: 0x5100,
                bytes: 0x20,
                name: "known".into(),
            }],
        };
        assert_eq!(code.describe(0x1100), ["known (program)"]);
        assert_eq!(code.describe(0x111f), ["known (program)"]);
        assert_eq!(code.describe(0x1120), ["program+0x1120"]);
        assert_eq!(code.describe(0x10ff), ["program+0x10ff"]);
        assert_eq!(code.describe(0x9000), ["program+0x9000"]);
    }

    #[test]
    fn a_function_of_this_test_has_its_name() {
        let own = Code::read(&std::env::current_exe().unwrap());
        let known = own
            .functions
            .iter()
            .find(|function| {
                function
                    .name
                    .contains("a_function_of_this_test_has_its_name")
            })
            .unwrap();
        let (offset, _, start) = own
            .segments
            .iter()
            .find(|(_, bytes, start)| (*start..start + bytes).contains(&known.address))
            .unwrap();
        let names = own.describe(known.address - start + offset);
        assert!(
            names.last().unwrap().contains("a_function_of_this_test"),
            "{names:?}"
        );
    }
}
