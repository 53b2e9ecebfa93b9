//! The options of a process's hakmem: their values, who set them, and which values are allowed.

use crate::control::{Control, Field};
use crate::error::Result;
use crate::memory::Memory;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Switch,
    Number,
    Choice,
    File,
    Text,
    /// A kind that this release of the reader does not know.
    Other,
}

#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    pub name: String,
    pub kind: Kind,
    /// A number's unit; a choice's words, separated by |; what a text looks like.
    pub unit: String,
    pub help: String,
    pub value: u64,
    /// Who set it.
    pub source: &'static str,
    pub initial: u64,
    pub least: u64,
    pub most: u64,
    pub at_run_time: bool,
}

/// The values that turn a feature on and off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    pub name: String,
    pub on: u64,
    pub off: u64,
}

/// The control block's description of an option.
#[derive(Debug)]
pub struct Described {
    pub name: String,
    pub unit: String,
    pub help: String,
    pub field: Field,
}

const KINDS: [(&str, Kind); 5] = [
    ("option_switch", Kind::Switch),
    ("option_number", Kind::Number),
    ("option_choice", Kind::Choice),
    ("option_file", Kind::File),
    ("option_text", Kind::Text),
];
const SOURCES: [(&str, &str); 8] = [
    ("from_default", "default"),
    ("from_mode", "mode"),
    ("from_machine", "machine"),
    ("from_learner", "learner"),
    ("from_file", "config file"),
    ("from_list", "HAKMEM_OPTIONS"),
    ("from_variable", "environment"),
    ("from_program", "program"),
];

impl Setting {
    /// The value as a user would write it into the environment variable.
    pub fn text(&self, value: u64) -> String {
        let on = if value == 0 { "off" } else { "on" };
        match self.kind {
            Kind::Switch | Kind::File | Kind::Text => on.into(),
            Kind::Choice => usize::try_from(value)
                .ok()
                .and_then(|number| self.unit.split('|').nth(number))
                .map_or_else(|| value.to_string(), str::to_string),
            Kind::Number | Kind::Other => in_units(value),
        }
    }

    /// The values that are allowed.
    pub fn values(&self) -> String {
        match self.kind {
            Kind::Switch => "on, off".into(),
            Kind::File => "on, off, a file".into(),
            Kind::Choice => self.unit.replace('|', ", "),
            Kind::Text => format!("off, {}", self.unit),
            Kind::Number | Kind::Other => {
                let range = format!("{} to {}", in_units(self.least), in_units(self.most));
                format!("{range} {}", self.unit).trim_end().into()
            }
        }
    }
}

/// 65536: "64K".
fn in_units(value: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let unit = units
        .iter()
        .find(|(shift, _)| value != 0 && value % (1 << shift) == 0);
    unit.map_or_else(
        || value.to_string(),
        |(shift, letter)| format!("{}{letter}", value >> shift),
    )
}

/// In the order of the library's table.
pub fn read(control: &Control, memory: &dyn Memory) -> Result<Vec<Setting>> {
    let record = |name: &str| {
        let root = control.root(name)?;
        memory.read_vec(root.address, control.struct_bytes(name)?)
    };
    let values = record("hak_options")?;
    let sources = record("hak_option_sources")?;
    let root = control.root("hak_option_rows")?;
    let row_bytes = control.struct_bytes("hak_option_row")?;
    let described = control.options();
    let rows = memory.read_vec(root.address, described.len() * row_bytes)?;
    let of_row = |name| control.field("hak_option_row", name);
    let (initial, least, most) = (of_row("initial")?, of_row("least")?, of_row("most")?);
    let (kind, when) = (of_row("kind")?, of_row("when")?);
    let mut settings = Vec::new();
    for (option, row) in described.iter().zip(rows.chunks_exact(row_bytes)) {
        let source = control.field("hak_option_sources", &option.name)?;
        settings.push(Setting {
            name: option.name.clone(),
            kind: named(control, &KINDS, kind.number(row)).unwrap_or(Kind::Other),
            unit: option.unit.clone(),
            help: option.help.clone(),
            value: option.field.number(&values),
            source: named(control, &SOURCES, source.number(&sources)).unwrap_or("unknown"),
            initial: initial.number(row),
            least: least.number(row),
            most: most.number(row),
            at_run_time: when.number(row) != 0,
        });
    }
    Ok(settings)
}

/// The options that turn features on and off.
pub fn read_features(control: &Control, memory: &dyn Memory) -> Result<Vec<Feature>> {
    let root = control.root("hak_option_features")?;
    let bytes = control.struct_bytes("hak_option_feature")?;
    let field = |name| control.field("hak_option_feature", name);
    let (option, on, off) = (field("option")?, field("on")?, field("off")?);
    let described = control.options();
    let rows = memory.read_vec(root.address, root.count.min(described.len()) * bytes)?;
    let features = rows.chunks_exact(bytes).filter_map(|row| {
        let number = usize::try_from(option.number(row)).ok()?;
        Some(Feature {
            name: described.get(number)?.name.clone(),
            on: on.number(row),
            off: off.number(row),
        })
    });
    Ok(features.collect())
}

/// The entry of `names` whose constant has this value.
fn named<T: Copy>(control: &Control, names: &[(&str, T)], value: u64) -> Option<T> {
    let found = names
        .iter()
        .find(|(name, _)| control.constant(name) == Ok(value));
    found.map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(kind: Kind, unit: &str) -> Setting {
        Setting {
            name: "one".into(),
            kind,
            unit: unit.into(),
            help: String::new(),
            value: 0,
            source: "default",
            initial: 0,
            least: 0,
            most: 1 << 40,
            at_run_time: true,
        }
    }

    #[test]
    fn values_are_written_as_a_person_would() {
        assert_eq!(setting(Kind::Switch, "").text(1), "on");
        assert_eq!(setting(Kind::Choice, "low|high").text(1), "high");
        assert_eq!(setting(Kind::Choice, "low|high").text(7), "7");
        let bytes = setting(Kind::Number, "bytes");
        assert_eq!(bytes.text(0), "0");
        assert_eq!(bytes.text(1 << 20), "1M");
        assert_eq!(bytes.text(1500), "1500");
        assert_eq!(bytes.values(), "0 to 1024G bytes");
    }
}
