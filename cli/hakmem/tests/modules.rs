//! The structure of the command's source.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .collect()
}

/// The command to which a file below `commands` belongs: for `trace/mod.rs` and `trace/top_sites.rs`, it is `trace`.
fn command_of(file: &Path, commands: &Path) -> String {
    let first = file.strip_prefix(commands).unwrap().iter().next().unwrap();
    let name = first.to_str().unwrap();
    name.trim_end_matches(".rs").to_string()
}

/// What several commands need is in separate modules: only the table of commands knows all commands.
#[test]
fn no_command_uses_another_one() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let commands = source.join("commands");
    let all: Vec<String> = sources(&commands)
        .iter()
        .map(|file| command_of(file, &commands))
        .filter(|name| name != "mod")
        .collect();
    assert!(all.len() > 20, "{all:?}");
    for file in sources(&source) {
        let is_table = file == commands.join("mod.rs") || file == source.join("cli.rs");
        let is_main = file == source.join("main.rs"); // it calls `commands::execute`
        if is_table || is_main {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(&source).unwrap().display().to_string();
        assert!(!text.contains("commands::"), "{name} uses a command");
        if !file.starts_with(&commands) {
            continue;
        }
        let is_alone = file.parent() == Some(commands.as_path());
        let imports = text.lines().any(|line| line.starts_with("use super::"));
        assert!(!(is_alone && imports), "{name} uses its neighbours");
        let own = command_of(&file, &commands);
        for other in all.iter().filter(|other| **other != own) {
            assert!(
                !text.contains(&format!("super::{other}::")),
                "{name} uses {other}"
            );
            assert!(
                !text.contains(&format!("super::{other};")),
                "{name} uses {other}"
            );
        }
    }
}
