//! Shows call stacks: finds the functions that tell where an allocation was made, and shortens their names if there is little
//! space.

mod interpreters;
mod known;
mod machinery;
mod name;
mod python;
mod rows;

use interpreters::{is_interpreters, is_script};
pub use known::known;
use machinery::{Role, is_our_operator, role};
use name::{Length, write};
pub use python::places;
pub use rows::{By, Folded};

/// How many callers of the program's innermost function to show.
const CALLERS: usize = 2;
/// Separates a function from its caller.
const CALLED_BY: &str = " < ";

/// "main (m.cpp:15)", "malloc (libc.so.6)", "program+0x1234".
#[derive(Clone, Copy, Debug)]
struct Frame<'stack> {
    /// Empty if only the file is known.
    name: &'stack str,
    place: &'stack str,
}

impl<'stack> Frame<'stack> {
    fn of(text: &'stack str) -> Frame<'stack> {
        let split = text
            .strip_suffix(')')
            .and_then(|text| text.rsplit_once(" ("));
        match split {
            Some((name, place)) => Frame { name, place },
            None => Frame {
                name: "",
                place: text,
            },
        }
    }

    /// The name without parameters and return type.
    fn own_name(self) -> String {
        write(self.name, Length::Name)
    }

    /// The mark at the end of an incomplete stack: "… (more callers: 64 frames are kept)".
    fn is_mark(self) -> bool {
        self.name == "…"
    }

    fn role(self) -> Role {
        if self.is_mark() {
            return Role::Beginning;
        }
        role(&self.own_name(), self.place)
    }

    fn is_beginning(self) -> bool {
        self.role() == Role::Beginning
    }

    fn is_of_linker(self) -> bool {
        self.place.starts_with("ld-linux") || self.place.starts_with("ld-musl")
    }

    /// The name of a Python function has dots between its parts, and no brackets except "<locals>".
    fn written(self, length: Length) -> String {
        match python::is_place(self.place) {
            true => self.name.to_string(),
            false => write(self.name, length),
        }
    }

    fn place(self, length: Length) -> &'stack str {
        match length {
            Length::Whole => self.place,
            _ => python::short(self.place),
        }
    }

    fn text(self, length: Length) -> String {
        if self.name.is_empty() {
            return self.place.to_string();
        }
        format!("{} ({})", self.written(length), self.place(length))
    }
}

/// The role of each frame; frames that match the user's patterns are machinery, too. If functions of a script are on the stack,
/// its interpreter only allocates for them. If Python's own frames are on it, so do all native functions.
fn roles(frames: &[Frame], folded: &[String]) -> Vec<Role> {
    let names: Vec<String> = frames.iter().map(|frame| frame.own_name()).collect();
    let has_scripts = (frames.iter().zip(&names)).any(|(frame, name)| is_script(name, frame.place));
    let has_python = frames.iter().any(|frame| python::is_place(frame.place));
    let is_folded = |frame: &Frame, name: &str| {
        let file = frame.place.split(':').next().unwrap_or_default();
        fits_one(folded, name) || fits_one(folded, file)
    };
    let role_of = |(frame, name): (&Frame, &String)| {
        let is_python = python::is_place(frame.place);
        let role = match is_python {
            true => python::role(frame.place),
            false => frame.role(),
        };
        let is_inside = match has_python {
            true => !is_python,
            false => has_scripts && is_interpreters(name, frame.place),
        };
        match role {
            Role::Own if is_inside || is_folded(frame, name) => Role::Machinery,
            role => role,
        }
    };
    let mut roles: Vec<Role> = frames.iter().zip(&names).map(role_of).collect();
    if !roles.contains(&Role::Own) {
        // A server's own work: its functions tell more than the interpreter's.
        for ((frame, name), role) in frames.iter().zip(&names).zip(&mut roles) {
            if python::is_of_library(frame.place) && !is_folded(frame, name) {
                *role = Role::Own;
            }
        }
    }
    roles
}

/// Does the name match a pattern, in which an asterisk matches anything?
pub fn fits_one<Pattern: AsRef<str>>(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern.as_ref(), name))
}

fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// The place of an allocation in one line, in several forms from the most detailed to the shortest. Each begins with the
/// program's innermost own function, or with the function that this called to allocate.
pub fn place(frames: &[String]) -> Vec<String> {
    place_of(frames, &[])
}

fn place_of(frames: &[String], folded: &[String]) -> Vec<String> {
    let frames: Vec<Frame> = frames.iter().map(|text| Frame::of(text)).collect();
    if frames.is_empty() {
        return vec!["(unknown)".into()];
    }
    let roles = roles(&frames, folded);
    let mut own: Vec<Frame> = frames
        .iter()
        .zip(&roles)
        .filter(|(_, role)| **role == Role::Own)
        .map(|(frame, _)| *frame)
        .collect();
    let innermost = roles.iter().position(|role| *role == Role::Own);
    let is_python = innermost.is_some_and(|own| python::is_place(frames[own].place));
    // The machinery's function that the program's source calls.
    let called = innermost
        .and_then(|own| own.checked_sub(1))
        .map(|index| frames[index])
        .filter(|frame| is_in_source(frame.name) && !is_our_operator(frame.name, frame.place))
        .filter(|frame| !is_python || python::is_place(frame.place));
    if own.is_empty() {
        // There is no function of the program: uses the library's function that allocated, and its callers.
        let asked = |frame: &&Frame| {
            let is_malloc = ["malloc", "hak_"]
                .iter()
                .any(|begin| frame.name.starts_with(begin));
            let is_ours = is_our_operator(frame.name, frame.place);
            !is_malloc && !is_ours && !frame.place.starts_with("libhakmem")
        };
        let inner = frames.iter().filter(asked).filter(|frame| !frame.is_mark());
        let mark = frames.last().filter(|frame| frame.is_mark());
        let room = 1 + CALLERS - usize::from(mark.is_some());
        own = inner.take(room).chain(mark).copied().collect();
    }
    let own = if own.is_empty() { &frames[..1] } else { &own };
    let mut forms = Vec::new();
    let mut add = |length, called: Option<&Frame>, most: usize| {
        let called = called.map(|frame| write(frame.name, length));
        let own = own.iter().take(most).map(|frame| frame.text(length));
        let line: Vec<String> = called.into_iter().chain(own).collect();
        forms.push(line.join(CALLED_BY));
    };
    let called = called.as_ref();
    for length in [Length::Whole, Length::Name, Length::Bare, Length::Short] {
        add(length, called, 1 + CALLERS);
    }
    for callers in (0..CALLERS).rev() {
        add(Length::Bare, called, 1 + callers);
        add(Length::Short, called, 1 + callers);
    }
    for length in [Length::Name, Length::Bare, Length::Short] {
        add(length, None, 1);
    }
    forms.dedup();
    forms
}

/// Do sources use this name? Not if only a library's own functions do.
fn is_in_source(name: &str) -> bool {
    let short = write(name, Length::Short);
    let last = short.rsplit("::").next().unwrap_or_default();
    let is_hidden = ["_", "{", "hak_replaced_", "0x", "Builtins_"]
        .iter()
        .any(|begin| last.starts_with(begin));
    !last.is_empty() && !is_hidden
}

/// A whole stack, one line per function; functions that allocate for others share a line.
pub fn stack(frames: &[String], folded: &[String], width: usize) -> Vec<String> {
    let frames: Vec<Frame> = frames.iter().map(|text| Frame::of(text)).collect();
    let roles = roles(&frames, folded);
    let has_own = roles.contains(&Role::Own);
    let mut lines = Vec::new();
    let mut folded = 0;
    for (index, frame) in frames.iter().enumerate() {
        let is_last_of_run = roles.get(index + 1) == Some(&Role::Own);
        let is_seen = roles[index] == Role::Own
            || !has_own
            || frame.is_mark()
            || (is_last_of_run && is_in_source(frame.name));
        if !is_seen {
            folded += 1;
            continue;
        }
        lines.extend(fold(&mut folded));
        lines.push(fitted(*frame, width));
    }
    lines.extend(fold(&mut folded));
    lines
}

fn fold(count: &mut usize) -> Option<String> {
    let functions = if *count == 1 { "function" } else { "functions" };
    let line = (*count > 0).then(|| format!("… {count} {functions} of the language or the system"));
    *count = 0;
    line
}

/// Shortens a function to a number of characters, if possible.
fn fitted(frame: Frame, width: usize) -> String {
    let forms =
        [Length::Whole, Length::Name, Length::Bare, Length::Short].map(|length| frame.text(length));
    let fits = forms.iter().find(|form| form.chars().count() <= width);
    fits.unwrap_or(&forms[3]).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack_of(text: &str) -> Vec<String> {
        text.lines().map(|line| line.trim().to_string()).collect()
    }

    #[test]
    fn the_programs_own_function_is_always_there() {
        let frames = stack_of(
            "alloc::alloc::alloc (alloc.rs:95)
            alloc::raw_vec::RawVec<T,A>::reserve (mod.rs:340)
            alloc::vec::Vec<T,A>::extend_trusted (mod.rs:3997)
            <alloc::vec::Vec<T,A> as core::iter::traits::collect::Extend<T>>::extend (mod.rs:3933)
            r::inner::Store::add (r.rs:4)
            core::ops::function::FnOnce::call_once (function.rs:250)
            r::main (r.rs:6)
            std::rt::lang_start::{{closure}} (rt.rs:206)
            main (r)
            _start (r)",
        );
        let forms = place(&frames);
        assert_eq!(
            forms[0],
            "<alloc::vec::Vec<T, A> as core::iter::traits::collect::Extend<T>>::extend \
             < r::inner::Store::add (r.rs:4) < r::main (r.rs:6) < main (r)"
        );
        assert_eq!(forms.last().unwrap(), "Store::add (r.rs:4)");
        assert!(
            forms
                .iter()
                .all(|form| form.contains("Store::add (r.rs:4)"))
        );
        assert_eq!(
            stack(&frames, &[], 90),
            [
                "… 3 functions of the language or the system",
                "<alloc::vec::Vec<T, A> as core::iter::traits::collect::Extend<T>>::extend (mod.rs:3933)",
                "r::inner::Store::add (r.rs:4)",
                "core::ops::function::FnOnce::call_once (function.rs:250)",
                "r::main (r.rs:6)",
                "… 1 function of the language or the system",
                "main (r)",
                "… 1 function of the language or the system",
            ]
        );
    }

    /// The program's own function may be among the callers that were not kept; the mark shows this.
    #[test]
    fn the_mark_of_a_stack_that_went_on_stays() {
        let mut frames = stack_of(
            "std::a::f (a.h:1)
            std::b::g (b.h:1)
            std::c::h (c.h:1)
            … (more callers: 3 frames are kept)",
        );
        let line = "std::a::f (a.h:1) < std::b::g (b.h:1) < … (more callers: 3 frames are kept)";
        assert_eq!(place(&frames)[0], line);
        assert_eq!(stack(&frames, &[], 80).len(), 4);
        frames.insert(3, "main (a.cpp:1)".into());
        assert_eq!(place(&frames)[0], "std::c::h < main (a.cpp:1)");
        assert_eq!(stack(&frames, &[], 80).last(), frames.last());
    }

    #[test]
    fn a_stack_without_a_function_of_the_program_says_what_it_has() {
        let frames = stack_of(
            "libstdc++.so.6.0.30+0xa57b9
            call_init (dl-init.c:74)
            _dl_init (dl-init.c:121)",
        );
        assert_eq!(
            place(&frames)[0],
            "libstdc++.so.6.0.30+0xa57b9 < call_init (dl-init.c:74) < _dl_init (dl-init.c:121)"
        );
        let inside = stack_of(
            "hak_replaced_malloc (replaced.c:49)
            v8::internal::BackingStore::Allocate (node)",
        );
        assert_eq!(place(&inside)[0], inside[1]);
        let inside = stack_of(
            "new_once (operators.c:45)
            new_any (operators.c:84)
            v8::internal::BackingStore::Allocate (node)",
        );
        assert_eq!(place(&inside)[0], inside[2]);
        assert_eq!(
            place(&stack_of("malloc (libhakmem.so.1)"))[0],
            "malloc (libhakmem.so.1)"
        );
        assert_eq!(place(&[]), ["(unknown)"]);
    }

    #[test]
    fn a_pattern_has_asterisks() {
        for (pattern, name) in [
            ("f", "f"),
            ("f*", "f"),
            ("*_new", "a_new"),
            ("a*c*e", "abcde"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("f", "fg"), ("*_new", "new"), ("a*c*e", "abcd"), ("", "f")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
