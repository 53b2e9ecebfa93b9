//! Reads back what `hakmem profile --pprof` writes: mappings with build ids, and the places in them.

mod support;

use flate2::read::GzDecoder;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use support::protobuf::{Message, message, number, parts};
use support::waiting::Waiting;
use support::{Workshop, library, text};

#[derive(Debug)]
struct Mapping {
    start: u64,
    limit: u64,
    offset: u64,
    file: String,
    build_id: String,
    has_functions: bool,
    has_lines: bool,
}

struct Profile {
    mappings: HashMap<u64, Mapping>,
    /// The mapping, the address, and the functions.
    locations: Vec<(u64, u64, Vec<String>)>,
}

fn read(path: &Path) -> Profile {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    let profile = message(&bytes);
    let texts = profile.iter().filter(|(field, ..)| *field == 6);
    let texts: Vec<String> = texts
        .map(|(.., bytes)| String::from_utf8(bytes.clone()).unwrap())
        .collect();
    let name = |message: &Message, field| texts[number(message, field) as usize].clone();
    let mappings = parts(&profile, 3);
    let mappings = mappings.iter().map(|one| {
        let mapping = Mapping {
            start: number(one, 2),
            limit: number(one, 3),
            offset: number(one, 4),
            file: name(one, 5),
            build_id: name(one, 6),
            has_functions: number(one, 7) == 1,
            has_lines: number(one, 9) == 1,
        };
        (number(one, 1), mapping)
    });
    let functions = parts(&profile, 5);
    let functions = functions.iter().map(|one| (number(one, 1), name(one, 2)));
    let functions: HashMap<u64, String> = functions.collect();
    let locations = parts(&profile, 4);
    let locations = locations.iter().map(|one| {
        let lines = parts(one, 4);
        let names = lines.iter().map(|line| functions[&number(line, 1)].clone());
        (number(one, 2), number(one, 3), names.collect())
    });
    Profile {
        mappings: mappings.collect(),
        locations: locations.collect(),
    }
}

/// Made by binutils; None if they are not installed.
fn build_id(file: &Path) -> Option<String> {
    let output = Command::new("readelf").arg("-n").arg(file).output().ok()?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = output.lines().find(|line| line.contains("Build ID: "))?;
    Some(line.rsplit(' ').next()?.to_string())
}

fn profiled(workshop: &Workshop, words: &[&str]) -> (Waiting, Profile) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command.env("LD_PRELOAD", library());
    command.env("HAKMEM_SAMPLE_BYTES", "1");
    let process = Waiting::start(command.current_dir(workshop.folder()));
    let path = workshop.path("heap.pb.gz");
    let profile = ["profile", &process.pid(), "--pprof", text(&path)];
    workshop.hakmem(&profile).ended_with(0);
    (process, read(&path))
}

impl Profile {
    fn of(&self, function: &str) -> (&Mapping, u64) {
        let is_it = |names: &[String]| names.iter().any(|name| name == function);
        let mut all = self.locations.iter();
        let (mapping, address, _) = all.find(|(.., names)| is_it(names)).unwrap();
        (&self.mappings[mapping], *address)
    }
}

const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void keep(void) { *(volatile char *)malloc(5000) = 1; }
int main(void)
{
    keep();
    void *library = dlopen("./plugin.so", RTLD_NOW);
    ((void (*)(void))dlsym(library, "run"))();
    dlclose(library);
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

const PLUGIN: &str = "#include <stdlib.h>\nvoid run(void) { *(volatile char *)malloc(700) = 1; }\n";

#[test]
fn places_name_what_was_mapped_there_and_its_build_id() {
    let workshop = Workshop::open();
    let program = workshop.compile("program", PROGRAM, &["-g", "-ldl"]);
    let id = "-Wl,--build-id=0x0123456789abcdef";
    let plugin = ["-g", "-shared", "-fPIC", id];
    workshop.compile("plugin.so", PLUGIN, &plugin);
    let (process, profile) = profiled(&workshop, &[text(&program)]);
    for (mapping, address, _) in profile.locations.iter().filter(|one| one.1 != 0) {
        let mapping = &profile.mappings[mapping];
        assert!((mapping.start..mapping.limit).contains(address));
    }
    let (first, last) = (&profile.mappings[&1], profile.mappings.len() as u64);
    assert_eq!(first.file, text(&program), "the program's own is the first");
    assert!((1..=last).all(|number| profile.mappings.contains_key(&number)));
    let (mapping, address) = profile.of("keep");
    assert!((mapping.start..mapping.limit).contains(&address));
    assert_eq!(
        build_id(&program).unwrap_or(mapping.build_id.clone()),
        mapping.build_id
    );
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid())).unwrap();
    let line = format!(
        "{:x}-{:x} r-xp {:08x}",
        mapping.start, mapping.limit, mapping.offset
    );
    assert!(maps.contains(&line), "{line} is not in\n{maps}");
    // "_start" comes from the startup files and has no line, but it is in the same file.
    assert!(mapping.has_functions && !mapping.has_lines);
    // Files that were unloaded are included.
    let (mapping, _) = profile.of("run");
    assert!(mapping.file.ends_with("/plugin.so") && mapping.has_functions && mapping.has_lines);
    assert_eq!(mapping.build_id, "0123456789abcdef");
}

#[test]
fn a_file_without_names_is_left_to_who_has_them() {
    let workshop = Workshop::open();
    let program = workshop.compile("program", PROGRAM, &["-ldl", "-s"]);
    workshop.compile("plugin.so", PLUGIN, &["-g", "-shared", "-fPIC"]);
    let (_process, profile) = profiled(&workshop, &[text(&program)]);
    assert_eq!(profile.mappings[&1].file, text(&program));
    assert!(!profile.mappings[&1].has_functions);
    let is_numbered = |name: &String| name.starts_with("program+0x");
    assert!(
        profile
            .locations
            .iter()
            .any(|(.., names)| names.iter().any(is_numbered))
    );
}

/// Run by the dynamic linker, the program is mapped above the libraries.
#[test]
fn the_programs_own_file_is_the_first_wherever_it_lies() {
    let workshop = Workshop::open();
    let program = workshop.compile("program", PROGRAM, &["-g", "-ldl"]);
    workshop.compile("plugin.so", PLUGIN, &["-g", "-shared", "-fPIC"]);
    let linker = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let linker = linker.into_iter().find(|path| Path::new(path).exists());
    let (_process, profile) = profiled(&workshop, &[linker.unwrap(), text(&program)]);
    assert_eq!(profile.mappings[&1].file, text(&program));
}
