//! The documents that help, man pages and descriptions of options name, such as docs/options.md.

use clap::Command;
use hakmem_lab::places::Places;

/// The folders with which documents' names begin, in a checkout and in an installation.
const FOLDERS: [&str; 2] = ["docs/", "contrib/"];

/// The same text with the documents' paths on this machine.
pub fn located(text: &str) -> String {
    let installed = Places::find().ok().and_then(|places| places.documents());
    installed.map_or(text.to_string(), |folder| {
        placed(text, &folder.display().to_string())
    })
}

/// The same text with documents' paths below `folder`.
pub fn placed(text: &str, folder: &str) -> String {
    let mut placed = text.to_string();
    for name in FOLDERS {
        placed = placed.replace(name, &format!("{folder}/{name}"));
    }
    placed
}

/// The same commands; `change` is applied to the text below their options.
pub fn with_help(command: Command, change: &dyn Fn(&str) -> String) -> Command {
    let help = command.get_after_help().map(ToString::to_string);
    let command = match help {
        Some(help) => command.after_help(change(&help)),
        None => command,
    };
    command.mut_subcommands(|below| with_help(below, change))
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[test]
    fn documents_are_named_by_where_they_are() {
        assert_eq!(
            placed(
                "docs/a.md says it; contrib/b.json too",
                "/usr/share/doc/hakmem"
            ),
            "/usr/share/doc/hakmem/docs/a.md says it; /usr/share/doc/hakmem/contrib/b.json too"
        );
    }
}
