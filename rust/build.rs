//! Finds libhakmem.a in HAKMEM_LIB_DIR, or compiles the C sources in c/.
//!
//! A program may define some of hakmem's names itself. Here the compiler makes these names weak; in the archive that CMake
//! makes, objcopy does (src/CMakeLists.txt).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Only useful in the shared library.
const SHARED_ONLY: &str = "front/malloc_debug.c";
/// Looks up what others may have replaced; not for this archive (src/CMakeLists.txt).
const LOOKS_UP: &str = "front/replaced.c";
/// Only for glibc.
const GLIBC_ONLY: &str = "front/deep_binding.c";
/// These files lie above the layers' folders.
const ABOVE: [&str; 2] = ["hakmem.c", "hooks.c"];

/// The same flags as in cmake/flags.cmake, which gives the reasons.
const FLAGS: [&str; 15] = [
    "-std=c11",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-semantic-interposition",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    "-fno-builtin-aligned_alloc",
    "-fno-builtin-posix_memalign",
    "-fno-builtin-memalign",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
    "-fno-function-sections", // all of malloc's family or nothing: no function of it is dropped
    "-fno-data-sections",
];

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=HAKMEM_LIB_DIR");
    let found = check_target().and_then(|()| match env::var_os("HAKMEM_LIB_DIR") {
        Some(folder) => built_before(Path::new(&folder)),
        None => built_now(),
    });
    match found {
        Ok(folder) => {
            println!("cargo::rustc-link-search=native={}", folder.display());
            // The whole archive: a program that gets malloc from here must not get free from elsewhere.
            println!("cargo::rustc-link-lib=static:+whole-archive=hakmem");
            ExitCode::SUCCESS
        }
        Err(line) => {
            eprintln!("hakmem: {line}");
            ExitCode::FAILURE
        }
    }
}

fn of_target(name: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default()
}

fn check_target() -> Result<(), String> {
    let (system, libc, machine) = (of_target("OS"), of_target("ENV"), of_target("ARCH"));
    let is_known_libc = matches!(libc.as_str(), "gnu" | "musl");
    let is_known_machine = matches!(machine.as_str(), "x86_64" | "aarch64");
    if system == "linux" && is_known_libc && is_known_machine {
        return Ok(());
    }
    Err(format!(
        "the target is {machine}-{system}-{libc}; hakmem runs on Linux with glibc or musl, on x86-64 and 64-bit ARM"
    ))
}

fn built_before(folder: &Path) -> Result<PathBuf, String> {
    let archive = folder.join("libhakmem.a");
    println!("cargo::rerun-if-changed={}", archive.display());
    if archive.is_file() {
        return Ok(folder.to_path_buf());
    }
    Err(format!(
        "HAKMEM_LIB_DIR={} has no libhakmem.a; `make` leaves one in build/, `make install` in lib/",
        folder.display()
    ))
}

fn built_now() -> Result<PathBuf, String> {
    let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
    let source = c.join("src");
    println!("cargo::rerun-if-changed={}", c.display());
    let mut looks_up = compiler(&c);
    looks_up
        .file(source.join(LOOKS_UP))
        .flag("-fsemantic-interposition");
    let explain = |error: cc::Error| error.to_string();
    let mut build = compiler(&c);
    build.objects(looks_up.try_compile_intermediates().map_err(explain)?);
    for file in ABOVE {
        build.file(source.join(file));
    }
    for layer in folders(&source)? {
        build.files(sources(&source, &layer)?);
    }
    build.try_compile("hakmem").map_err(explain)?;
    Ok(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()))
}

fn compiler(c: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    for flag in FLAGS {
        build.flag(flag);
    }
    // As in a release, whatever the program's own build is.
    build.opt_level(2).debug(true).warnings(false);
    build.include(c.join("include")).include(c.join("src"));
    build.define("_GNU_SOURCE", "").define("HAK_DEBUG", "0");
    build.define("HAK_WEAK_NAMES", "1");
    build.cargo_metadata(false);
    build
}

fn names(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let explain = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(explain)?;
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    Ok(paths)
}

fn folders(source: &Path) -> Result<Vec<PathBuf>, String> {
    let mut folders = names(source)?;
    folders.retain(|path| path.is_dir());
    Ok(folders)
}

fn sources(source: &Path, layer: &Path) -> Result<Vec<PathBuf>, String> {
    let is_musl = of_target("ENV") == "musl";
    let mut files = names(layer)?;
    files.retain(|path| {
        let name = path.strip_prefix(source).unwrap_or(path);
        let is = |other: &str| name == Path::new(other);
        let is_elsewhere = is(SHARED_ONLY) || is(LOOKS_UP);
        let is_absent = is_musl && is(GLIBC_ONLY);
        path.extension().is_some_and(|extension| extension == "c") && !is_elsewhere && !is_absent
    });
    Ok(files)
}
