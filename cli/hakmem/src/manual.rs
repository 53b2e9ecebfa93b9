//! Makes a command's man page. clap_mangen makes most of it; its last section is replaced by the examples, line by line as they
//! are typed, and the rest of the help.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io::{Result, Write};

/// Where the documents named docs/… are installed: pages do not know the prefix of an installation.
pub const DOCUMENTS: &str = "share/doc/hakmem";
const ABOUT_DOCUMENTS: &str = "share/doc/hakmem is in the folder that hakmem was installed into, beside bin: \
    /usr/local/share/doc/hakmem, say. The sources have the same documents.";

/// Writes a command's page. `command` is built, and its help names documents by `DOCUMENTS`.
pub fn page(command: &Command, out: &mut dyn Write) -> Result<()> {
    let name = name_of(command);
    let version = command.get_version().unwrap_or(env!("CARGO_PKG_VERSION"));
    let mut text = Vec::new();
    let man = Man::new(command.clone())
        .title(&name)
        .date(" ") // the version says enough, and rebuilding a page does not change it
        .source(format!("hakmem {version}"))
        .manual("hakmem");
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|one| !one.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if visible(command).next().is_some() {
        man.render_subcommands_section(&mut text)?;
    }
    let help = command.get_after_help().map(ToString::to_string);
    let mut roff = Roff::new();
    let help = help.unwrap_or_default();
    for section in sections(&help) {
        section.put_into(&mut roff);
    }
    if help.contains(DOCUMENTS) {
        roff.control("SH", ["DOCUMENTS"]);
        roff.text([roman(ABOUT_DOCUMENTS)]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text(see_also(command, &name));
    roff.to_writer(&mut text)?;
    // Each part begins with the same character definitions; a page needs them once.
    let definitions = Roff::new().render();
    let text = String::from_utf8_lossy(&text).replace(&definitions, "");
    write!(out, "{definitions}{text}")
}

pub fn name_of(command: &Command) -> String {
    let name = command.get_display_name();
    name.unwrap_or(command.get_name()).to_string()
}

/// The commands that have their own pages.
pub fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let below = command.get_subcommands();
    below.filter(|one| !one.is_hide_set() && one.get_name() != "help")
}

/// A part of the help's last text.
#[derive(Debug, PartialEq)]
struct Section<'help> {
    title: &'static str,
    paragraphs: Vec<Vec<&'help str>>,
}

/// Sections of the help: examples, exit codes, and the rest.
fn sections(help: &str) -> Vec<Section<'_>> {
    let mut found: Vec<Section> = ["EXAMPLES", "NOTES", "EXIT STATUS"]
        .into_iter()
        .map(|title| Section {
            title,
            paragraphs: Vec::new(),
        })
        .collect();
    for paragraph in help.split("\n\n") {
        let lines: Vec<&str> = paragraph.lines().collect();
        match lines.split_first() {
            Some((&("Examples:" | "Example:"), lines)) => found[0].paragraphs.push(lines.to_vec()),
            Some((first, _)) if first.starts_with("Exit code") => found[2].paragraphs.push(lines),
            Some(_) => found[1].paragraphs.push(lines),
            None => {}
        }
    }
    found.retain(|section| !section.paragraphs.is_empty());
    found
}

impl Section<'_> {
    fn put_into(&self, roff: &mut Roff) {
        roff.control("SH", [self.title]);
        for (number, paragraph) in self.paragraphs.iter().enumerate() {
            if number > 0 {
                roff.control("PP", []);
            }
            if self.title == "EXAMPLES" {
                as_typed(roff, paragraph);
            } else {
                paragraph.iter().for_each(|line| {
                    roff.text([roman(*line)]);
                });
            }
        }
    }
}

/// Lines that must not be joined.
fn as_typed(roff: &mut Roff, lines: &[&str]) {
    let indented = |line: &&str| line.len() - line.trim_start().len();
    let margin = lines.iter().map(indented).min().unwrap_or(0);
    roff.control("EX", []);
    for line in lines {
        roff.text([roman(&line[margin..])]);
    }
    roff.control("EE", []);
}

/// The page above, or else all pages below.
fn see_also(command: &Command, name: &str) -> Vec<Inline> {
    let mut pages: Vec<String> = visible(command).map(name_of).collect();
    if let Some((above, _)) = name.rsplit_once('-') {
        pages.insert(0, above.to_string());
    } else {
        pages.push("hakmem(3)".into());
    }
    let mut text = Vec::new();
    for page in pages {
        if !text.is_empty() {
            text.push(roman(", "));
        }
        match page.strip_suffix("(3)") {
            Some(page) => text.extend([bold(page), roman("(3)")]),
            None => text.extend([bold(page), roman("(1)")]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Examples:
  hakmem x -- 'a  b' \\
              c
  .y

What is said
of it. Documents.

Exit code: 0.";

    #[test]
    fn examples_can_be_copied() {
        let command = Command::new("x").about("X").after_help(HELP);
        let mut page_bytes = Vec::new();
        page(&command, &mut page_bytes).unwrap();
        let page = String::from_utf8(page_bytes).unwrap();
        let examples =
            ".SH EXAMPLES\n.EX\nhakmem x \\-\\- \\*(Aqa  b\\*(Aq \\\\\n            c\n\\&.y\n.EE\n";
        assert!(page.contains(examples), "{page}");
        assert!(page.contains(".SH NOTES\nWhat is said\nof it."), "{page}");
        assert!(
            page.contains(".SH \"EXIT STATUS\"\nExit code: 0.\n"),
            "{page}"
        );
        assert_eq!(page.matches(".ds Aq").count(), 2, "{page}");
    }
}
