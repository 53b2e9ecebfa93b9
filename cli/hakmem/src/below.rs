//! Fits the text below the options in help to a narrow screen: refills paragraphs, and moves an example's explanation below the
//! example.

use hakmem_lab::render::text::{width_of, wrapped};

/// The widest help that clap makes; the texts are written for this width.
pub const WRITTEN_FOR: usize = 100;
/// The indents of an example, of its further lines, and of its explanation.
const EXAMPLE: &str = "  ";
const FURTHER: &str = "    ";
const ABOUT: &str = "      ";

pub fn fitted(help: &str, width: usize) -> String {
    let paragraphs = help.split("\n\n");
    let fitted: Vec<String> = paragraphs.map(|one| paragraph(one, width)).collect();
    fitted.join("\n\n")
}

fn paragraph(text: &str, width: usize) -> String {
    if text.lines().all(|line| width_of(line) <= width) {
        return text.to_string();
    }
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    match first {
        "Examples:" | "Example:" => format!("{first}\n{}", examples(rest, width)),
        _ if text.lines().any(|line| line.starts_with(' ')) => text.to_string(), // lines that stay
        _ => wrapped(&text.replace('\n', " "), width),
    }
}

fn examples(text: &str, width: usize) -> String {
    // A command may continue on the next line.
    let text: String = text.split("\\\n").map(str::trim_start).collect();
    let lines: Vec<(&str, &str)> = text.lines().map(parts).collect();
    let commands = lines.iter().filter(|(_, about)| !about.is_empty());
    let column = commands.map(|(command, _)| width_of(command)).max();
    let column = EXAMPLE.len() + column.unwrap_or(0) + 2;
    let fit_beside = lines
        .iter()
        .all(|(_, about)| column + width_of(about) <= width);
    let mut fitted = Vec::new();
    for (command, about) in lines {
        if !about.is_empty() && fit_beside {
            let gap = " ".repeat(column - EXAMPLE.len() - width_of(command));
            fitted.push(format!("{EXAMPLE}{command}{gap}{about}"));
            continue;
        }
        fitted.extend(command_lines(command, width));
        if !about.is_empty() {
            fitted.push(wrapped(&format!("{ABOUT}{about}"), width));
        }
    }
    fitted.join("\n")
}

/// A command, and its explanation.
fn parts(line: &str) -> (&str, &str) {
    let line = line.trim();
    match line.rsplit_once("  ") {
        Some((command, about)) => (command.trim_end(), about),
        None => (line, ""),
    }
}

/// Breaks a command so that it can still be copied.
fn command_lines(command: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = EXAMPLE.to_string();
    let mut words = words(command).peekable();
    while let Some(word) = words.next() {
        let is_first = line.trim().is_empty();
        let goes_on = if words.peek().is_some() { 2 } else { 0 };
        if !is_first && width_of(&line) + 1 + width_of(word) + goes_on > width {
            line.push_str(" \\");
            lines.push(std::mem::replace(&mut line, FURTHER.to_string()));
        } else if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Splits a command into words, as a shell does: quoted text is one word.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let parts = command.split(move |letter| match (quote, letter) {
        (None, '\'' | '"') => {
            quote = Some(letter);
            false
        }
        (Some(open), _) if open == letter => {
            quote = None;
            false
        }
        (open, _) => open.is_none() && letter == ' ',
    });
    parts.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Examples:
  x one              what this one does
  x --long 'a b' \\
    three

All that is
said of it.";

    #[test]
    fn what_fits_stays() {
        assert_eq!(fitted(HELP, 80), HELP);
        let lines = "Lines:\n\n  one = 1    # a\n  two = 2";
        assert_eq!(fitted(lines, 8), lines);
    }

    #[test]
    fn what_does_not_is_put_anew() {
        let at = |width| fitted(HELP, width);
        let close = "Examples:\n  x one  what this one does\n  x --long 'a b' three\n\nAll that is\nsaid of it.";
        assert_eq!(at(30), close);
        let below = "Examples:\n  x one\n      what this one\n      does\n  x --long 'a b' \\\n    three\n\nAll that is\nsaid of it.";
        assert_eq!(at(20), below);
        assert!(at(9).ends_with("\n\nAll that\nis said\nof it."));
    }
}
