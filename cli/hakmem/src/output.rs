//! Where results go: to the screen in one form, and to a file.

use crate::page::Page;
use clap::Args;
use console::Term;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::document::Document;
use hakmem_lab::error::Result;
use hakmem_lab::places::Places;
use hakmem_lab::render::text::UNLIMITED;
use hakmem_lab::render::{self, Form};
use hakmem_lab::whole_file::Planned;
use hakmem_lab::{failed, usage};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// For a terminal that does not tell its width.
const USUAL_WIDTH: usize = 80;

/// A result that can be written in every form.
pub trait Shown {
    fn tables(&self, form: Form) -> String;
    /// Every sample as one line.
    fn csv(&self) -> String;
    fn json(&self) -> Result<String>;
    fn put_on(&self, page: &mut Page, name: &str);
}

impl Shown for Document {
    fn tables(&self, form: Form) -> String {
        render::render(self, form)
    }

    fn csv(&self) -> String {
        render::csv(self)
    }

    fn json(&self) -> Result<String> {
        Ok(self.to_text())
    }

    fn put_on(&self, page: &mut Page, name: &str) {
        page.add_comparison(name, self);
    }
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print tables as Markdown
    #[arg(long, group = "form")]
    markdown: bool,
    /// Print every sample as comma-separated values
    #[arg(long, group = "form")]
    csv: bool,
    /// Print the whole result as JSON
    #[arg(long, group = "form")]
    json: bool,
    /// Also write one HTML page with plots, which needs no network
    #[arg(long, value_name = "PAGE")]
    pub html: Option<PathBuf>,
}

impl Output {
    /// Is a text form requested that is made of one result?
    pub fn has_form(&self) -> bool {
        self.markdown || self.csv || self.json
    }

    /// The page to write; found before anything is measured.
    pub fn page(&self, places: &Places) -> Result<Option<Page>> {
        self.html
            .as_ref()
            .map(|path| Page::open(places, path))
            .transpose()
    }

    pub fn write_page(&self, page: Option<Page>, name: &str, shown: &impl Shown) -> Result<()> {
        if let Some(mut page) = page {
            shown.put_on(&mut page, name);
            page.write()?;
        }
        Ok(())
    }

    pub fn print(&self, shown: &impl Shown) -> Result<()> {
        let text = if self.json {
            shown.json()?
        } else if self.csv {
            shown.csv()
        } else if self.markdown {
            shown.tables(Form::Markdown)
        } else {
            terminal().shown(&shown.tables(terminal()))
        };
        print!("{text}");
        Ok(())
    }
}

/// Prints a value as JSON to standard output.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| failed!("cannot write JSON: {error}"))?;
    println!("{text}");
    Ok(())
}

/// Can text be overwritten there? Not on a teletype, nor in an editor's window.
pub fn is_screen(terminal: &Term) -> bool {
    terminal.is_term() && has_screen()
}

/// Does the user's terminal have a screen?
pub fn has_screen() -> bool {
    let kind = std::env::var_os("TERM").unwrap_or_default();
    !kind.is_empty() && kind != "dumb"
}

/// Does the user want colours on a terminal (no-color.org, bixense.com/clicolors)?
pub fn wants_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let says = |name, what: &str| std::env::var_os(name).is_some_and(|value| value == what);
    has_screen() && !is_set("NO_COLOR") && !says("CLICOLOR", "0")
}

/// The form that suits standard output.
pub fn terminal() -> Form {
    form_of(&Term::stdout())
}

/// The form that suits standard error.
pub fn terminal_of_errors() -> Form {
    form_of(&Term::stderr())
}

/// The width of a pipe's reader: `watch` tells it to its programs.
fn told_columns() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
    (columns > 0).then_some(columns)
}

fn form_of(terminal: &Term) -> Form {
    if !terminal.is_term() {
        return Form::Text {
            colour: false,
            width: told_columns().unwrap_or(UNLIMITED),
        };
    }
    Form::Text {
        colour: wants_colour(),
        width: match terminal.size().1 {
            0 => USUAL_WIDTH,
            columns => usize::from(columns),
        },
    }
}

/// Prints text for users to standard output, fitted to its width.
pub fn show(text: &str) {
    print!("{}", terminal().shown(text));
}

/// Prints one or more lines for users.
pub fn line(text: &str) {
    show(&format!("{text}\n"));
}

/// Are both names those of one existing file?
fn is_same_file(one: &Path, other: &Path) -> bool {
    let of = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    one == other || (of(one).is_some() && of(one) == of(other))
}

/// Fails if a result would overwrite another one, or one of its own inputs.
pub fn keep_apart(outputs: &[Option<&PathBuf>], inputs: &[PathBuf]) -> Result<()> {
    let outputs: Vec<&PathBuf> = outputs.iter().copied().flatten().collect();
    for (index, output) in outputs.iter().enumerate() {
        let others = outputs[..index].iter().copied().chain(inputs);
        for other in others {
            if other.as_path() != Path::new("/dev/null") && is_same_file(output, other) {
                return Err(usage!(
                    "{} would be overwritten: name another file",
                    other.shown()
                ));
            }
        }
    }
    Ok(())
}

/// Checks the file that the user named for a result, before the work begins.
pub fn planned(path: Option<&PathBuf>) -> Result<Option<Planned>> {
    path.map(|path| Planned::at(path)).transpose()
}

/// The same for a page. If its name ended like a picture's, no program would show it.
pub fn planned_page(path: Option<&PathBuf>) -> Result<Option<Planned>> {
    let end = path
        .and_then(|path| path.extension())
        .map(OsStr::to_ascii_lowercase);
    match (path, end) {
        (Some(path), Some(end)) if end == "svg" || end == "png" => Err(usage!(
            "{} would be an HTML page, which no browser shows under that name: let it end with .html",
            path.shown()
        )),
        _ => planned(path),
    }
}

/// The same for the whole result; makes missing folders.
pub fn planned_export(path: Option<&PathBuf>) -> Result<Option<Planned>> {
    path.map(|path| Planned::in_new_folders(path)).transpose()
}

/// Fails if a file was not written. The error names each such file, and where its content was saved instead.
pub fn all_written(files: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let failed = files.into_iter().filter_map(Result::err);
    let lines: Vec<String> = failed.map(|error| error.to_string()).collect();
    if lines.is_empty() {
        Ok(())
    } else {
        Err(failed!("{}", lines.join("; ")))
    }
}

/// Writes a result to a file.
pub fn export(shown: &impl Shown, file: Option<Planned>) -> Result<()> {
    file.map_or(Ok(()), |file| file.write(shown.json()?))
}
