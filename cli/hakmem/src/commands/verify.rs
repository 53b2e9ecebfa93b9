//! `hakmem verify`: shows which allocator a program or a process really uses.

use crate::output::{print_json, show, terminal};
use crate::start;
use clap::Args;
use hakmem_heap::control::Control;
use hakmem_heap::error::why_not;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::{Allocator, BASELINE, Catalogue, OURS};
use hakmem_lab::control::Blocks;
use hakmem_lab::error::Result;
use hakmem_lab::executable::{Executable, LINK_IT_IN, Obstacle};
use hakmem_lab::places::Places;
use hakmem_lab::process::Blind;
use hakmem_lab::proof::{Proof, Target};
use hakmem_lab::render::text::{UNLIMITED, labelled};
use hakmem_lab::render::{Form, Tone};
use hakmem_lab::{failed, family, fingerprint, probe, trust, usage};
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem verify 4711                       a running process
  hakmem verify python3                    python3, as it would start here and now
  hakmem verify --preload -- redis-server  with hakmem preloaded, as by 'hakmem run'
  hakmem verify --expect jemalloc 4711     exit code 0 when it uses jemalloc

A program is loaded, and ended before its first instruction. Exit code: 0 it uses the
expected allocator and nothing else; 1 it does not, or cannot be examined; 2 wrong usage.";

/// Show which allocator a program or a running process really uses, and why
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem verify [OPTIONS] PID\n       hakmem verify [OPTIONS] PROGRAM [ARGUMENT]...")]
pub struct Arguments {
    /// The allocator that it should use
    #[arg(long, value_name = "NAME", default_value = OURS)]
    expect: String,
    /// Preload the expected allocator into the program
    #[arg(long)]
    preload: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// A process ID, or a program and its arguments
    #[arg(required = true, value_name = "PID|PROGRAM", trailing_var_arg = true)]
    subject: Vec<OsString>,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    let places = Places::find()?;
    let catalogue = Catalogue::load(&places)?;
    let expected = catalogue
        .choose(std::slice::from_ref(&arguments.expect))?
        .remove(0);
    let name = arguments.subject[0].shown();
    let subject = match name.parse::<i32>() {
        Ok(pid) if arguments.subject.len() == 1 => process(pid)?,
        Ok(_) => {
            return Err(usage!(
                "verify takes one process ID, and options before it: 'pidof -s NAME' prints one ID"
            ));
        }
        Err(_) => program(&arguments, &expected)?,
    };
    let findings = Findings::of(&subject, &expected, &catalogue);
    if arguments.json {
        print_json(&findings)?;
    } else {
        show(&findings.text(terminal()));
    }
    Ok(if findings.refusal.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The process or program to examine.
struct Subject {
    title: String,
    proof: Proof,
    knows_its_block: Option<bool>,
}

fn process(pid: i32) -> Result<Subject> {
    let collected = Proof::collect(pid).or_else(|blind| match blind {
        Blind::Static => {
            let task = LiveProcess::open(pid).map_err(|_| Blind::Gone)?.task();
            let program = fs::read_link(format!("/proc/{task}/exe")).map_err(|_| Blind::Gone)?;
            Proof::of_static(&program, Some(pid))
        }
        other => Err(other),
    });
    let proof = collected.map_err(|blind| match blind {
        Blind::Gone => usage!("there is no process {pid}, or it has just ended"),
        Blind::Forbidden => failed!("process {pid} may not be read: {}", why_not()),
        other => failed!("process {pid}: {other}"),
    })?;
    Ok(Subject {
        title: format!("process {pid}"),
        proof,
        knows_its_block: None,
    })
}

fn program(arguments: &Arguments, expected: &Allocator) -> Result<Subject> {
    let (name, words) = arguments
        .subject
        .split_first()
        .ok_or_else(|| usage!("no program"))?;
    let executable = Executable::find(name)?;
    let shown = executable.path.shown();
    match executable.obstacle() {
        Some(Obstacle::Static(_)) => {
            return Ok(Subject {
                title: executable.title(),
                proof: Proof::of_static(&executable.binary, None)
                    .map_err(|blind| failed!("{shown}: {blind}"))?,
                knows_its_block: None,
            });
        }
        Some(Obstacle::Sanitized(_)) if !arguments.preload => {}
        Some(obstacle) => return Err(failed!("{shown} {}", obstacle.sentence())),
        None => {}
    }
    let environment = if arguments.preload {
        start::environment(expected)?
    } else {
        env::vars_os().collect()
    };
    // For a script, the interpreter allocates.
    let words = if executable.is_script() { &[] } else { words };
    let loaded = probe::load(&executable.binary, words, environment)?
        .map_err(|blind| failed!("{shown}: {blind}"))?;
    let how = if arguments.preload {
        format!(" with {} preloaded", expected.name)
    } else {
        String::new()
    };
    Ok(Subject {
        title: format!("{}{how}", executable.title()),
        proof: loaded.proof,
        knows_its_block: loaded.knows_its_block,
    })
}

/// All findings, as text and as JSON.
#[derive(Serialize)]
struct Findings {
    subject: String,
    program: PathBuf,
    expected: String,
    /// The expected allocator is a part of the program instead of a library.
    is_linked_in: bool,
    /// Why it does not use the expected allocator; null if it does.
    refusal: Option<String>,
    /// What can be done about it.
    advice: Option<String>,
    /// The files that define the core of the family, and what they are.
    owners: Vec<Owner>,
    /// For each function of the family, the first file that defines it.
    definers: IndexMap<String, PathBuf>,
    /// Functions that are imported, but that the owner leaves to another file.
    fallen_through: IndexMap<String, PathBuf>,
    /// Objects whose calls do not go where the rest of the process's calls go.
    bound_elsewhere: Vec<String>,
    /// Allocators inside objects other than the owner.
    bundled: Vec<String>,
    /// For each object that allocates, where its calls go.
    objects: IndexMap<String, IndexMap<String, String>>,
    /// Pointers in the process that hakmem's address map knows.
    known_pointers: Option<usize>,
    /// Pointers into the C library's own heap, which hakmem leaves unused.
    break_pointers: Option<usize>,
    /// Does the address map know a block that malloc has just returned in the process?
    knows_its_block: Option<bool>,
}

#[derive(Serialize)]
struct Owner {
    path: PathBuf,
    /// The allocators that were recognised in it.
    is: Vec<String>,
    version: Option<String>,
    build_id: Option<String>,
}

impl Findings {
    fn of(subject: &Subject, expected: &Allocator, catalogue: &Catalogue) -> Findings {
        let proof = &subject.proof;
        let owners: Vec<Owner> = proof
            .owners()
            .into_iter()
            .map(|path| owner(path, proof, catalogue))
            .collect();
        let main_owner = owners
            .first()
            .map(|owner| owner.path.clone())
            .unwrap_or_default();
        let is_linked_in = is_linked_in(proof, expected);
        let refusal = contradiction(proof, expected)
            .filter(|_| !is_linked_in)
            .or_else(|| {
                (subject.knows_its_block == Some(false)).then(|| {
                    "got a block from malloc that hakmem's address map does not know".to_string()
                })
            })
            .map(|reason| format!("it {reason}{}", recognised(proof, expected)));
        Findings {
            is_linked_in,
            advice: refusal.is_some().then(|| advice(proof, expected)).flatten(),
            subject: subject.title.clone(),
            program: proof.program.clone(),
            expected: expected.name.clone(),
            refusal,
            definers: proof
                .definers
                .iter()
                .map(|(name, path)| (family::shown(name).into(), path.clone()))
                .collect(),
            fallen_through: proof
                .fallen_through(&main_owner)
                .into_iter()
                .map(|(name, path)| (family::shown(name).into(), path.to_path_buf()))
                .collect(),
            bound_elsewhere: proof
                .bound_elsewhere()
                .into_iter()
                .map(|(object, name, target)| {
                    format!(
                        "{}: {} goes to {}",
                        object.shown(),
                        family::shown(name),
                        target_name(target)
                    )
                })
                .collect(),
            bundled: proof
                .bundled
                .iter()
                .map(|(path, names)| format!("{} has {} inside", path.shown(), names.join(" and ")))
                .collect(),
            objects: objects(proof),
            known_pointers: proof.blocks.as_ref().map(|blocks| blocks.known),
            break_pointers: proof.blocks.as_ref().map(|blocks| blocks.in_break),
            knows_its_block: subject.knows_its_block,
            owners,
        }
    }

    fn text(&self, form: Form) -> String {
        let width = match form {
            Form::Text { width, .. } => width,
            Form::Markdown => UNLIMITED,
        };
        let part = |label: &str, text: &str| labelled(&format!("  {label:<17}"), text, width);
        let mut lines = vec![form.strong(&self.subject)];
        lines.push(match &self.refusal {
            None if self.is_linked_in => {
                let line = format!("  uses {}, which is linked into it", self.expected);
                form.toned(&line, Tone::Good)
            }
            None => form.toned(&format!("  uses {}", self.expected), Tone::Good),
            Some(reason) => {
                let line = format!("  does not use {}: {reason}", self.expected);
                form.toned(&line, Tone::Bad)
            }
        });
        lines.extend(self.advice.iter().map(|advice| format!("  {advice}")));
        lines.push(String::new());
        for owner in &self.owners {
            lines.push(part("malloc is in", &owner.path.shown()));
            if !owner.is.is_empty() {
                let version = owner.version.as_deref().unwrap_or_default();
                let which = format!("{} {version}", owner.is.join(" and "));
                lines.push(part("which is", which.trim_end()));
            }
            lines.extend(owner.build_id.iter().map(|id| part("with build id", id)));
        }
        lines.extend(self.tested().map(|tested| part("its address map", &tested)));
        lines.extend(self.bundled.iter().map(|line| part("bundled", line)));
        let elsewhere = self.bound_elsewhere.iter();
        lines.extend(elsewhere.map(|line| part("bound elsewhere", line)));
        if !self.fallen_through.is_empty() {
            let names: Vec<&str> = self.fallen_through.keys().map(String::as_str).collect();
            let mut files: Vec<String> = self
                .fallen_through
                .values()
                .map(|path| path.shown())
                .collect();
            files.dedup();
            let line = format!("{} ({})", names.join(", "), files.join(", "));
            lines.push(part("left to others", &line));
        }
        if !self.objects.is_empty() {
            lines.push(String::new());
            lines.push(form.strong("  callers, and the libraries that their calls reach"));
        }
        for (object, targets) in &self.objects {
            lines.push(format!("  {object}"));
            for (target, names) in by_target(targets) {
                let callee = format!("    {target:<28} ");
                lines.push(labelled(&callee, &names.join(" "), width));
            }
        }
        lines.join("\n") + "\n"
    }

    /// What a test of the address map said.
    fn tested(&self) -> Option<String> {
        let known = self.known_pointers?;
        Some(match self.knows_its_block {
            Some(true) => "it knows the block that malloc has just returned".into(),
            Some(false) => "it does not know the block that malloc has just returned".into(),
            None => match self.break_pointers {
                Some(0) | None => format!("it knows {known} pointers found in the process"),
                Some(others) => format!(
                    "it knows {known} pointers found in the process; {others} lead into the C library's heap"
                ),
            },
        })
    }
}

fn owner(path: &Path, proof: &Proof, catalogue: &Catalogue) -> Owner {
    let known = catalogue
        .all()
        .iter()
        .find(|one| one.library.as_deref() == Some(path));
    let recognised = proof.inside(path);
    let is_ours = recognised.contains(OURS);
    let blocks: Option<&Blocks> = proof.blocks.as_ref().filter(|_| is_ours);
    Owner {
        path: path.to_path_buf(),
        is: recognised.into_iter().map(str::to_string).collect(),
        version: known
            .map(|one| one.version.clone())
            .or_else(|| blocks.map(|blocks| blocks.release.clone()))
            .or_else(|| is_ours.then(|| linked_release(path))?)
            .or_else(|| libc_version(path)),
        build_id: proof.build_ids.get(path).cloned(),
    }
}

/// The release of hakmem inside a program that has not run.
fn linked_release(path: &Path) -> Option<String> {
    Control::release_in(&fs::read(path).ok()?)
}

fn libc_version(path: &Path) -> Option<String> {
    let plain = Allocator::of_system();
    plain.owns(path, None).then_some(plain.version)
}

/// Why it does not use the expected library.
fn contradiction(proof: &Proof, expected: &Allocator) -> Option<String> {
    if !proof.is_static {
        return trust::contradiction(proof, expected, &str::to_string);
    }
    let inside = Vec::from_iter(proof.inside(&proof.program));
    Some(if inside.is_empty() {
        "is statically linked, with an unknown allocator inside".into()
    } else {
        format!("is statically linked, with {} inside", inside.join(" and "))
    })
}

/// Is the program itself the allocator: of the expected kind, but not the expected library?
fn is_linked_in(proof: &Proof, expected: &Allocator) -> bool {
    let is_owner = proof.owners() == BTreeSet::from([proof.program.as_path()]);
    let inside = proof.inside(&proof.program);
    let is_inside = match expected.name.as_str() {
        BASELINE => {
            inside.iter().all(|name| *name == fingerprint::LIBC_OF_GNU) && !inside.is_empty()
        }
        name => inside.iter().any(|kind| name.starts_with(kind)),
    };
    is_owner && is_inside
}

fn advice(proof: &Proof, expected: &Allocator) -> Option<String> {
    let owners = proof.owners();
    if proof.is_static {
        let is_go = proof.inside(&proof.program).contains(fingerprint::GO);
        return Some(if is_go {
            "a Go program has its own allocator, which cannot be replaced".into()
        } else {
            LINK_IT_IN.into()
        });
    }
    if proof.inside_program().is_some() || owners.contains(proof.program.as_path()) {
        return Some(
            "build it without an allocator of its own, or link libhakmem.a into it, or in Rust use the \
             crate hakmem-allocator (rust/)"
                .into(),
        );
    }
    expected.library.as_deref()?;
    let owns = |path: &&Path| expected.owns(path, proof.build_ids.get(*path));
    (!owners.iter().any(owns)).then(|| {
        let choice = if expected.name == OURS {
            String::new()
        } else {
            format!("-a {} ", expected.name)
        };
        format!("it was not preloaded: use 'hakmem run {choice}-- …'")
    })
}

/// What the owners are, if that is unexpected.
fn recognised(proof: &Proof, expected: &Allocator) -> String {
    if proof.is_static {
        return String::new(); // the refusal says it already
    }
    let names: Vec<&str> = proof
        .owners()
        .iter()
        .flat_map(|path| proof.inside(path))
        .filter(|name| !fingerprint::is_of_language(name))
        .filter(|name| fingerprint::contradicts(&expected.name, &[name]))
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; that is {}", names.join(" and "))
    }
}

fn target_name(target: &Target) -> String {
    match target {
        Target::File(path) => path.shown(),
        Target::Anonymous => "code outside of any mapped file".into(),
        Target::NotBoundYet => "(not called yet)".into(),
    }
}

fn objects(proof: &Proof) -> IndexMap<String, IndexMap<String, String>> {
    proof
        .bindings
        .iter()
        .map(|bindings| {
            let targets = bindings
                .targets
                .iter()
                .map(|(name, target)| (family::shown(name).to_string(), target_name(target)))
                .collect();
            (bindings.object.shown(), targets)
        })
        .collect()
}

fn by_target(targets: &IndexMap<String, String>) -> IndexMap<String, Vec<&str>> {
    let mut found: IndexMap<String, Vec<&str>> = IndexMap::new();
    for (name, target) in targets {
        let short = Path::new(target)
            .file_name()
            .map_or(target.clone(), |name| name.to_string_lossy().into());
        found.entry(short).or_default().push(name);
    }
    found
}
