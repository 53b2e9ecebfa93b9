//! `hakmem core`: explains the pointers with which a program died, from its core dump.

use crate::output::{print_json, show, terminal};
use crate::picture::owner_names;
use crate::profile::notes;
use crate::refusals;
use crate::target::{names_of_core, open_core, read_core};
use clap::Args;
use hakmem_heap::core::{CoreFile, Thread};
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::judge::{self, Description, State};
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use hakmem_lab::launch::signal_name;
use hakmem_lab::render::number::bytes;
use hakmem_lab::render::{Form, Tone};
use hakmem_trace::symbols::Names;
use nix::sys::signal::Signal;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem core core.4711                   why it ended, pointers in registers, damage
  hakmem core core.4711 0x7f32c0a01240    is this pointer live, and which block is it?
  gcore 4711 && hakmem core core.4711     of a process that hangs

The program and its libraries need not be on this machine. Exit code: 0 nothing is damaged; 1
something is; 2 wrong usage.";

/// How many contradictions to show at most.
const DAMAGE_MAX: usize = 50;
/// How many of the latest refused allocations to show; `hakmem failures` shows all.
const FAILURES_MAX: usize = 5;

/// Explain a core dump: is a pointer live, whose block is it, is anything damaged?
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A core dump, by the kernel or by gcore
    file: PathBuf,
    /// Addresses to explain, instead of those in registers
    #[arg(value_parser = address, value_name = "ADDRESS")]
    addresses: Vec<u64>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// "0x7f32c0a01240" or decimal
fn address(text: &str) -> std::result::Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "an address is a number such as 0x7f32c0a01240".to_string())
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let core = open_core(&arguments.file)?;
    let mut names = names_of_core(&core);
    let heap = match read_core(&core) {
        Ok(heap) => heap,
        Err(_) if core.cut().is_some() => return without_heap(&core, arguments.json),
        Err(error) => return Err(error),
    };
    let damage = judge::damage(&heap);
    let asked = subjects(&core, &heap, &arguments.addresses);
    if arguments.json {
        print_json(&as_json(&core, &heap, &asked, &damage, &mut names))?;
    } else {
        show(&text(&core, &heap, &asked, &damage, terminal()));
        if heap.failures.count > 0 {
            let table = refusals::text(&heap.failures, FAILURES_MAX, &mut names, terminal());
            show(&format!("\nallocations that were refused:\n{table}"));
            show(&notes(names.notes()));
        }
    }
    Ok(if damage.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Shows what is left of a dump that was cut before hakmem's tables.
fn without_heap(core: &CoreFile, is_json: bool) -> Result<ExitCode> {
    if is_json {
        print_json(&story_json(core))?;
    } else {
        let lines = head(core, terminal());
        println!("{}", lines.join("\n"));
    }
    Err(failed!(
        "{}: hakmem's tables are in the missing part, so nothing is known of the heap",
        core.path.shown()
    ))
}

/// What is known of the program without its memory.
fn head(core: &CoreFile, form: Form) -> Vec<String> {
    let story = &core.story;
    let program = if story.command_line.is_empty() {
        &story.program
    } else {
        &story.command_line
    };
    let mut lines = vec![
        form.strong(&format!("{}: {program}", core.path.shown())),
        death(core),
    ];
    lines.extend(core.cut().map(|line| form.toned(&line, Tone::Bad)));
    lines
}

fn story_json(core: &CoreFile) -> serde_json::Value {
    json!({
        "program": core.story.program,
        "command_line": core.story.command_line,
        "signal": core.story.signal,
        "fault_address": core.story.fault_address.map(|address| format!("{address:#x}")),
        "is_cut": core.cut().is_some(),
    })
}

/// An address, and where it comes from.
struct Subject {
    name: String,
    address: u64,
    description: Description,
}

/// The addresses that were asked for, or else those in the dead thread's registers that are hakmem's.
fn subjects(core: &CoreFile, heap: &Heap, addresses: &[u64]) -> Vec<Subject> {
    let subject = |name: String, address: u64| Subject {
        name,
        address,
        description: judge::describe(heap, address),
    };
    if !addresses.is_empty() {
        return addresses
            .iter()
            .map(|address| subject(String::new(), *address))
            .collect();
    }
    let fault = core
        .story
        .fault_address
        .map(|address| subject("fault".into(), address));
    let registers = core
        .story
        .threads
        .first()
        .map(registers)
        .unwrap_or_default();
    let ours = registers
        .into_iter()
        .map(|(name, value)| subject(name, value))
        .filter(|subject| subject.description.state != State::Foreign);
    fault.into_iter().chain(ours).collect()
}

/// The general registers, in the kernel's order.
fn registers(thread: &Thread) -> Vec<(String, u64)> {
    #[cfg(target_arch = "x86_64")]
    let names = [
        "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx",
        "rsi", "rdi",
    ]
    .map(String::from);
    #[cfg(target_arch = "aarch64")]
    let names: Vec<String> = (0..31).map(|number| format!("x{number}")).collect();
    names
        .into_iter()
        .zip(thread.registers.iter().copied())
        .collect()
}

fn state_text(state: State) -> &'static str {
    match state {
        State::Foreign => "no memory of hakmem's",
        State::Live => "live",
        State::InSlab => "free, in its slab",
        State::InMagazine(_) => "free, in a magazine",
        State::InStock => "free, in a stock or in quarantine",
        State::InParcel(_) => "freed by another thread, on its way to its owner",
        State::NeverUsed => "never handed out",
        State::Kept => "free, kept in BigCache",
        State::Rest => "after the last block",
        State::Before => "before the block",
        State::FreeUnit => "free, in no slab",
        State::Metadata => "hakmem's own, descriptors",
    }
}

/// "0x7f… +8: live, in block 0x7f… of 64 bytes, slab 0x7f… of 4711 main"
fn sentence(subject: &Subject, core: &CoreFile, owners: &dyn Fn(u64) -> String) -> String {
    let Subject {
        address,
        description,
        ..
    } = subject;
    let mut text = format!("{address:#x}: {}", state_text(description.state));
    if description.state == State::Foreign {
        text.push_str(if core.had(*address) {
            ", but mapped"
        } else {
            ", and nothing is mapped there"
        });
    }
    if let State::InMagazine(number) | State::InParcel(number) = description.state {
        text.push_str(&format!(" of {}", owners(number)));
    }
    if let Some((start, size)) = description.block {
        let place = match address.checked_sub(start) {
            None => format!("{} bytes before", start - address),
            Some(0) => "the start of".into(),
            Some(offset) if offset < size => format!("{offset} bytes into"),
            Some(offset) => format!("{} bytes past the end of", offset - size),
        };
        text.push_str(&format!("; {place} block {start:#x}, {size} bytes"));
    }
    if let Some((base, owner)) = description.slab {
        let owner = owner.map_or("an unknown owner".into(), owners);
        text.push_str(&format!("; slab {base:#x} of {owner}"));
    }
    text
}

/// In a dump that gcore has written, the signal is the one that stopped the process.
fn death(core: &CoreFile) -> String {
    let story = &core.story;
    if story.threads.is_empty() && core.cut().is_some() {
        return "the part that says how it ended is missing".into();
    }
    let signal = story.signal.and_then(|signal| i32::try_from(signal).ok());
    let by = signal
        .filter(|signal| ![0, Signal::SIGSTOP as i32].contains(signal))
        .map_or("stopped, not ended by a signal".into(), |signal| {
            format!("ended by {}", signal_name(signal))
        });
    let thread = story
        .threads
        .first()
        .map_or(String::new(), |thread| format!(", thread {}", thread.id));
    format!("{by}{thread}, of {} threads", story.threads.len())
}

fn text(core: &CoreFile, heap: &Heap, asked: &[Subject], damage: &[String], form: Form) -> String {
    let totals = Figures::of(heap).totals;
    let names = owner_names(heap, &|_| None);
    let owners = |number: u64| {
        let index = heap.caches.iter().position(|cache| cache.number == number);
        index.map_or(format!("cache {number}"), |index| names[index].clone())
    };
    let mut lines = head(core, form);
    lines.push(format!(
        "hakmem {}: {} live in {} blocks, of {} mapped; {} caches",
        heap.release,
        bytes(totals.live_bytes),
        totals.live_blocks,
        bytes(totals.mapped_bytes),
        totals.cache_count
    ));
    if !asked.is_empty() {
        lines.push(String::new());
    }
    for subject in asked {
        let tone = match subject.description.state {
            State::Live => Tone::Good,
            State::Foreign => Tone::Plain,
            _ => Tone::Bad,
        };
        let text = form.toned(&sentence(subject, core, &owners), tone);
        let name = &subject.name;
        lines.push(if name.is_empty() {
            text
        } else {
            format!("{name:>6}  {text}")
        });
    }
    lines.push(String::new());
    if damage.is_empty() {
        lines.push(form.toned("no damage found in the metadata", Tone::Good));
    } else {
        lines.push(form.toned(
            &format!("{} contradictions in the metadata:", damage.len()),
            Tone::Bad,
        ));
        lines.extend(
            damage
                .iter()
                .take(DAMAGE_MAX)
                .map(|line| format!("  {line}")),
        );
        if damage.len() > DAMAGE_MAX {
            lines.push(format!("  … and {} more", damage.len() - DAMAGE_MAX));
        }
    }
    lines.join("\n") + "\n"
}

fn as_json(
    core: &CoreFile,
    heap: &Heap,
    asked: &[Subject],
    damage: &[String],
    names: &mut Names,
) -> serde_json::Value {
    let pointers: Vec<serde_json::Value> = asked
        .iter()
        .map(|subject| {
            let description = &subject.description;
            json!({
                "name": subject.name,
                "address": format!("{:#x}", subject.address),
                "state": state_text(description.state),
                "block": description.block.map(|(start, _)| format!("{start:#x}")),
                "bytes": description.block.map(|(_, size)| size),
                "slab": description.slab.map(|(base, _)| format!("{base:#x}")),
                "cache": description.slab.and_then(|(_, owner)| owner),
            })
        })
        .collect();
    let mut value = story_json(core);
    value["release"] = json!(heap.release);
    value["totals"] = json!(Figures::of(heap).totals);
    value["pointers"] = json!(pointers);
    value["damage"] = json!(damage);
    value["failures"] = refusals::as_json(&heap.failures, names);
    value
}
