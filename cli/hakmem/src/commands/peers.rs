//! `hakmem peers`: the other allocators.

use crate::output::{show, terminal};
use clap::{Args, Subcommand};
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::{Allocator, Catalogue, OURS, file_sha256};
use hakmem_lab::error::Result;
use hakmem_lab::peers::build::{self, Listener};
use hakmem_lab::peers::{Manifest, Peer};
use hakmem_lab::places::Places;
use hakmem_lab::render::{Cell, Table, Tone};
use hakmem_lab::{interrupt, usage};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem peers install               build all that are missing or out of date
  hakmem peers install jemalloc      only this one
  hakmem peers list
  hakmem peers add mine ./libmine.so --env MINE_OPTIONS=fast";

/// Build, list and add the allocators that hakmem is compared with
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build allocators from the releases in bench/peers; takes a few minutes the first time
    #[command(
        after_help = "Examples:\n  hakmem peers install\n  hakmem peers install jemalloc -j 1"
    )]
    Install {
        /// Allocators to build (default: all)
        names: Vec<String>,
        /// Compilers to run at a time
        #[arg(short, long, value_name = "N")]
        jobs: Option<usize>,
    },
    /// List all allocators that commands accept: built, added, or found in the system
    #[command(after_help = "Example:\n  hakmem peers list")]
    List,
    /// Give a library a name
    #[command(
        after_help = "Example:\n  hakmem peers add mine ./libmine.so --env MINE_OPTIONS=fast"
    )]
    Add {
        /// The name to give it
        name: String,
        /// The shared library, which has to define the whole malloc family
        library: PathBuf,
        /// A variable that its programs need in their environment
        #[arg(long, value_name = "NAME=VALUE")]
        env: Vec<String>,
    },
    /// Remove a library that was added or built
    #[command(after_help = "Example:\n  hakmem peers remove mine")]
    Remove {
        /// The name it has
        name: String,
    },
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    let places = Places::find()?;
    match arguments.action {
        Action::Install { names, jobs } => {
            let jobs =
                jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
            interrupt::install();
            let failures = build::install(&names, &places.peers(), jobs, &mut Teller)?;
            list(&places)?;
            Ok(if failures == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        Action::List => list(&places).map(|()| ExitCode::SUCCESS),
        Action::Add { name, library, env } => add(&places, name, &library, &env),
        Action::Remove { name } => {
            let mut manifest = Manifest::load(&places.peers())?;
            manifest
                .peers
                .shift_remove(&name)
                .ok_or_else(|| usage!("'{name}' was neither added nor built"))?;
            manifest.store(&places.peers())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reports to standard error.
struct Teller;

impl Listener for Teller {
    fn begins(&mut self, name: &str) {
        eprintln!("peers: building {name}");
    }

    fn is_built(&mut self, name: &str, seconds: f64) {
        eprintln!("peers: built {name} in {seconds:.0} s");
    }

    fn is_left_out(&mut self, name: &str, reason: &str) {
        eprintln!("peers: {name} is left out: {reason}");
    }

    fn note(&mut self, line: &str) {
        eprintln!("peers: {line}");
    }
}

fn add(places: &Places, name: String, library: &Path, env: &[String]) -> Result<ExitCode> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(usage!(
            "'{name}' is not a valid name: use letters, digits, '-', '_' and '.'"
        ));
    }
    if name == OURS || name == "glibc" || build::known_names().contains(&name.as_str()) {
        return Err(usage!("'{name}' is the name of another allocator"));
    }
    let mut environment = Vec::new();
    for setting in env {
        environment.push(
            setting
                .split_once('=')
                .ok_or_else(|| usage!("--env '{setting}' is not NAME=VALUE"))?,
        );
    }
    let allocator = Allocator::from_library(&name, library, "added")?;
    build::try_out(&allocator, &environment)?;
    let path = allocator.library.unwrap_or_default();
    let mut manifest = Manifest::load(&places.peers())?;
    let peer = Peer {
        version: "added".into(),
        sha256: file_sha256(&path)?,
        file: path,
        environment: environment
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        ..Peer::default()
    };
    manifest.peers.insert(name, peer);
    manifest.store(&places.peers())?;
    Ok(ExitCode::SUCCESS)
}

fn list(places: &Places) -> Result<()> {
    let form = terminal();
    let catalogue = Catalogue::load(places)?;
    let mut table = Table::default();
    for (title, dispensable) in [
        ("name", 0),
        ("version", 1),
        ("library", 0),
        ("SHA-256", 2),
        ("needs", 3),
        ("compiler", 4),
    ] {
        table.text_column(title, dispensable);
    }
    for one in catalogue.all() {
        let library = one
            .library
            .as_ref()
            .map_or("the C library's own".into(), |path| path.shown());
        let needs: Vec<String> = one
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        table.row(vec![
            Cell::new(&one.name),
            Cell::new(&one.version),
            Cell::new(library),
            Cell::toned(one.sha256.get(..12).unwrap_or_default(), Tone::Faint),
            Cell::new(needs.join(" ")),
            Cell::toned(&one.compiler, Tone::Faint),
        ]);
    }
    show(&(table.render(form) + "\n"));
    let there = |name: &&str| catalogue.all().iter().any(|one| one.name == **name);
    let missing: Vec<&str> = build::known_names()
        .into_iter()
        .filter(|name| !there(name))
        .collect();
    if !missing.is_empty() {
        show(&format!(
            "\nnot built: {} ('hakmem peers install' does)\n",
            missing.join(", ")
        ));
    }
    for line in &catalogue.left_out {
        show(&(form.toned(line, Tone::Bad) + "\n"));
    }
    Ok(())
}
