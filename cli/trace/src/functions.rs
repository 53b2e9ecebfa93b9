//! Finds the functions of a file by address.

use crate::code_files::Found;
use crate::debug_files::{DebugFile, Places};
use addr2line::Loader;
use hakmem_heap::code::Code;
use hakmem_heap::code_files::{ROOT, Sources};
use hakmem_heap::shown::shown;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Rounds down to a page of 4 KiB. Some processors have larger pages, and their files are aligned to those.
const PAGE_MASK: u64 = !4095;

/// The functions of a file, as far as it can be read.
#[derive(Default)]
pub struct Functions {
    /// The file's name, to be shown.
    name: String,
    loader: Option<Loader>,
    /// The segments of the program headers: file offset, size, address.
    segments: Vec<(u64, u64, u64)>,
    /// Sorted by address.
    all: Vec<Function>,
}

struct Function {
    address: u64,
    bytes: u64,
    name: Vec<u8>,
}

impl Functions {
    /// Reads the functions of a file that was found for `code`.
    pub fn read(found: &Found, code: &Code, sources: &Sources, name: String) -> Functions {
        let mut functions = Functions {
            name,
            ..Functions::default()
        };
        let Ok(file) = File::open(&found.path) else {
            return functions;
        };
        let cache = ReadCache::new(file);
        let Ok(file) = object::File::parse(&cache) else {
            return functions;
        };
        let segments = file.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset, bytes, segment.address())
        });
        functions.segments = segments.collect();
        let places = Places {
            path: &found.path,
            named: Path::new(OsStr::from_bytes(&code.path)),
            roots: &roots(sources),
        };
        let debug = DebugFile::of(&file, &places);
        functions.loader = match &debug {
            Some(debug) => Loader::new_with_sup(&debug.path, debug.shared.as_ref()).ok(),
            None => Loader::new(&found.path).ok(),
        };
        functions.add(&file);
        functions.add_packed(&file);
        if let Some(other) = debug.and_then(|debug| File::open(debug.path).ok()) {
            let cache = ReadCache::new(other);
            if let Ok(other) = object::File::parse(&cache) {
                functions.add(&other);
            }
        }
        functions.all.sort_by_key(|function| function.address);
        functions
    }

    fn add<'data, R: ReadRef<'data>>(&mut self, file: &object::File<'data, R>) {
        let symbols = file.symbols().chain(file.dynamic_symbols());
        self.all
            .extend(symbols.filter_map(|symbol| function(&symbol)));
    }

    /// Reads .gnu_debugdata: some distributions leave a small compressed symbol table in a stripped file.
    fn add_packed<'data, R: ReadRef<'data>>(&mut self, file: &object::File<'data, R>) {
        let section = file.section_by_name(".gnu_debugdata");
        let Some(Ok(packed)) = section.map(|section| section.data()) else {
            return;
        };
        let mut bytes = Vec::new();
        if lzma_rs::xz_decompress(&mut &*packed, &mut bytes).is_ok()
            && let Ok(inner) = object::File::parse(&*bytes)
        {
            self.add(&inner);
        }
    }

    /// The function at an address of the process, after those that were inlined there. Empty if nothing is known.
    pub fn at(&self, address: u64, code: &Code, is_debug_only: bool) -> Vec<String> {
        let by_offset = code.offset.filter(|_| !is_debug_only).and_then(|offset| {
            let in_file = address - code.range.start + offset;
            let mut segments = self.segments.iter();
            let is_in = |&&(offset, bytes, _): &&(u64, u64, u64)| {
                in_file.checked_sub(offset).is_some_and(|at| at < bytes)
            };
            let (offset, _, start) = segments.find(is_in)?;
            Some(in_file - offset + start)
        });
        let by_base = code.base.filter(|_| code.offset.is_none() || is_debug_only);
        let by_base = by_base.and_then(|base| {
            let first = self.segments.iter().map(|(_, _, address)| *address).min()?;
            Some(address - base + (first & PAGE_MASK))
        });
        by_offset
            .or(by_base)
            .map_or(Vec::new(), |address| self.names(address))
    }

    /// The functions at an address, each with its source line, or else with the file.
    fn names(&self, address: u64) -> Vec<String> {
        let mut found: Vec<(Vec<u8>, Option<String>)> = Vec::new();
        let frames = self.loader.as_ref().map(|one| one.find_frames(address));
        if let Some(Ok(mut frames)) = frames {
            while let Ok(Some(frame)) = frames.next() {
                if let Some(name) = frame.function {
                    let place = frame.location.and_then(|location| {
                        let source = Path::new(location.file?).file_name()?;
                        Some(format!("{}:{}", shown(source.as_bytes()), location.line?))
                    });
                    found.push((name.name.to_vec(), place));
                }
            }
        }
        let symbol = self.function_at(address);
        match (found.last_mut(), symbol) {
            // Debugging information names file-local functions without classes, namespaces and parameters; the symbol table has
            // their full names. The last function is the one into which the others were inlined.
            (Some((name, _)), Some(symbol)) if is_mangled(&symbol.name) && !is_mangled(name) => {
                name.clone_from(&symbol.name);
            }
            (None, Some(symbol)) => found.push((symbol.name.clone(), None)),
            _ => {}
        }
        let named = found.iter().map(|(name, place)| {
            let place = place.as_ref().unwrap_or(&self.name);
            format!("{} ({place})", demangled(name))
        });
        named.collect()
    }

    /// The function that contains the address. A function that ends before it would be a wrong name, for example the last
    /// exported function before a stripped one.
    fn function_at(&self, address: u64) -> Option<&Function> {
        let behind = self
            .all
            .partition_point(|function| function.address <= address);
        let first = behind.checked_sub(1)?;
        let function = &self.all[first];
        (address - function.address < function.bytes).then_some(function)
    }
}

fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

/// The name as its language writes it.
fn demangled(name: &[u8]) -> String {
    let text = std::str::from_utf8(name).ok().filter(|_| is_mangled(name));
    let rust = text.and_then(|text| rustc_demangle::try_demangle(text).ok());
    let written = rust.map(|name| format!("{name:#}"));
    let written = written.or_else(|| demangled_letters(text?));
    shown(written.as_ref().map_or(name, |name| name.as_bytes()))
}

/// The crate accepts only ASCII: each byte of another letter is replaced by a Q.
fn demangled_letters(name: &str) -> Option<String> {
    let mut masked = name.to_string();
    let mut replaced = Vec::new();
    for (at, _) in name.match_indices(|letter: char| letter.is_ascii_digit()) {
        let digits: String = name[at..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let start = at + digits.len();
        let end = start.checked_add(digits.parse().ok()?)?;
        let identifier = name.get(start..end).filter(|one| !one.is_ascii());
        let is_whole = !name[..at].ends_with(|before: char| before.is_ascii_digit());
        if let Some(identifier) = identifier.filter(|_| is_whole) {
            let mask = |byte: u8| {
                if byte.is_ascii() {
                    char::from(byte)
                } else {
                    'Q'
                }
            };
            let mask: String = identifier.bytes().map(mask).collect();
            if name.contains(&mask) {
                return None; // the two could not be told apart
            }
            masked.replace_range(start..end, &mask);
            replaced.push((mask, identifier));
        }
    }
    let mut written = demangled_cxx(&masked)?;
    for (mask, identifier) in replaced {
        written = written.replace(&mask, identifier);
    }
    Some(written)
}

fn demangled_cxx(name: &str) -> Option<String> {
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    // The crate takes the first parameter of a templated constructor for its return type. No parameters are better than wrong
    // ones.
    let is_made_by_template = ["C1I", "C2I", "C3I"].iter().any(|part| name.contains(part));
    let options = match is_made_by_template {
        true => cpp_demangle::DemangleOptions::new().no_params(),
        false => cpp_demangle::DemangleOptions::new(),
    };
    let mut written = symbol.demangle_with_options(&options).ok()?;
    // The crate writes the template arguments of `operator<` so that it looks like `<<`.
    if name.contains("ltI") && !name.contains("ls") {
        written = written.replace("operator<<", "operator< <");
    }
    // The crate writes the parts of a literal operator in the wrong order.
    let Some((before, after)) = written.split_once("::operator \"\"") else {
        return Some(written);
    };
    let (scope, suffix) = before.rsplit_once("operator")?;
    Some(format!("{scope}operator\"\" {suffix}{after}"))
}

/// The process may have another root folder, and other debug files, than we have.
fn roots(sources: &Sources) -> Vec<PathBuf> {
    let inside = sources
        .process
        .map(|pid| format!("/proc/{pid}/root{ROOT}").into());
    inside.into_iter().chain([PathBuf::from(ROOT)]).collect()
}

fn function<'data>(symbol: &impl ObjectSymbol<'data>) -> Option<Function> {
    (symbol.is_definition() && symbol.kind() == SymbolKind::Text).then_some(Function {
        address: symbol.address(),
        bytes: symbol.size(),
        name: symbol.name_bytes().ok()?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(offset: Option<u64>) -> Code {
        Code {
            range: 0x7000_1000..0x7000_9000,
            base: Some(0x7000_0000),
            offset,
            ..Code::default()
        }
    }

    #[test]
    fn an_address_behind_a_function_has_not_its_name() {
        let functions = Functions {
            name: "program".into(),
            segments: vec![(0x1000, 0x1000, 0x5000)],
            all: vec![Function {
                address: 0x5100,
                bytes: 0x20,
                name: b"known".into(),
            }],
            ..Functions::default()
        };
        let at = |in_file: u64| functions.at(0x7000_0000 + in_file, &code(Some(0x1000)), false);
        assert_eq!(at(0x1100), ["known (program)"]);
        assert_eq!(at(0x111f), ["known (program)"]);
        for nothing in [0x1120, 0x10ff, 0x8fff] {
            assert_eq!(at(nothing), [""; 0]);
        }
        // The first segment begins where the file's beginning is mapped.
        let in_all = |address: u64| functions.at(0x7000_0000 + address, &code(None), false);
        assert_eq!(in_all(0x100), ["known (program)"]);
        assert_eq!(in_all(0x120), [""; 0]);
    }

    #[test]
    fn names_are_as_their_language_writes_them() {
        let known = [
            ("plain", "plain"),
            ("_Zli3_kby", "operator\"\" _kb(unsigned long long)"),
            ("_ZN3one3twoEmc", "one::two(unsigned long, char)"),
            ("_ZN1AC1IiEEmc", "A::A<int>"),
            ("_ZN2nsli3_kbEy", "ns::operator\"\" _kb(unsigned long long)"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_RNvC1a4main", "a::main"),
            (
                "_ZltIiEbRKT_S2_",
                "bool operator< <int>(int const&, int const&)",
            ),
            (
                "_ZlsIiEbRKT_S2_",
                "bool operator<< <int>(int const&, int const&)",
            ),
            ("_Z8donnéesv", "données()"),
            (
                "_ZN6\u{751f}\u{6210}3newEm",
                "\u{751f}\u{6210}::new(unsigned long)",
            ),
            ("_Z", "_Z"),
            ("_ZN\u{7}", "_ZN\\x07"),
        ];
        for (name, expected) in known {
            assert_eq!(demangled(name.as_bytes()), expected);
        }
    }

    #[test]
    fn a_function_of_this_test_has_its_name() {
        let path = std::env::current_exe().unwrap();
        let found = Found {
            path,
            is_debug_only: false,
        };
        let own = Functions::read(&found, &Code::default(), &Sources::default(), "test".into());
        let is_it = |function: &&Function| {
            let name = b"a_function_of_this_test_has_its_name";
            function.name.windows(name.len()).any(|part| part == name)
        };
        let known = own.all.iter().find(is_it).unwrap();
        let names = own.names(known.address);
        assert!(
            names.last().unwrap().contains("a_function_of_this_test"),
            "{names:?}"
        );
    }
}
