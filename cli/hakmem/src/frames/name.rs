//! Writes a function's name as a person would, in one of several lengths.
//!
//! Compilers add what sources leave out: default arguments of templates, the allocators of containers, the return type. A name
//! is parsed into a tree of its brackets, and written again without these parts. A text that is no such name stays as it is.

/// How much of a name to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// Everything except default arguments and allocators.
    Whole,
    /// Without parameters and return type.
    Name,
    /// With `<…>` in place of templates' arguments.
    Bare,
    /// The last two parts of that: for example a class and its function.
    Short,
}

/// Default arguments of containers.
const DEFAULTS: [&str; 12] = [
    "std::allocator",
    "std::char_traits",
    "std::less",
    "std::hash",
    "std::equal_to",
    "std::default_delete",
    "(__gnu_cxx::_Lock_policy)",
    "alloc::alloc::Global",
    "std::alloc::Global",
    "std::hash::random::RandomState",
    "std::collections::hash::map::RandomState",
    "std::pmr::polymorphic_allocator",
];

/// Versions in a library's names; no source mentions them.
const INLINE_NAMESPACES: [&str; 4] = ["__cxx11::", "__1::", "__ndk1::", "[abi:cxx11]"];

/// Words that may follow a function's parameters.
const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];

/// Texts that may follow `operator`, the longest first.
const OPERATORS: [&str; 41] = [
    "<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "==", "!=", "&&", "||",
    "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<", ">", "+", "-", "*", "/", "%",
    "&", "|", "^", "~", "!", "=", ",", "new[]", "delete[]",
];

/// Deeper nesting of brackets than in any name.
const DEPTH_MAX: usize = 200;

#[derive(Debug)]
enum Piece {
    Text(String),
    /// `operator` and its symbol; brackets and spaces in it have no meaning.
    Operator(String),
    List(char, Vec<Vec<Piece>>),
}

/// Writes the name in this length.
pub fn write(name: &str, length: Length) -> String {
    let mut parser = Parser { rest: name };
    let Some(pieces) = parser.pieces(None, 0) else {
        return name.to_string();
    };
    let written = match length {
        Length::Whole => all(&pieces, length),
        _ => all(of_function(&pieces), length),
    };
    let written = written.trim();
    if length == Length::Short {
        return last_parts(written).to_string();
    }
    written.to_string()
}

struct Parser<'name> {
    rest: &'name str,
}

impl Parser<'_> {
    /// The text between two brackets, or between commas of a list; None if it is no name.
    fn pieces(&mut self, closing: Option<char>, depth: usize) -> Option<Vec<Piece>> {
        let mut found = Vec::new();
        let mut text = String::new();
        while let Some(letter) = self.rest.chars().next() {
            if Some(letter) == closing || (letter == ',' && closing.is_some()) {
                break;
            }
            if let Some(operator) = self.operator(&text) {
                found.push(Piece::Text(std::mem::take(&mut text)));
                found.push(Piece::Operator(operator));
                continue;
            }
            if self.rest.starts_with("->") {
                text += "->";
                self.rest = &self.rest[2..];
                continue;
            }
            self.rest = &self.rest[letter.len_utf8()..];
            match letter {
                '<' | '(' | '{' => {
                    let rest = self.rest;
                    let list = self.list(letter, depth + 1);
                    if list.is_none() && letter == '(' && depth > 0 {
                        self.rest = rest;
                        text += &self.expression()?;
                        continue;
                    }
                    found.push(Piece::Text(std::mem::take(&mut text)));
                    found.push(list?);
                }
                '>' | ')' | '}' => return None,
                _ => text.push(letter),
            }
        }
        found.push(Piece::Text(text));
        Some(found)
    }

    fn list(&mut self, opening: char, depth: usize) -> Option<Piece> {
        if depth > DEPTH_MAX {
            return None;
        }
        let closing = closing(opening);
        let mut items = Vec::new();
        loop {
            items.push(self.pieces(Some(closing), depth)?);
            let end = self.rest.chars().next()?;
            self.rest = &self.rest[end.len_utf8()..];
            if end == closing {
                return Some(Piece::List(opening, items));
            }
        }
    }

    /// A computed template argument, as "(N>>1)", in which angles are no brackets. Begins behind the first bracket.
    fn expression(&mut self) -> Option<String> {
        let mut open = 1;
        let end = self.rest.find(|letter| {
            open += i32::from(letter == '(') - i32::from(letter == ')');
            open == 0
        })?;
        let (inside, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        Some(format!("({inside}"))
    }

    /// "operator<<", if one begins here.
    fn operator(&mut self, before: &str) -> Option<String> {
        let rest = self.rest.strip_prefix("operator")?;
        if before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
            return None;
        }
        let name = rest.trim_start();
        let symbol = OPERATORS.iter().find(|symbol| name.starts_with(**symbol));
        let bytes = match symbol {
            Some(symbol) => rest.len() - name.len() + symbol.len(),
            // A conversion: "operator bool".
            None if rest.starts_with(' ') => rest.find(['(', '<', ',', '>']).unwrap_or(rest.len()),
            None => return None,
        };
        let behind = &rest[bytes..];
        self.rest = behind
            .strip_prefix(' ')
            .filter(|behind| behind.starts_with('<'))
            .unwrap_or(behind);
        Some(format!("operator{}", &rest[..bytes]))
    }
}

fn closing(opening: char) -> char {
    match opening {
        '<' => '>',
        '(' => ')',
        _ => '}',
    }
}

/// The function's own name: without the return type before it, and the parameters and "const" after it.
fn of_function(pieces: &[Piece]) -> &[Piece] {
    let ends = |index: usize| match pieces.get(index + 1) {
        Some(Piece::Text(text)) => text.is_empty() || text.starts_with([' ', '[', '.']),
        other => other.is_none(),
    };
    let parameters = (1..pieces.len()).rev().find(|&index| {
        matches!(pieces[index], Piece::List('(', _))
            && ends(index)
            && !is_part_of_name(&pieces[..index])
    });
    &pieces[..parameters.unwrap_or(pieces.len())]
}

/// Is a round bracket behind this no parameter list, as in "(anonymous namespace)" and Go's "(*T)"?
fn is_part_of_name(before: &[Piece]) -> bool {
    let mut written = before.iter().rev();
    match (written.next(), before.len()) {
        (Some(Piece::Text(text)), 1) => text.is_empty() || text.ends_with([':', '.', ' ']),
        (Some(Piece::Text(text)), _) => text.ends_with([':', '.', ' ']),
        _ => false,
    }
}

fn all(pieces: &[Piece], length: Length) -> String {
    let mut out = String::new();
    let mut begin = 0;
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                let text = match pieces[..index].last() {
                    Some(Piece::List('(', _)) if length > Length::Whole => unqualified(text),
                    _ => text,
                };
                if length > Length::Whole {
                    // The return type ends at the last blank.
                    begin = text.rfind(' ').map_or(begin, |at| out.len() + at + 1);
                }
                out += text;
            }
            Piece::Operator(text) => out += text,
            Piece::List(opening, items) => {
                put_list(&mut out, *opening, items, length, &pieces[..index])
            }
        }
    }
    without_inline_namespaces(&out[begin.min(out.len())..])
}

/// Skips "const" and the like behind the parameters of a function that contains a class or lambda.
fn unqualified(text: &str) -> &str {
    let mut rest = text;
    while let Some(less) = QUALIFIERS.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = less;
    }
    if rest.starts_with("::") { rest } else { text }
}

/// Everything in a list, at any length: types have no return type.
fn inner(items: &[Vec<Piece>], length: Length) -> Vec<String> {
    let written = items.iter().map(|item| {
        let mut out = String::new();
        for (index, piece) in item.iter().enumerate() {
            match piece {
                Piece::Text(text) | Piece::Operator(text) => out += text,
                Piece::List(opening, items) => {
                    put_list(&mut out, *opening, items, length, &item[..index])
                }
            }
        }
        without_inline_namespaces(out.trim())
    });
    written.filter(|item| !item.is_empty()).collect()
}

fn put_list(
    out: &mut String,
    opening: char,
    items: &[Vec<Piece>],
    length: Length,
    before: &[Piece],
) {
    match opening {
        '<' => put_arguments(out, items, length),
        // A lambda's parameters do not help to find it.
        '(' if length > Length::Whole && !is_part_of_name(before) => {}
        _ => {
            let items = inner(items, length).join(", ");
            *out += &format!("{opening}{items}{}", closing(opening));
        }
    }
}

fn put_arguments(out: &mut String, items: &[Vec<Piece>], length: Length) {
    let is_type = out.is_empty() || out.ends_with([' ', '&', '*', '(', ',']);
    let mut items = inner(items, length);
    if is_type {
        // Rust: the type that a function belongs to needs brackets only beside a trait.
        let text = match length {
            Length::Short => last_of_each(&items.join(", ")),
            _ => items.join(", "),
        };
        *out += &if text.contains(" as ") || out.ends_with([' ', '&', '*']) {
            format!("<{text}>")
        } else {
            text
        };
        return;
    }
    let is_lambda = |item: &String| item.starts_with("lambda");
    if items.first().is_some_and(is_lambda) {
        *out += &format!("<{}>", items.join(", "));
        return;
    }
    let is_default = |item: &String| DEFAULTS.iter().any(|name| item.starts_with(name));
    let first = usize::from(items.len() > 1);
    while items.len() > first && items.last().is_some_and(is_default) {
        items.pop();
    }
    if put_string(out, &items) || items.is_empty() {
        return;
    }
    if length >= Length::Bare {
        // "collect::<…>" becomes "collect<…>".
        out.truncate(out.trim_end_matches("::").len());
        *out += "<…>";
    } else {
        *out += &format!("<{}>", items.join(", "));
    }
}

/// `std::basic_string<char>` becomes `std::string`, and so on.
fn put_string(out: &mut String, items: &[String]) -> bool {
    let Some(at) = out.rfind("basic_") else {
        return false;
    };
    let begins = out[..at].ends_with("::");
    let is_whole = out[at..]
        .chars()
        .all(|letter| letter.is_alphanumeric() || letter == '_');
    let wide = match items {
        [one] if one == "char" => "",
        [one] if one == "wchar_t" => "w",
        _ => return false,
    };
    if begins && is_whole {
        out.replace_range(at..at + "basic_".len(), wide);
    }
    begins && is_whole
}

fn without_inline_namespaces(text: &str) -> String {
    let mut text = text.to_string();
    for name in INLINE_NAMESPACES {
        text = text.replace(name, "");
    }
    text
}

/// The last two parts of a path; Go separates them by dots, behind the last slash.
fn last_parts(name: &str) -> &str {
    let outside = outside_of_brackets(name);
    let colons: Vec<usize> = name
        .match_indices("::")
        .map(|(at, _)| at)
        .filter(|at| outside[*at])
        .collect();
    if let [.., before, _] = colons.as_slice() {
        return &name[before + 2..];
    }
    if colons.is_empty() {
        let slash = name
            .rfind('/')
            .filter(|at| outside[*at] && name[*at..].contains('.'));
        return slash.map_or(name, |at| &name[at + 1..]);
    }
    name
}

/// "<Vec<…> as Extend<…>>": the last part of a type, and that of its trait.
fn last_of_each(text: &str) -> String {
    let last = |path: &str| {
        let outside = outside_of_brackets(path);
        let colons = path.match_indices("::").map(|(at, _)| at);
        let last = colons.filter(|at| outside[*at]).last();
        last.map_or(path, |at| &path[at + 2..]).to_string()
    };
    match text.split_once(" as ") {
        Some((own, interface)) => format!("{} as {}", last(own), last(interface)),
        None => text.to_string(),
    }
}

fn outside_of_brackets(name: &str) -> Vec<bool> {
    let mut depth = 0_i32;
    let mut outside = Vec::with_capacity(name.len());
    let mut before = 0;
    for byte in name.bytes() {
        match byte {
            b'<' | b'(' | b'{' => depth += 1,
            b'>' if before == b'-' => {}
            b'>' | b')' | b'}' => depth -= 1,
            _ => {}
        }
        before = byte;
        outside.push(depth <= 0);
    }
    outside
}

#[cfg(test)]
mod tests;
