//! Fits text to a screen of a given width, and to one that can only show ASCII.

use std::sync::LazyLock;
use unicode_width::UnicodeWidthChar;

/// The width of anything but a terminal: nothing is left out, and only texts without a limit are cut.
pub const UNLIMITED: usize = 1000;
/// The width of lines there, if something in them can be made shorter.
pub const LINE_IN_A_PIPE: usize = 200;

/// Does the locale say that characters are not in UTF-8? The first of these variables that is set decides. If none is set,
/// nothing is known against UTF-8.
static IS_ASCII: LazyLock<bool> = LazyLock::new(|| {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    said.is_some_and(|locale| is_ascii_locale(&locale))
});

fn is_ascii_locale(locale: &str) -> bool {
    if locale == "C" || locale == "POSIX" {
        return true;
    }
    let locale = locale.split('@').next().unwrap_or_default();
    let codeset = locale.split_once('.').map(|(_, codeset)| codeset);
    codeset
        .is_some_and(|codeset| !matches!(codeset.to_ascii_lowercase().as_str(), "utf-8" | "utf8"))
}

pub fn is_ascii() -> bool {
    *IS_ASCII
}

/// Replaces characters that the locale lacks.
pub fn in_locale(text: &str) -> String {
    if is_ascii() {
        in_ascii(text)
    } else {
        text.to_string()
    }
}

pub fn in_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if letter.is_ascii() => out.push(letter),
            '─' | '━' | '–' | '╌' | '┄' => out.push('-'),
            '│' | '▏' => out.push('|'),
            '┌' | '┐' | '└' | '┘' => out.push('+'),
            '↑' => out.push('^'),
            '↓' => out.push('v'),
            '…' => out.push_str("..."),
            '±' => out.push_str("+-"),
            'µ' => out.push('u'),
            '×' => out.push('x'),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            // Eighths of a character cell, and shades.
            '▁'..='▇' => out.extend(char::from_digit(letter as u32 - '▁' as u32 + 1, 10)),
            '█' | '■' => out.push('#'),
            '▓' => out.push('@'),
            '▒' => out.push('%'),
            '░' => out.push(':'),
            '·' => out.push('.'),
            '•' => out.push('*'),
            '²' => out.push('2'),
            other => out.extend(other.escape_unicode()),
        }
    }
    out
}

/// Escapes a cell of a Markdown table, so that its content neither ends the cell nor begins a tag.
pub fn in_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let begins_tag = |next: &char| next.is_ascii_alphabetic() || "/!?".contains(*next);
        if letter == '|' || letter == '<' && letters.peek().is_some_and(begins_tag) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

/// How many columns of a screen a text takes: colours take none, some characters two.
pub fn width_of(text: &str) -> usize {
    let mut is_colour = false;
    let mut width = 0;
    for letter in text.chars() {
        match letter {
            '\x1b' => is_colour = true,
            'm' if is_colour => is_colour = false,
            _ if is_colour => {}
            _ => width += letter.width().unwrap_or(0),
        }
    }
    width
}

/// Cuts a text without colours to a width; an ellipsis shows that there was more.
pub fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_string();
    }
    let sign = in_locale("…");
    let sign = if width_of(&sign) > width { "." } else { &sign };
    let room = width.saturating_sub(width_of(sign));
    let mut used = 0;
    let kept = text.chars().take_while(|letter| {
        used += letter.width().unwrap_or(0);
        used <= room
    });
    let mut kept: String = kept.collect();
    if width > 0 {
        kept.push_str(sign);
    }
    kept
}

/// Wraps a text that follows a label on its line. Further lines begin below the text. If there is too little room for that, the
/// whole text stands below the label.
pub fn labelled(label: &str, text: &str, width: usize) -> String {
    let line = format!("{label}{text}");
    if width >= UNLIMITED || width_of(&line) <= width {
        return line;
    }
    let beside = width_of(label);
    let longest = text.split(' ').map(width_of).max().unwrap_or(0);
    if beside > width / 2 || beside + longest > width {
        let indent = label.len() - label.trim_start().len() + 2;
        let text = wrapped(&format!("{}{text}", " ".repeat(indent)), width);
        return format!("{}\n{text}", label.trim_end());
    }
    let text = wrapped(&format!("{}{text}", " ".repeat(beside)), width);
    format!("{label}{}", text.trim_start())
}

/// Wraps lines that are longer than the screen, with the same indent. A word is never cut.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if width_of(line) <= width {
            lines.push(line.to_string());
            continue;
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let margin = " ".repeat(indent.min(width / 2));
        let mut current = margin.clone();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            let is_first = current.len() == margin.len();
            if !is_first && width_of(&current) + 1 + width_of(word) > width {
                lines.push(std::mem::replace(&mut current, margin.clone()));
            } else if !is_first {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines.join("\n")
}

/// Joins the entries of a legend; each stays on one line with its mark.
pub fn in_lines(entries: &[impl AsRef<str>], width: usize) -> String {
    const GAP: &str = "   ";
    let mut text = String::new();
    let mut used = 0;
    for entry in entries.iter().map(AsRef::as_ref) {
        let places = width_of(entry);
        if used > 0 && used + GAP.len() + places > width {
            text.push('\n');
            used = 0;
        } else if used > 0 {
            text.push_str(GAP);
            used += GAP.len();
        }
        text.push_str(entry);
        used += places;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_says_which_characters_there_are() {
        for ascii in ["C", "POSIX", "de_DE.ISO-8859-1", "de_DE.ISO-8859-15@euro"] {
            assert!(is_ascii_locale(ascii), "{ascii}");
        }
        for utf8 in [
            "C.UTF-8",
            "C.utf8",
            "de_DE.UTF-8",
            "en_US",
            "de_DE@euro",
            "en_US.utf8",
        ] {
            assert!(!is_ascii_locale(utf8), "{utf8}");
        }
        assert_eq!(in_ascii("± 8 % ─ <…> é"), "+- 8 % - <...> \\u{e9}");
        assert_eq!(in_ascii("▁▂▃▄▅▆▇█▓▒░·"), "1234567#@%:.");
    }

    #[test]
    fn long_lines_continue_below_their_beginning() {
        assert_eq!(
            wrapped("  one two three\nfour", 10),
            "  one two\n  three\nfour"
        );
        assert_eq!(wrapped("aninseparableword b", 5), "aninseparableword\nb");
        let coloured = wrapped("\x1b[2mone two\x1b[0m three", 8);
        assert_eq!(coloured, "\x1b[2mone two\x1b[0m\nthree");
    }

    #[test]
    fn a_labelled_text_continues_beside_its_label() {
        assert_eq!(labelled("  a:  ", "one two", 13), "  a:  one two");
        assert_eq!(labelled("  a:  ", "one two", 12), "  a:  one\n      two");
        assert_eq!(
            labelled("  a:  ", "one seven", 10),
            "  a:\n    one\n    seven"
        );
        assert_eq!(labelled("  a:  ", "one two", 9), "  a:\n    one\n    two");
    }

    #[test]
    fn entries_stay_whole() {
        let entries = ["▒ a b", "░ c", "· d"];
        assert_eq!(in_lines(&entries, 80), "▒ a b   ░ c   · d");
        assert_eq!(in_lines(&entries, 9), "▒ a b\n░ c   · d");
        assert_eq!(in_lines(&entries, 2), "▒ a b\n░ c\n· d");
    }

    #[test]
    fn what_is_cut_shows_that_it_is() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
    }
}
