//! Finds libhakmem.a in HAKMEM_LIB_DIR, or builds it from the sources above with CMake.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=HAKMEM_LIB_DIR");
    let folder = check_target().and_then(|()| match env::var_os("HAKMEM_LIB_DIR") {
        Some(folder) => built_before(Path::new(&folder)),
        None => built_now(),
    });
    match folder {
        Ok(folder) => {
            println!("cargo::rustc-link-search=native={}", folder.display());
            println!("cargo::rustc-link-lib=static=hakmem");
            ExitCode::SUCCESS
        }
        Err(line) => {
            eprintln!("hakmem: {line}");
            ExitCode::FAILURE
        }
    }
}

fn check_target() -> Result<(), String> {
    let of_target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let (system, libc, machine) = (of_target("OS"), of_target("ENV"), of_target("ARCH"));
    let is_known = matches!(machine.as_str(), "x86_64" | "aarch64");
    if system == "linux" && libc == "gnu" && is_known {
        return Ok(());
    }
    Err(format!(
        "the target is {machine}-{system}-{libc}; hakmem runs on Linux with glibc, on x86-64 and 64-bit ARM"
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let lists = root.join("CMakeLists.txt");
    if !lists.is_file() {
        return Err(format!(
            "{} is missing: use the crate from a checkout, or set HAKMEM_LIB_DIR",
            lists.display()
        ));
    }
    for part in ["CMakeLists.txt", "cmake", "include", "src"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    let mut build = cmake::Config::new(&root);
    for part in ["HAKMEM_TESTS", "HAKMEM_BENCH", "HAKMEM_CLI"] {
        build.define(part, "OFF");
    }
    // As it is released, whatever the program is built as, and with the project's own flags.
    build.profile("Release").no_default_flags(true);
    Ok(build.build_target("hakmem_static").build().join("build"))
}
