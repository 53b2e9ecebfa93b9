//! Refused allocations, as a table and as JSON.

use crate::frames;
use hakmem_heap::failures::{Failure, Failures};
use hakmem_lab::render::number::bytes;
use hakmem_lab::render::{Cell, Form, Table};
use hakmem_trace::symbols::Names;
use nix::errno::Errno;
use nix::libc;
use serde_json::json;

pub fn as_json(failures: &Failures, names: &mut Names) -> serde_json::Value {
    let latest = failures.latest.iter().map(|failure| {
        let mut object = json!(failure);
        object["site_names"] = json!(names.of(failure.place));
        object
    });
    json!({ "count": failures.count, "latest": latest.collect::<Vec<_>>() })
}

/// The latest `most` of them as a table.
pub fn text(failures: &Failures, most: usize, names: &mut Names, form: Form) -> String {
    if failures.count == 0 {
        return "no allocation was refused\n".into();
    }
    let mut table = Table::default();
    table.text_column("when", 1);
    table.number_column("bytes", 0);
    table.number_column("aligned", 3);
    table.text_column("thread", 2);
    table.text_column("why", 0);
    table.text_column("called at", 0);
    let shown = failures.latest.len().min(most);
    for failure in &failures.latest[failures.latest.len() - shown..] {
        table.row(vec![
            Cell::new(time_of_day(failure.date_ns)),
            Cell::new(size(failure.bytes)),
            Cell::new(match failure.alignment {
                1 => "-".into(),
                alignment => bytes(alignment),
            }),
            Cell::new(failure.thread_id.to_string()),
            Cell::fitting(why(failure)),
            Cell::fitting(called_at(failure.site, &names.of(failure.place))),
        ]);
    }
    let before = failures.count.saturating_sub(shown as u64);
    let rest = if before > 0 {
        format!("and {before} before these\n")
    } else {
        String::new()
    };
    format!("{}\n{rest}", table.render(form))
}

/// "0x7f3a main (a.c:12)", in shorter and shorter forms.
fn called_at(site: u64, names: &[String]) -> Vec<String> {
    let places = frames::place(names);
    let with_address = places.first().map(|place| format!("{site:#x} {place}"));
    with_address.into_iter().chain(places).collect()
}

/// A size that no block can have is probably a negative number, or a product that is too large.
fn size(count: u64) -> String {
    if count >= 1 << 63 {
        "at least 8 EiB".into()
    } else {
        bytes(count)
    }
}

/// "MapFail ENOMEM: RLIMIT_AS is 512 MiB, 500 MiB in use", in shorter and shorter forms.
fn why(failure: &Failure) -> Vec<String> {
    let kind = match failure.kind.as_str() {
        "threshold" => {
            let whole = "Threshold: no size class takes it".to_string();
            return vec![whole, "no size class takes it".into(), "Threshold".into()];
        }
        "exhaustion" => "Exhaustion".into(),
        "map_fail" => format!("MapFail {}", error_name(failure.error)),
        "injected" => "Injected".into(),
        other => other.to_string(),
    };
    let Some(limit) = &failure.limit else {
        return vec![kind];
    };
    let figure = |value: u64| {
        if limit == "mappings" {
            value.to_string()
        } else {
            bytes(value)
        }
    };
    let used = match failure.limit_use {
        0 => String::new(),
        used => format!(", {} in use", figure(used)),
    };
    let name = limit_name(limit);
    let is = format!("{name} is {}", figure(failure.limit_value));
    vec![
        format!("{kind}: {is}{used}"),
        format!("{is}{used}"),
        is,
        name.into(),
    ]
}

fn limit_name(limit: &str) -> &str {
    match limit {
        "addresses" => "the address space",
        "as" => "RLIMIT_AS",
        "data" => "RLIMIT_DATA",
        "memlock" => "RLIMIT_MEMLOCK",
        "commit" => "CommitLimit",
        "overcommit" => "memory and swap",
        "mappings" => "vm.max_map_count",
        "group" => "the control group's memory",
        "hard" => "option limit_hard",
        "map" => "hakmem's address map",
        other => other,
    }
}

fn error_name(error: u64) -> String {
    i32::try_from(error).map_or(error.to_string(), |number| {
        format!("{:?}", Errno::from_raw(number))
    })
}

/// "16:03:22.123", in this machine's time zone.
pub fn time_of_day(date_ns: u64) -> String {
    let seconds = (date_ns / 1_000_000_000).try_into().unwrap_or(0);
    // SAFETY: all zeros is a value of this struct, which localtime_r fills in.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    format!(
        "{:02}:{:02}:{:02}.{:03}",
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
        date_ns / 1_000_000 % 1000
    )
}
