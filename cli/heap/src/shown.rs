//! Makes names safe to show. Names from outside are bytes and may contain anything.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A name on one line. Invalid text, and characters that would control a terminal, are written as in C. Backslashes stay as
/// they are, so a name that was converted before does not change.
pub fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                _ if character.is_ascii_control() => {
                    let _ = write!(text, "\\x{:02x}", character as u32);
                }
                _ if character.is_control() || turns_lines(character) => {
                    let _ = write!(text, "\\u{{{:x}}}", character as u32);
                }
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Makes paths safe to show.
pub trait ShownPath {
    fn shown(&self) -> String;
}

impl<P: AsRef<Path>> ShownPath for P {
    fn shown(&self) -> String {
        shown(self.as_ref().as_os_str().as_bytes())
    }
}

/// "0aff"
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Changes the order or the end of a line invisibly.
fn turns_lines(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_written_as_in_c() {
        assert_eq!(shown("ünï code".as_bytes()), "ünï code");
        let odd = shown(b"a\nb\x1b[31m\xff\xfe\\");
        assert_eq!(odd, r"a\nb\x1b[31m\xff\xfe\");
        assert_eq!(shown(odd.as_bytes()), odd, "what was shown once stays");
        assert_eq!(shown("\u{85}\u{202e}x".as_bytes()), r"\u{85}\u{202e}x");
    }
}
