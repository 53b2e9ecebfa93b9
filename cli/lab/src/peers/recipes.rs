//! How each peer becomes one shared library.
//!
//! Every function builds one peer from its crate's sources and leaves the library at `job.output`. A
//! peer is built the way its own project builds a release: nothing is switched on that its users
//! would not have, nothing off. This file's text is part of each library's cache key.

use super::build::{Compilers, Job};
use crate::error::Result;
use crate::failed;
use hakmem_heap::shown::ShownPath;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Recipe {
    pub name: &'static str,
    pub source: &'static str,
    pub version: &'static str,
    pub build: fn(&Job) -> Result<()>,
    /// Which of the compilers makes the difference for its speed.
    pub compiler: fn(&Compilers) -> &str,
    /// What it needs when it runs.
    pub environment: &'static [(&'static str, &'static str)],
}

/// In the order of a table's columns.
pub const RECIPES: [Recipe; 6] = [
    Recipe {
        name: "mimalloc3",
        source: "libmimalloc-sys2",
        version: "3.6.0",
        build: |job| mimalloc(job, "mimalloc3"),
        compiler: |compilers| &compilers.gcc,
        environment: &[],
    },
    Recipe {
        name: "mimalloc2",
        source: "libmimalloc-sys2",
        version: "2.5.2",
        build: |job| mimalloc(job, "mimalloc"),
        compiler: |compilers| &compilers.gcc,
        environment: &[],
    },
    Recipe {
        name: "snmalloc",
        source: "snmalloc-sys",
        version: "0.7.6",
        build: snmalloc,
        compiler: Compilers::best_c,
        environment: &[],
    },
    Recipe {
        name: "jemalloc",
        source: "tikv-jemalloc-sys",
        version: "5.3.1",
        build: jemalloc,
        compiler: |compilers| &compilers.gcc,
        environment: &[],
    },
    Recipe {
        name: "tcmalloc",
        source: "libtcmalloc-sys",
        version: "2025-06",
        build: tcmalloc,
        compiler: Compilers::best_c,
        // glibc registers restartable sequences before tcmalloc can; without them tcmalloc falls
        // back to per-thread caches and is up to 25 % slower.
        environment: &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")],
    },
    Recipe {
        name: "rpmalloc",
        source: "rpmalloc-sys",
        version: "1.4.3",
        build: rpmalloc,
        compiler: |compilers| &compilers.gcc,
        environment: &[],
    },
];

/// Words of a command line from texts and paths.
macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$(OsString::from($word)),*] };
}

fn with(prefix: &str, path: &Path) -> OsString {
    let mut text = OsString::from(prefix);
    text.push(path);
    text
}

fn mimalloc(job: &Job, folder: &str) -> Result<()> {
    let build = job.work.join("cmake");
    job.run(words![
        "cmake",
        "-S",
        job.sources.join("c_src").join(folder),
        "-B",
        &build,
        "-DCMAKE_BUILD_TYPE=Release",
        format!("-DCMAKE_C_COMPILER={}", job.compilers.gcc),
        format!("-DCMAKE_CXX_COMPILER={}", job.compilers.gxx),
        "-DMI_BUILD_STATIC=OFF",
        "-DMI_BUILD_OBJECT=OFF",
        "-DMI_BUILD_TESTS=OFF",
    ])?;
    job.run(words!["cmake", "--build", &build, "--target", "mimalloc"])?;
    job.take(&build.join("libmimalloc.so"))
}

fn snmalloc(job: &Job) -> Result<()> {
    let build = job.work.join("cmake");
    // C++11 destructors are the only cleanup that links without snmalloc's own replacement of the
    // C++ runtime; their cost is one call per ended thread.
    job.run(words![
        "cmake",
        "-S",
        job.sources.join("upstream"),
        "-B",
        &build,
        "-DCMAKE_BUILD_TYPE=Release",
        format!("-DCMAKE_C_COMPILER={}", job.compilers.best_c()),
        format!("-DCMAKE_CXX_COMPILER={}", job.compilers.best_cxx()),
        "-DSNMALLOC_BUILD_TESTING=OFF",
        "-DSNMALLOC_CLEANUP=CXX11_DESTRUCTORS",
    ])?;
    job.run(words![
        "cmake",
        "--build",
        &build,
        "--target",
        "snmallocshim",
        "--parallel",
        job.jobs.to_string(),
    ])?;
    job.take(&build.join("libsnmallocshim.so"))
}

fn jemalloc(job: &Job) -> Result<()> {
    // The crate ships a ready configure script beside the sources. Statistics are off, as in the
    // crate: that is in jemalloc's favour.
    let source = job.work.join("jemalloc");
    job.run(words!["cp", "-r", job.sources.join("jemalloc"), &source])?;
    job.run(words![
        "cp",
        job.sources.join("configure/configure"),
        source.join("configure")
    ])?;
    job.run_in(
        &source,
        words![
            "sh",
            "./configure",
            format!("CC={}", job.compilers.gcc),
            "--with-version=5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8",
            "--disable-stats",
            "--disable-cxx",
            "--enable-doc=no",
            "--enable-static=no",
        ],
    )?;
    job.run_in(
        &source,
        words!["make", format!("-j{}", job.jobs), "build_lib_shared"],
    )?;
    job.take(&source.join("lib/libjemalloc.so.2"))
}

fn tcmalloc(job: &Job) -> Result<()> {
    // Its Bazel build is not usable offline; the crate's own file list is complete but for the file
    // that defines malloc, in place of which it has a bridge.
    let list = job.sources.join("build.rs");
    let text = fs::read_to_string(&list).map_err(|error| failed!("{}: {error}", list.shown()))?;
    let mut sources: Vec<&str> = text
        .split('"')
        .filter(|name| {
            name.starts_with("c_src/") && (name.ends_with(".cc") || name.ends_with(".S"))
        })
        .filter(|name| !name.ends_with("_bridge.cc"))
        .collect();
    sources.push("c_src/tcmalloc/tcmalloc/tcmalloc.cc");
    let objects: Vec<PathBuf> = (0..sources.len())
        .map(|number| job.work.join(format!("{number:03}.o")))
        .collect();
    let compile = |at: usize| {
        job.run(words![
            job.compilers.best_cxx(),
            "-O3",
            "-DNDEBUG",
            "-fPIC",
            "-std=c++17",
            "-w",
            "-DNOMINMAX",
            "-DTCMALLOC_INTERNAL_8K_PAGES",
            with("-I", &job.sources.join("c_src/abseil-cpp")),
            with("-I", &job.sources.join("c_src/tcmalloc")),
            "-c",
            job.sources.join(sources[at]),
            "-o",
            &objects[at],
        ])
    };
    in_parallel(job.jobs, sources.len(), &compile)?;
    let mut command = words![
        job.compilers.best_cxx(),
        "-shared",
        "-Wl,-Bsymbolic",
        "-o",
        &job.output
    ];
    command.extend(objects.iter().map(OsString::from));
    command.push("-lpthread".into());
    job.run(command)
}

/// Call `work` with each number below `count`; the first error, after all that was begun.
fn in_parallel(
    threads: usize,
    count: usize,
    work: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    if let Err(error) = work(at) {
                        next.store(count, Ordering::Relaxed);
                        if let Ok(mut failure) = failure.lock() {
                            failure.get_or_insert(error);
                        }
                        return;
                    }
                }
            });
        }
    });
    failure.into_inner().ok().flatten().map_or(Ok(()), Err)
}

fn rpmalloc(job: &Job) -> Result<()> {
    job.run(words![
        &job.compilers.gcc,
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-shared",
        "-std=gnu11",
        "-w",
        "-D_GNU_SOURCE=1",
        "-DENABLE_PRELOAD=1",
        "-DENABLE_OVERRIDE=1",
        "-ftls-model=initial-exec",
        "-fno-builtin-malloc",
        job.sources.join("rpmalloc/rpmalloc/rpmalloc.c"),
        "-o",
        &job.output,
        "-lpthread",
        "-ldl",
    ])
}
