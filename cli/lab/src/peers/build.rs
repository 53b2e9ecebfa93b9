//! Builds peers that are missing or out of date, from the sources in their crates.

use super::recipes::{RECIPES, Recipe};
use super::{Manifest, Peer};
use crate::allocator::{Allocator, file_sha256};
use crate::elf;
use crate::error::Result;
use crate::{failed, interrupt, usage};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

// tcmalloc's and snmalloc's headers need at least clang 16, for its C++ library support.
const CLANG_OLDEST: u32 = 16;
const CLANG_NEWEST: u32 = 25;
// The first cargo that reads manifests of the edition 2024, as in tcmalloc's crate.
const CARGO_OLDEST_MINOR: u32 = 85;

/// The crates, at exact versions, for `cargo vendor`.
const MANIFEST: [(&str, &str); 3] = [
    (
        "Cargo.toml",
        include_str!("../../../../bench/peers/Cargo.toml"),
    ),
    (
        "Cargo.lock",
        include_str!("../../../../bench/peers/Cargo.lock"),
    ),
    ("empty.rs", include_str!("../../../../bench/peers/empty.rs")),
];

/// The commands of gcc, of its C++ compiler, and of the newest clang.
pub struct Compilers {
    pub gcc: String,
    pub gxx: String,
    pub clang: Option<(String, String)>,
}

impl Compilers {
    fn find() -> Result<Compilers> {
        let clang = (CLANG_OLDEST..=CLANG_NEWEST)
            .rev()
            .map(|number| (format!("clang-{number}"), format!("clang++-{number}")))
            .chain([("clang".to_string(), "clang++".to_string())])
            .find(|(c, cxx)| {
                major_of(c).is_some_and(|at| at >= CLANG_OLDEST) && major_of(cxx).is_some()
            });
        for needed in ["gcc", "g++", "cmake", "make"] {
            if version_line(needed).is_none() {
                return Err(failed!(
                    "{needed} is missing: in a checkout tools/setup bench installs it"
                ));
            }
        }
        Ok(Compilers {
            gcc: "gcc".into(),
            gxx: "g++".into(),
            clang,
        })
    }

    pub fn best_c(&self) -> &str {
        self.clang.as_ref().map_or(&self.gcc, |(c, _)| c)
    }

    pub fn best_cxx(&self) -> &str {
        self.clang.as_ref().map_or(&self.gxx, |(_, cxx)| cxx)
    }
}

/// The first line of what a command prints about its version.
fn version_line(command: &str) -> Option<String> {
    let done = Command::new(command)
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    Some(text.lines().next().unwrap_or_default().to_string())
}

fn major_of(command: &str) -> Option<u32> {
    let line = version_line(command)?;
    let digits = line.split("version ").nth(1)?;
    digits.split('.').next()?.parse().ok()
}

/// One build: where its sources are, and where it may write.
pub struct Job<'a> {
    pub sources: PathBuf,
    pub work: PathBuf,
    pub output: PathBuf,
    pub compilers: &'a Compilers,
    pub jobs: usize,
    log: PathBuf,
}

impl Job<'_> {
    pub fn run(&self, command: Vec<OsString>) -> Result<()> {
        self.run_in(&self.work, command)
    }

    pub fn run_in(&self, folder: &Path, command: Vec<OsString>) -> Result<()> {
        let explain = |error: std::io::Error| failed!("{}: {error}", self.log.display());
        let mut log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(explain)?;
        let line = command.join(OsStr::new(" "));
        writeln!(log, "$ {}", line.to_string_lossy()).map_err(explain)?;
        let program = command[0].to_string_lossy().into_owned();
        let status = Command::new(&command[0])
            .args(&command[1..])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(explain)?)
            .stderr(log)
            .status()
            .map_err(|error| failed!("{program} cannot be run: {error}"))?;
        if interrupt::requested() {
            return Err(failed!("stopped"));
        }
        if status.success() {
            Ok(())
        } else {
            Err(failed!("{program} failed; see {}", self.log.display()))
        }
    }

    /// Takes a library that the peer's own build has made.
    pub fn take(&self, made: &Path) -> Result<()> {
        fs::copy(made, &self.output)
            .map(|_| ())
            .map_err(|error| failed!("{}: {error}", made.display()))
    }
}

/// Receives messages while peers are built.
pub trait Listener {
    fn begins(&mut self, name: &str);
    fn is_built(&mut self, name: &str, seconds: f64);
    fn is_left_out(&mut self, name: &str, reason: &str);
    fn note(&mut self, line: &str);
}

pub fn known_names() -> Vec<&'static str> {
    RECIPES.iter().map(|recipe| recipe.name).collect()
}

/// Builds the peers that are out of date; returns how many builds failed.
pub fn install(
    names: &[String],
    folder: &Path,
    jobs: usize,
    listener: &mut dyn Listener,
) -> Result<usize> {
    for name in names {
        if !known_names().contains(&name.as_str()) {
            return Err(usage!(
                "no peer is called '{name}'; there are {}",
                known_names().join(", ")
            ));
        }
    }
    let compilers = Compilers::find()?;
    if compilers.clang.is_none() {
        listener.note(&format!(
            "no clang {CLANG_OLDEST} or newer: tcmalloc and snmalloc are built with gcc, \
             which makes them a few percent slower"
        ));
    }
    let sources = vendor(folder, listener)?;
    let mut manifest = Manifest::load(folder)?;
    let mut failures = 0;
    for recipe in &RECIPES {
        if !names.is_empty() && !names.iter().any(|name| name == recipe.name) {
            continue;
        }
        let (version, key) = key(recipe, &compilers)?;
        if is_current(folder, manifest.peers.get(recipe.name), &key) {
            continue;
        }
        manifest.peers.shift_remove(recipe.name);
        manifest.store(folder)?;
        listener.begins(recipe.name);
        let started = Instant::now();
        match build(recipe, &sources, folder, jobs, &compilers) {
            Ok(path) => {
                let peer = describe(recipe, &version, key, &path, &compilers)?;
                manifest.peers.insert(recipe.name.into(), peer);
                sort(&mut manifest);
                manifest.store(folder)?;
                listener.is_built(recipe.name, started.elapsed().as_secs_f64());
            }
            Err(error) => {
                failures += 1;
                listener.is_left_out(recipe.name, &error.to_string());
                if interrupt::requested() {
                    return Err(failed!("stopped; what is built already is kept"));
                }
            }
        }
    }
    Ok(failures)
}

/// Fetches the crates' sources, unless those of this Cargo.lock are there already.
fn vendor(folder: &Path, listener: &mut dyn Listener) -> Result<PathBuf> {
    let target = folder.join("vendor");
    let stamp = folder.join("vendor.sha256");
    let wanted = elf::hexadecimal(&Sha256::digest(MANIFEST[1].1));
    if target.is_dir() && fs::read_to_string(&stamp).is_ok_and(|text| text.trim() == wanted) {
        return Ok(target);
    }
    let cargo = find_cargo()?;
    listener.note("fetching the sources");
    let crates = folder.join("crates");
    let explain = |error: std::io::Error| failed!("{}: {error}", crates.display());
    fs::create_dir_all(&crates).map_err(explain)?;
    for (name, text) in MANIFEST {
        fs::write(crates.join(name), text).map_err(explain)?;
    }
    let done = Command::new(&cargo)
        .args(["vendor", "--locked", "--quiet", "--manifest-path"])
        .arg(crates.join("Cargo.toml"))
        .arg(&target)
        .output()
        .map_err(|error| failed!("{cargo} cannot be run: {error}"))?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        let last = text.trim().lines().next_back().unwrap_or("no message");
        return Err(failed!(
            "the sources cannot be fetched (cargo vendor): {last}"
        ));
    }
    fs::write(&stamp, wanted + "\n").map_err(|error| failed!("{}: {error}", stamp.display()))?;
    Ok(target)
}

/// A cargo that can read the crates; distributions may also install it as cargo-1.NN.
fn find_cargo() -> Result<String> {
    let versioned = (CARGO_OLDEST_MINOR..CARGO_OLDEST_MINOR + 40)
        .rev()
        .map(|at| format!("cargo-1.{at}"));
    std::iter::once("cargo".to_string())
        .chain(versioned)
        .find(|name| {
            let minor = version_line(name).and_then(|line| {
                line.strip_prefix("cargo 1.")?.split('.').next()?.parse::<u32>().ok()
            });
            minor.is_some_and(|minor| minor >= CARGO_OLDEST_MINOR)
        })
        .ok_or_else(|| {
            failed!(
                "cargo 1.{CARGO_OLDEST_MINOR} or newer is missing: install rustup, or cargo-web on Debian 12"
            )
        })
}

/// The crate's version, and a key that changes with the sources, the recipes and the compilers.
fn key(recipe: &Recipe, compilers: &Compilers) -> Result<(String, String)> {
    let lock: toml::Table = MANIFEST[1]
        .1
        .parse()
        .map_err(|error| failed!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let package = packages
        .into_iter()
        .flatten()
        .find(|package| package.get("name").and_then(toml::Value::as_str) == Some(recipe.source))
        .ok_or_else(|| failed!("Cargo.lock lacks {}", recipe.source))?;
    let field = |name: &str| {
        package
            .get(name)
            .and_then(toml::Value::as_str)
            .unwrap_or_default()
    };
    let parts = [
        field("version"),
        field("checksum"),
        include_str!("recipes.rs"),
        &version_line(&compilers.gcc).unwrap_or_default(),
        &version_line(compilers.best_c()).unwrap_or_default(),
    ];
    let key = elf::hexadecimal(&Sha256::digest(parts.join("\0")));
    Ok((field("version").to_string(), key))
}

fn is_current(folder: &Path, peer: Option<&Peer>, key: &str) -> bool {
    peer.is_some_and(|peer| {
        peer.key == key
            && file_sha256(&folder.join(&peer.file)).is_ok_and(|found| found == peer.sha256)
    })
}

/// Builds one peer into its final place; after a failure nothing is left there.
fn build(
    recipe: &Recipe,
    sources: &Path,
    folder: &Path,
    jobs: usize,
    compilers: &Compilers,
) -> Result<PathBuf> {
    let file = format!("lib{}.so", recipe.name);
    let work = folder.join("work").join(recipe.name);
    let log = folder.join("log").join(format!("{}.log", recipe.name));
    let _ = fs::remove_file(folder.join(&file));
    let _ = fs::remove_dir_all(&work);
    let _ = fs::remove_file(&log);
    for needed in [&work, &folder.join("log")] {
        fs::create_dir_all(needed).map_err(|error| failed!("{}: {error}", needed.display()))?;
    }
    let job = Job {
        sources: sources.join(recipe.source),
        output: work.join(&file),
        work,
        compilers,
        jobs,
        log,
    };
    (recipe.build)(&job)?;
    let allocator = Allocator::from_library(recipe.name, &job.output, recipe.version)?;
    try_out(&allocator, recipe.environment)?;
    let path = folder.join(&file);
    fs::rename(&job.output, &path).map_err(|error| failed!("{}: {error}", path.display()))?;
    let _ = fs::remove_dir_all(&job.work);
    Ok(path)
}

/// A library with which the smallest program does not run is not accepted.
pub fn try_out(allocator: &Allocator, environment: &[(&str, &str)]) -> Result<()> {
    let Some(library) = &allocator.library else {
        return Ok(());
    };
    let done = Command::new("/bin/ls")
        .arg("/")
        .envs(environment.iter().copied())
        .env("LD_PRELOAD", library)
        .output()
        .map_err(|error| failed!("/bin/ls cannot be run: {error}"))?;
    if done.status.success() && done.stderr.is_empty() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&done.stderr);
    let reason = text
        .trim()
        .lines()
        .next()
        .map_or(done.status.to_string(), str::to_string);
    Err(failed!(
        "{} does not run /bin/ls: {reason}",
        library.display()
    ))
}

fn describe(
    recipe: &Recipe,
    crate_version: &str,
    key: String,
    path: &Path,
    compilers: &Compilers,
) -> Result<Peer> {
    Ok(Peer {
        version: recipe.version.into(),
        source: format!("{} {crate_version}", recipe.source),
        compiler: version_line((recipe.compiler)(compilers)).unwrap_or_default(),
        file: path.file_name().map(PathBuf::from).unwrap_or_default(),
        sha256: file_sha256(path)?,
        environment: recipe
            .environment
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        key,
    })
}

/// Our peers first, in the recipes' order; then those that users have added.
fn sort(manifest: &mut Manifest) {
    let place = |name: &str| {
        RECIPES
            .iter()
            .position(|recipe| recipe.name == name)
            .unwrap_or(RECIPES.len())
    };
    manifest
        .peers
        .sort_by(|one, _, other, _| place(one).cmp(&place(other)));
}
