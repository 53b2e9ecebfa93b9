//! `hakmem ledger`: a process's resident memory, explained to the last page.

use crate::doctor::seen::{self, Seen};
use crate::holds::{self, Row, others};
use crate::output::{print_json, show, terminal};
use crate::target::{Opened, Target};
use clap::Args;
use hakmem_heap::heap::Heap;
use hakmem_heap::ledger::{Account, Slack};
use hakmem_lab::error::Result;
use hakmem_lab::render::number::bytes;
use hakmem_lab::render::{Cell, Form, Table, Tone};
use serde::Serialize;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem ledger 4711
  hakmem ledger $(pidof redis-server) --json
  hakmem ledger --core monday.hks                 a snapshot, perhaps of another machine

Each resident page is looked up in the heap's own tables. The sum is compared with the kernel's
figure (Rss in /proc/PID/smaps), and the remainder is shown: a running process changes meanwhile,
and a kernel before 6.7 does not tell which pages only read as zero and take no memory.";

/// Explain what a process's resident memory is made of
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem ledger [OPTIONS] PID\n       hakmem ledger [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    account: Account,
    slack: Option<Slack>,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    match Seen::of(arguments.target.open()?, false)? {
        Seen::Others(visit) if arguments.json => print_json(&visit)?,
        Seen::Others(visit) => show(&seen::ledger(&visit, terminal())),
        Seen::Ours { opened, heap } => ours(arguments, &opened, &heap)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn ours(arguments: &Arguments, opened: &Opened, heap: &Heap) -> Result<()> {
    let account = opened.account(heap)?;
    let account = account.ok_or_else(|| opened.without_account())?;
    let slack = Slack::of(&opened.profile()?.samples, account.resident.live);
    let explained = Explained { account, slack };
    if arguments.json {
        print_json(&explained)?;
    } else {
        show(&text(opened, &explained, terminal()));
    }
    Ok(())
}

fn table(account: &Account, form: Form) -> String {
    let ledger = &account.resident;
    let mut table = Table::default();
    table.text_column("resident memory", 0);
    table.number_column("bytes", 0);
    table.number_column("share", 0);
    table.text_column("", 1);
    let all = account.kernel_bytes.max(1) as f64;
    let mut add = |(name, count, note): Row, tone: Tone| {
        table.row(vec![
            Cell::toned(name, tone),
            Cell::toned(bytes(count), tone),
            Cell::toned(format!("{:.1} %", count as f64 * 100.0 / all), tone),
            Cell::toned(note, Tone::Faint),
        ]);
    };
    for row in holds::ours(ledger) {
        add(row, Tone::Plain);
    }
    add(("hakmem", ledger.ours(), ""), Tone::Strong);
    for row in others(ledger) {
        add(row, Tone::Plain);
    }
    add(("sum", account.known_bytes, ""), Tone::Strong);
    add(
        (
            "the kernel's figure",
            account.kernel_bytes,
            "Rss of all areas",
        ),
        Tone::Plain,
    );
    table.render(form)
}

fn text(opened: &Opened, Explained { account, slack }: &Explained, form: Form) -> String {
    let mut lines = vec![
        form.strong(&opened.title()),
        String::new(),
        table(account, form),
        String::new(),
    ];
    lines.push(remainder(account));
    lines.push(class_slack(slack.as_ref()));
    let besides = [
        (account.huge_bytes, "in huge pages"),
        (
            account.lazily_freed_bytes,
            "freed lazily: the kernel takes it when it needs memory",
        ),
        (account.swapped_bytes, "swapped out, which is not resident"),
    ];
    for (count, what) in besides {
        if count > 0 {
            lines.push(format!("besides: {} {what}", bytes(count)));
        }
    }
    if account.moved_blocks > 0 {
        let line = format!(
            "± {} blocks moved while this was read",
            account.moved_blocks
        );
        lines.push(form.toned(&line, Tone::Faint));
    }
    lines.join("\n") + "\n"
}

fn class_slack(slack: Option<&Slack>) -> String {
    match slack {
        Some(slack) => format!(
            "of live blocks: {} ± {} exceed the requested sizes (class slack), by {} samples",
            bytes(slack.bytes as u64),
            bytes(slack.bytes_off as u64),
            slack.samples
        ),
        None => {
            "of live blocks: what exceeds the requested sizes (class slack) is not known without \
             samples: set HAKMEM_SAMPLE_BYTES=524288"
                .into()
        }
    }
}

fn remainder(account: &Account) -> String {
    let size = bytes(account.remainder_bytes.unsigned_abs());
    match account.remainder_bytes {
        0 => "remainder: none".into(),
        1.. => format!("remainder: {size} that became resident meanwhile"),
        _ => format!("remainder: {size} that only reads as zero, or was purged meanwhile"),
    }
}
