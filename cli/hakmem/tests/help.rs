//! What `--help` says, word by word; man pages and completions come from the same table.

mod support;

use support::Workshop;

const COMMANDS: [&str; 19] = [
    "run", "verify", "compare", "top", "stats", "ledger", "map", "core", "failures", "export",
    "bench", "record", "replay", "trace", "report", "peers", "options", "tune", "explain",
];

fn help(arguments: &[&str]) -> String {
    let workshop = Workshop::open();
    let mut command = workshop.command(arguments);
    command.env("COLUMNS", "100");
    support::answer(command).ended_with(0).output.clone()
}

#[test]
fn the_command_itself() {
    insta::assert_snapshot!(help(&["--help"]));
}

#[test]
fn each_command() {
    for name in COMMANDS {
        insta::assert_snapshot!(name, help(&[name, "--help"]));
    }
}

#[test]
fn every_command_has_examples_a_page_and_completions() {
    let workshop = Workshop::open();
    workshop.hakmem(&["generate", "pages"]).ended_with(0);
    for name in COMMANDS {
        assert!(help(&[name, "--help"]).contains("Examples:"));
        let page =
            std::fs::read_to_string(workshop.path(&format!("pages/hakmem-{name}.1"))).unwrap();
        assert!(
            page.contains(".SH OPTIONS") && page.contains("Examples:"),
            "{name}"
        );
    }
    for file in ["hakmem.bash", "_hakmem", "hakmem.fish"] {
        let text = std::fs::read_to_string(workshop.path("pages").join(file)).unwrap();
        assert!(text.contains("ignore-output"), "{file}");
    }
}

#[test]
fn a_wrong_command_suggests_the_right_one() {
    let workshop = Workshop::open();
    workshop
        .hakmem(&["verfy"])
        .ended_with(2)
        .says("a similar subcommand exists: 'verify'");
}
