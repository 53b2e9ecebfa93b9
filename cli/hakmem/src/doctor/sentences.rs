//! The answer in sentences: what most of the memory is, why, and what can be done.

use super::Visit;
use super::which::Used;
use hakmem_foreign::judge::{Finding, Part};
use hakmem_lab::render::number::{age, bytes, grouped, signed_bytes};

pub struct Answer {
    pub verdict: String,
    pub evidence: Vec<String>,
    pub advice: Vec<String>,
    pub unknown: Vec<String>,
}

const NOTHING: &str = "Nothing: little can be gained.";
const UNDER_HAKMEM: &str = "Start the program with 'hakmem run': then 'hakmem profile' and \
                            'hakmem leaks' show which code allocated the blocks in use, and 'hakmem why' which code pins pages that are nearly free.";

pub fn answer(visit: &Visit) -> Answer {
    let judgement = &visit.judgement;
    let mut evidence = Vec::new();
    let mut advice = Vec::new();
    for finding in &judgement.findings {
        let (said, todo) = finding_said(finding, visit);
        evidence.extend(said);
        for line in todo {
            if !advice.contains(&line) {
                advice.push(line);
            }
        }
    }
    evidence.extend(
        visit
            .runtimes
            .iter()
            .map(|what| format!("It contains {what}.")),
    );
    if visit.now.ledger.hakmem_bytes > 0 {
        // Nothing can be asked of a process that has ended, but of the next that runs the same program.
        let (used, asked) = match visit.part {
            Some(_) => ("It used hakmem. While it runs", "PID"),
            None => ("It uses hakmem", visit.asked.as_str()),
        };
        advice = vec![format!(
            "{used}: 'hakmem why {asked}' says who pins memory, 'hakmem profile {asked}' who allocates, \
             'hakmem leaks {asked}' what is not freed."
        )];
    }
    if advice.is_empty() {
        advice.push(NOTHING.into());
    }
    Answer {
        verdict: verdict(visit),
        evidence,
        advice,
        unknown: unknown(visit),
    }
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / all.max(1) as f64)
}

fn verdict(visit: &Visit) -> String {
    let judgement = &visit.judgement;
    let all = judgement.resident_bytes;
    let main = judgement.main_bytes;
    if let Some(account) = &visit.now.hakmem {
        let live = account.resident.live;
        return format!(
            "Of {}, {} are blocks that the program holds, in hakmem's heap ({}).",
            bytes(all),
            bytes(live),
            percent(live, all)
        );
    }
    let what = match judgement.main {
        Part::Live => "blocks that the program holds: a leak, a cache, or what it needs",
        Part::Free => "free memory that malloc keeps: fragmentation, not a leak",
        Part::Hakmem => &format!(
            "hakmem's heap: 'hakmem stats {}' shows how much of it is in use",
            visit.asked
        ),
        Part::Files => "files, code and data, which the system can drop when it needs memory",
        Part::Shared => "memory that is shared with other processes, and counted in each",
        Part::Stacks => "stacks of threads",
        Part::Mapped => &mapped_by(visit),
    };
    let small = match judgement.is_small {
        true => " It is a small process.",
        false => "",
    };
    let where_it_is = if visit.is_core {
        "in the dump"
    } else {
        "resident"
    };
    format!(
        "{} of {} {where_it_is} ({}) are {what}.{small}",
        bytes(main),
        bytes(all),
        percent(main, all)
    )
}

/// The sentence about memory outside of known heaps.
fn mapped_by(visit: &Visit) -> String {
    match visit.foreign() {
        None => "memory that the program or a library maps itself, outside of malloc".into(),
        Some(used) => format!(
            "memory that {} or the program itself has mapped: how much of it is in use is not known",
            used.name()
        ),
    }
}

/// What to say about a finding, and what to do about it.
fn finding_said(finding: &Finding, visit: &Visit) -> (Option<String>, Vec<String>) {
    let all = visit.judgement.resident_bytes;
    let of = |count: u64| format!("{} ({})", bytes(count), percent(count, all));
    match *finding {
        Finding::LiveGrew { .. } | Finding::FreeGrew { .. } | Finding::ElseGrew { .. } => {
            growth(finding, visit)
        }
        Finding::Trim { bytes: count } => (
            Some(format!(
                "{} are free in whole pages: malloc_trim(0) would give them back now.",
                of(count)
            )),
            vec![trim_advice(visit)],
        ),
        Finding::Pinned { bytes: count } => (
            Some(pinned(&of(count), visit)),
            vec![
                "A trim cannot give back free memory beside blocks in use. An allocator that \
                 separates blocks by size has less of it ('hakmem compare' tries several)."
                    .into(),
                UNDER_HAKMEM.into(),
            ],
        ),
        Finding::ThreadArenas {
            bytes: count,
            arenas,
            idle_arenas,
            idle_bytes,
        } => (
            Some(arenas_said(&of(count), arenas, idle_arenas, idle_bytes)),
            vec![
                "MALLOC_ARENA_MAX=2 in the environment limits the arenas from the next start on. \
                 Threads that allocate much then contend for them, which an allocator with thread caches avoids (hakmem)."
                    .into(),
            ],
        ),
        Finding::Caches {
            bytes: count,
            caches,
        } => (
            Some(format!(
                "{} are free in the caches of {} threads.",
                of(count),
                grouped(caches)
            )),
            vec!["GLIBC_TUNABLES=glibc.malloc.tcache_count=0 switches the caches off, and costs time.".into()],
        ),
        Finding::Huge {
            bytes: count,
            free_bytes,
        } => (
            Some(format!(
                "{} lie in huge pages while {} of the heap are free: a huge page is resident as a whole.",
                bytes(count),
                bytes(free_bytes)
            )),
            vec![
                "Huge pages can be limited to programs that ask for them: 'madvise' in \
                 /sys/kernel/mm/transparent_hugepage/enabled, or prctl(PR_SET_THP_DISABLE)."
                    .into(),
            ],
        ),
        Finding::Kept { .. } | Finding::Beside { .. } => of_pieces(finding, &of),
        _ => elsewhere(finding, visit, &of),
    }
}

/// Free memory in the heap of an allocator other than glibc's.
fn of_pieces(finding: &Finding, of: &dyn Fn(u64) -> String) -> (Option<String>, Vec<String>) {
    match finding {
        Finding::Kept { allocator, bytes } => (
            Some(format!(
                "{} are free in whole pieces that {allocator} keeps for reuse.",
                of(*bytes)
            )),
            vec![kept_advice(allocator)],
        ),
        Finding::Beside { allocator, bytes } => (
            Some(format!(
                "{} are free beside blocks in use; each piece of {allocator}'s memory has blocks of one size.",
                of(*bytes)
            )),
            vec![
                "Free memory beside blocks in use is given back only when the program frees or \
                 moves these blocks. Another allocator may place them better ('hakmem compare' tries several)."
                    .into(),
                UNDER_HAKMEM.into(),
            ],
        ),
        _ => (None, Vec::new()),
    }
}

/// How to make an allocator give back what it keeps.
fn kept_advice(allocator: &str) -> String {
    match allocator {
        "jemalloc" => {
            "jemalloc purges free memory after dirty_decay_ms (10 s), but only when it is called. \
             With background_thread:true in MALLOC_CONF it purges in any case, with mallctl(\"arena.4096.purge\") at once (in redis: MEMORY PURGE)."
        }
        "mimalloc" => {
            "mimalloc purges free memory after MIMALLOC_PURGE_DELAY milliseconds, but only when \
             it is called; mi_collect(true) purges at once."
        }
        _ => "The allocator's own settings say how long it keeps free memory.",
    }
    .into()
}

/// The settings that limit mapped memory.
fn own_settings(visit: &Visit) -> String {
    let names = visit.foreign().map(|used| used.names.join(" "));
    match names.as_deref() {
        None => "Memory that a program maps itself is limited by the program's own settings \
                 (-Xmx, --max-old-space-size, sizes of pools and buffers), and not by malloc."
            .into(),
        Some("jemalloc") => "jemalloc reports what is in use: malloc_stats_print, or MALLOC_CONF=stats_print:true at \
                             the next start; dirty_decay_ms in MALLOC_CONF says how long it keeps free memory."
            .into(),
        Some("mimalloc") => "mimalloc reports what is in use: MIMALLOC_SHOW_STATS=1 at the next start; \
                             MIMALLOC_PURGE_DELAY says how long it keeps free memory."
            .into(),
        Some("gperftools") => "gperftools' tcmalloc reports what is in use: MallocExtension_GetStats; \
                               TCMALLOC_RELEASE_RATE=10 releases free pages sooner, and MallocExtension_ReleaseFreeMemory at once."
            .into(),
        Some(_) => "The allocator's own statistics show what is in use.".into(),
    }
}

fn elsewhere(
    finding: &Finding,
    visit: &Visit,
    of: &dyn Fn(u64) -> String,
) -> (Option<String>, Vec<String>) {
    match *finding {
        Finding::Files { bytes } => (
            Some(format!(
                "{} are pages of files; most of them are shared with other processes that use the same files.",
                of(bytes)
            )),
            Vec::new(),
        ),
        Finding::Shared { bytes } => (
            Some(format!(
                "{} are shared memory: Pss in /proc/PID/smaps_rollup divides it among the \
                 processes that share it.",
                of(bytes)
            )),
            Vec::new(),
        ),
        Finding::Stacks { bytes } => (
            Some(format!("{} are stacks.", of(bytes))),
            vec![
                "Use fewer threads, or smaller stacks (ulimit -s, pthread_attr_setstacksize)."
                    .into(),
            ],
        ),
        Finding::Mapped {
            bytes: all,
            stretches,
        } => (
            Some(format!(
                "{} in {} mappings{} belong to no known allocator: a runtime's heap, a pool, or \
                 another malloc.",
                of(all),
                grouped(stretches),
                match visit.now.ledger.others.by_break {
                    0 => String::new(),
                    by_break => format!(", {} of it by the break (sbrk),", bytes(by_break)),
                }
            )),
            vec![own_settings(visit)],
        ),
        Finding::Swapped { bytes } => (
            Some(format!(
                "{} are swapped out, in addition to this.",
                of(bytes)
            )),
            Vec::new(),
        ),
        Finding::Unclear { bytes } => (
            Some(format!(
                "{} of the heap are inconsistent: they changed while they were read, or are damaged.",
                of(bytes)
            )),
            Vec::new(),
        ),
        _ => (None, Vec::new()),
    }
}

fn trim_advice(visit: &Visit) -> String {
    match visit.pid {
        None => "malloc_trim(0) from time to time gives free pages back.".into(),
        Some(pid) => format!(
            "Call malloc_trim(0), in the program from time to time, or once from outside: \
             gdb -p {pid} -batch -ex 'call (int)malloc_trim(0)', which stops it for a moment."
        ),
    }
}

fn pinned(of: &str, visit: &Visit) -> String {
    let Some(figures) = &visit.now.glibc else {
        return String::new();
    };
    let pins = &figures.pins;
    let most = pins.blocks.iter().max_by_key(|size| size.blocks);
    let by = most.map_or(String::new(), |size| {
        let all: u64 = pins.blocks.iter().map(|size| size.blocks).sum();
        let from = match size.from_bytes() {
            from if from == size.up_to_bytes => String::new(),
            from => format!("{from} to "),
        };
        format!(
            "; {} of the blocks there have {from}{} bytes with their headers",
            percent(size.blocks, all),
            size.up_to_bytes
        )
    });
    format!(
        "{of} are free on pages with blocks in use; {} pages are at most a quarter in use, and pin {}{by}.",
        grouped(pins.pages),
        bytes(pins.free_bytes)
    )
}

fn arenas_said(of: &str, arenas: u64, idle: u64, idle_bytes: u64) -> String {
    let idle = match idle {
        0 => String::new(),
        1 => format!(
            ", {} of it in an arena whose threads have ended",
            bytes(idle_bytes)
        ),
        _ => format!(
            ", {} of it in {idle} arenas whose threads have ended",
            bytes(idle_bytes)
        ),
    };
    format!(
        "{of} are free in {arenas} arenas of threads{idle}; each arena can only use its own free memory."
    )
}

fn growth(finding: &Finding, visit: &Visit) -> (Option<String>, Vec<String>) {
    let time = age(visit.seconds.unwrap_or(0.0));
    let least = 64 << 10;
    let signed = |count: i64| signed_bytes(count as f64);
    match *finding {
        Finding::LiveGrew {
            bytes: count,
            blocks,
        } if count.abs() >= least => (
            Some(format!(
                "In {time} blocks in use changed by {} ({blocks:+} blocks){}.",
                signed(count),
                if count > 0 {
                    ": a leak, or a cache that fills"
                } else {
                    ""
                }
            )),
            if count > 0 {
                vec![UNDER_HAKMEM.into()]
            } else {
                Vec::new()
            },
        ),
        Finding::FreeGrew { bytes: count } if count.abs() >= least => (
            Some(format!(
                "In {time} free memory that malloc keeps changed by {}.",
                signed(count)
            )),
            Vec::new(),
        ),
        Finding::ElseGrew { bytes: count } if count.abs() >= least => (
            Some(format!(
                "In {time} memory outside of malloc changed by {}.",
                signed(count)
            )),
            Vec::new(),
        ),
        Finding::LiveGrew { .. } => (
            Some(format!("In {time} blocks in use did not grow.")),
            Vec::new(),
        ),
        _ => (None, Vec::new()),
    }
}

fn unknown(visit: &Visit) -> Vec<String> {
    let mut lines = Vec::new();
    let ledger = &visit.now.ledger;
    let has_hakmem = visit.allocators.iter().any(Used::is_hakmem);
    if visit.is_snapshot && !visit.is_core && has_hakmem && visit.now.hakmem.is_none() {
        let line = "How much of hakmem's heap was resident: another build of hakmem took this \
                    snapshot, in another format. The heap may count as mapped by others.";
        lines.push(line.into());
    }
    if let Some(why) = &visit.hakmem_unread {
        lines.push(format!(
            "How much of its memory is hakmem's heap, which counts as mapped by others: {why}."
        ));
    }
    if visit.is_snapshot {
        lines.push(
            "Whether it grows: 'hakmem diff' of this snapshot and a later one shows it.".into(),
        );
    } else if visit.before.is_none() && visit.part.is_none() && !visit.is_core {
        lines.push("Whether it grows: --seconds 60 looks twice.".into());
    }
    if visit.now.glibc.is_some() && visit.now.ledger.hakmem_bytes == 0 {
        lines.push("Which code allocated the blocks: glibc does not record it.".into());
    }
    if let Some(figures) = &visit.now.glibc {
        let main = figures.arenas.iter().find(|arena| arena.is_main);
        if main.is_some_and(|arena| arena.address.is_none()) {
            lines.push("What the main arena's fast bins hold: it counts as in use.".into());
        }
    }
    for heap in &visit.now.others {
        let allocator = &heap.allocator;
        lines.push(format!(
            "Which code allocated the blocks, and which of them are free in {allocator}'s thread \
             caches: these count as in use."
        ));
        if heap.unclear > 0 {
            lines.push(format!(
                "What is in {} pieces of {allocator}'s memory: their metadata changed meanwhile or is damaged.",
                grouped(heap.unclear)
            ));
        }
    }
    if let Some(used) = visit.foreign() {
        lines.push(format!(
            "How much of {} mapped by others is free inside {}: its heap is not read.",
            bytes(ledger.others.mapped + ledger.others.by_break),
            used.name()
        ));
    } else if ledger.others.mapped > ledger.kernel_bytes / 20 {
        lines.push("How much is in use of the memory that the program maps itself.".into());
    }
    if let Some(cut) = &visit.cut {
        lines.push(format!(
            "What is missing from the dump: {cut}. All figures are of the rest."
        ));
    }
    if visit.is_core {
        lines.push("Which pages were resident: a core dump only has what was mapped.".into());
    }
    lines
}
