//! How much text fits into a line.

use ratatui::text::Span;

/// How many columns of the screen a text takes: letters of some scripts take two.
pub fn places(text: &str) -> usize {
    Span::raw(text).width()
}

/// As much of a text as fits.
pub fn first_places(text: &str, room: usize) -> String {
    let mut first = String::new();
    for letter in text.chars() {
        first.push(letter);
        if places(&first) > room {
            first.pop();
            break;
        }
    }
    first
}

/// As many parts as fit, each whole: half a figure would be a different one.
pub fn first_parts(parts: &[String], between: &str, room: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { between };
        if places(&line) + places(gap) + places(part) > room {
            break;
        }
        line = line + gap + part;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_whole_and_wide_letters_take_two_places() {
        let parts = ["live 1 MiB", "mapped 2 MiB"].map(String::from);
        assert_eq!(first_parts(&parts, ", ", 24), "live 1 MiB, mapped 2 MiB");
        assert_eq!(first_parts(&parts, ", ", 23), "live 1 MiB");
        assert_eq!(first_parts(&parts, ", ", 9), "");
        assert_eq!(first_places("日本語", 5), "日本");
        assert_eq!(places("日本"), 4);
    }
}
