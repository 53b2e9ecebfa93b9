//! The texts of `--help`; man pages and completions come from the same table.

mod support;

use support::Workshop;

const COMMANDS: [&str; 27] = [
    "run", "verify", "compare", "doctor", "top", "stats", "profile", "leaks", "why", "cold",
    "diff", "ledger", "map", "core", "snapshot", "options", "explain", "failures", "export",
    "check", "bench", "record", "replay", "trace", "tune", "report", "peers",
];

/// Prints its arguments.
const WORDS: &str = r#"
#include <stdio.h>
int main(int count, char **words)
{
    for (int i = 1; i < count; i++)
        puts(words[i]);
    return 0;
}
"#;

fn help(arguments: &[&str]) -> String {
    help_at("100", arguments)
}

fn help_at(columns: &str, arguments: &[&str]) -> String {
    let workshop = Workshop::open();
    let mut command = workshop.command(arguments);
    command.env("COLUMNS", columns);
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

/// Lines that were written for a wider screen are not broken one by one.
#[test]
fn narrow_screens_have_whole_paragraphs() {
    for (name, columns) in [
        ("bench", "80"),
        ("compare", "80"),
        ("cold", "60"),
        ("map", "40"),
    ] {
        let label = format!("{name}_at_{columns}");
        insta::assert_snapshot!(label, help_at(columns, &[name, "-h"]));
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
            page.contains(".SH OPTIONS") && page.contains(".SH EXAMPLES\n.EX\n"),
            "{name}"
        );
        assert!(
            !page.contains("help(1)"),
            "{name}: a page that there is not"
        );
    }
    for file in ["hakmem.bash", "_hakmem", "hakmem.fish"] {
        let text = std::fs::read_to_string(workshop.path("pages").join(file)).unwrap();
        assert!(text.contains("ignore-output"), "{file}");
        assert!(!text.contains("replay-inside"), "{file}: a hidden command");
    }
}

#[test]
fn help_has_help_too() {
    let workshop = Workshop::open();
    // Each --help has an example.
    workshop.hakmem(&["help", "--help"]).says("hakmem help run");
    let of_help = workshop
        .hakmem(&["help", "help"])
        .ended_with(0)
        .output
        .clone();
    let asked = workshop.hakmem(&["help", "--help"]);
    assert_eq!(asked.ended_with(0).output, of_help);
    let of_run = workshop.hakmem(&["help", "run", "--help"]);
    assert!(of_run.ended_with(0).output.contains("Usage: hakmem run"));
    let nested = workshop.hakmem(&["trace", "help", "--help"]);
    nested.ended_with(0);
}

#[test]
fn installed_documents_are_named_by_their_paths() {
    let workshop = Workshop::open();
    let documents = workshop.path("share/doc/hakmem");
    std::fs::create_dir_all(documents.join("docs")).unwrap();
    let folder = documents.canonicalize().unwrap();
    let mut told = workshop
        .installed(&["profile", "--help"])
        .output
        .replace('\n', "");
    told.retain(|letter| letter != ' ');
    let path = format!("{}/docs/profiling.md", folder.display());
    assert!(told.contains(&path), "{told}");
    let page = workshop.hakmem(&["generate", "pages"]);
    page.ended_with(0);
    let page = std::fs::read_to_string(workshop.path("pages/hakmem-profile.1")).unwrap();
    assert!(page.contains("share/doc/hakmem/docs/profiling.md") && page.contains(".SH DOCUMENTS"));
}

/// hakmem's options end where the program's name is.
#[test]
fn a_program_needs_no_dashes_before_it() {
    let workshop = Workshop::open();
    let program = workshop.compile("words", WORDS, &[]);
    let program = support::text(&program);
    for dashes in [&[][..], &["--"]] {
        let words = [dashes, &[program, "-l", "--stats", "--", "-a", "last"]].concat();
        let run = workshop.hakmem(&[&["run"], &words[..]].concat());
        let expected = "-l\n--stats\n--\n-a\nlast\n";
        assert_eq!(run.ended_with(0).output, expected, "{words:?}");
    }
    let recorded = workshop.hakmem(&["record", "-o", "words.hkt", program, "-o", "x"]);
    assert_eq!(recorded.ended_with(0).output, "-o\nx\n");
    workshop
        .hakmem(&["leaks", "--exit", program, "one"])
        .ended_with(0);
    workshop
        .hakmem(&["leaks", "ls"])
        .ended_with(2)
        .says("'hakmem leaks --exit -- ls' runs that program");
}

#[test]
fn a_wrong_command_suggests_the_right_one() {
    let workshop = Workshop::open();
    workshop
        .hakmem(&["verfy"])
        .ended_with(2)
        .says("a similar subcommand exists: 'verify'");
}
