//! Shows documents as text: tables for a terminal or in Markdown, and samples as CSV.

mod campaign;
mod comparison;
mod csv;
mod features;
pub mod number;
mod table;
pub mod text;

pub use csv::{csv, field};
pub use features::MINIMAL;
pub use number::{duration, memory};
pub use table::{Cell, Form, Table, Tone};

use crate::document::Document;
use crate::noise;

/// Everything in a document. A single workload is shown in full, several as one row each.
pub fn render(document: &Document, form: Form) -> String {
    let mut parts = vec![identity(document, form)];
    parts.extend(before_any_figure(document, form));
    parts.extend(campaign::moments(document, form));
    parts.extend(campaign::reported(document, form));
    if document.variants.len() == 1 {
        parts.extend(comparison::parts(document, form));
    } else {
        parts.extend(campaign::parts(document, form));
    }
    let noise = noise::noise(document);
    if !noise.is_empty() {
        parts.push(section(
            "Before a figure is quoted",
            &list(&noise, form),
            form,
        ));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn section(title: &str, content: &str, form: Form) -> String {
    match form {
        Form::Markdown => format!("### {title}\n\n{content}"),
        Form::Text { .. } => format!("{}\n{content}", form.strong(title)),
    }
}

fn list(lines: &[String], form: Form) -> String {
    let bullet = if form == Form::Markdown { "- " } else { "  " };
    lines
        .iter()
        .map(|line| format!("{bullet}{line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Refusals and notes; they precede all figures.
fn before_any_figure(document: &Document, form: Form) -> Vec<String> {
    let mut lines: Vec<String> = document.notes.clone();
    for one in &document.refused {
        let variant = if document.variants.len() == 1 {
            String::new()
        } else {
            format!("{} under ", one.variant)
        };
        lines.push(form.toned(
            &format!("{variant}{} has no figure: {}", one.allocator, one.reason),
            Tone::Bad,
        ));
    }
    if lines.is_empty() {
        return Vec::new();
    }
    vec![section("Notes", &list(&lines, form), form)]
}

fn identity(document: &Document, form: Form) -> String {
    let machine = &document.machine;
    let state = match (document.settings.quick, &document.finished) {
        (_, None) => ", UNFINISHED",
        (true, _) => ", quick: a check that all works, not a measurement",
        _ => "",
    };
    let mut lines = Vec::new();
    if let (1, Some(variant)) = (document.variants.len(), document.variants.values().next()) {
        let words: Vec<String> = std::iter::once(&variant.program)
            .chain(&variant.args)
            .map(|word| crate::meter::quoted(word))
            .collect();
        lines.push(form.strong(&words.join(" ")));
    }
    lines.push(format!(
        "{} run{} of each, in turn, after a warm-up{state}",
        document.settings.runs,
        if document.settings.runs == 1 { "" } else { "s" }
    ));
    lines.push(format!(
        "{}, {} CPUs, {} GiB, {}, kernel {}, huge pages {}",
        machine.cpu,
        machine.usable_cpus,
        (machine.memory_kib as f64 / (1024.0 * 1024.0)).round(),
        machine.system,
        machine.kernel,
        machine.transparent_huge_pages
    ));
    if form == Form::Markdown {
        for (name, one) in &document.allocators {
            lines.push(format!(
                "{name} {}: {}, SHA-256 {}",
                one.version,
                one.library.as_deref().unwrap_or("the C library's own"),
                one.sha256.get(..16).unwrap_or("none")
            ));
        }
        return list(&lines, form);
    }
    lines.join("\n")
}
