//! Frames of Python programs: puts them where the interpreter evaluated them, and tells them from those of libraries.

use super::machinery::Role;
use hakmem_heap::profile::Stack;
use hakmem_heap::python::{Frame, Python};
use hakmem_trace::symbols::{Names, Place};
use std::rc::Rc;

/// The interpreter's native functions that run a program's functions. With tail calls, their names only begin with this.
const EVALUATES: [&str; 2] = ["_PyEval_EvalFrameDefault", "_TAIL_CALL_"];

/// Folders of installed packages. Files of the interpreter's own library are like "/usr/lib/python3.13/json/encoder.py".
const LIBRARIES: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// The places of a stack with their names, the innermost first. The Python functions that an evaluation has run replace its
/// native function.
pub fn places(stack: &Stack, python: &Python, names: &mut Names) -> Vec<Rc<Place>> {
    let (functions, native): (Vec<u64>, Vec<u64>) = stack
        .frames
        .iter()
        .partition(|at| python.frame(**at).is_some());
    let mut rest = functions.as_slice();
    let mut places = Vec::new();
    for at in &native {
        let place = names.place(*at);
        if rest.is_empty() || !evaluates(&place) {
            places.push(place);
            continue;
        }
        let count = evaluated(rest, python);
        let (these, others) = rest.split_at(count);
        places.extend(these.iter().map(|at| named(*at, python, names)));
        rest = others;
    }
    if stack.is_cut {
        places.push(mark(native.len()));
    }
    // The native stack is too short for these.
    places.extend(rest.iter().map(|at| named(*at, python, names)));
    let last = functions.last().and_then(|at| python.frame(*at));
    if last.is_some_and(|frame| frame.is_cut) {
        places.push(mark(functions.len()));
    }
    places
}

fn mark(kept: usize) -> Rc<Place> {
    Rc::new(Place {
        frames: vec![format!("… (more callers: {kept} frames are kept)")],
        ..Place::default()
    })
}

fn evaluates(place: &Place) -> bool {
    let is_evaluation = |frame: &String| EVALUATES.iter().any(|name| frame.starts_with(name));
    place.frames.iter().any(is_evaluation)
}

/// How many of these frames one evaluation has run: up to the frame that native code has called.
fn evaluated(frames: &[u64], python: &Python) -> usize {
    let is_called = |at: &u64| python.frame(*at).is_none_or(|frame| frame.is_called);
    frames
        .iter()
        .position(is_called)
        .map_or(frames.len(), |last| last + 1)
}

fn named(at: u64, python: &Python, names: &mut Names) -> Rc<Place> {
    let frame = python.frame(at);
    names.told(at, || {
        frame.map_or_else(String::new, |frame| text(frame, python))
    })
}

/// "Orders.export (/srv/orders/views.py:112)".
fn text(frame: Frame, python: &Python) -> String {
    let Some(function) = python.function(frame) else {
        return "(one of too many Python functions)".into();
    };
    let line = match frame.line {
        0 => function.first_line,
        line => line,
    };
    format!("{} ({}:{line})", function.name, function.file)
}

/// Is it the place of a Python frame? Files have whole paths, and code without a file has a text such as "<string>". Node's
/// built-in modules also look like paths ("node:internal/timers:438").
pub fn is_place(place: &str) -> bool {
    place.rsplit_once(':').is_some_and(|(file, line)| {
        let is_line = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        let is_file = (file.contains('/') && !file.starts_with("node:")) || file.ends_with(".py");
        is_line && (is_file || (file.starts_with('<') && file.ends_with('>')))
    })
}

/// The role of such a frame for a user who looks for the place of an allocation.
pub fn role(place: &str) -> Role {
    if place.starts_with("<frozen ") || is_of_library(place) {
        Role::Machinery
    } else {
        Role::Own
    }
}

/// Does it belong to the interpreter, or to a package that is installed for it?
pub fn is_of_library(place: &str) -> bool {
    let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
    LIBRARIES.iter().any(|folder| file.contains(folder)) || is_standard(file)
}

/// "/usr/lib/python3.13/json/encoder.py", also for a free-threaded interpreter ("python3.13t").
fn is_standard(file: &str) -> bool {
    let mut behind = file.split("/lib/python3.").skip(1);
    behind.any(|rest| {
        let version = rest.split('/').next().unwrap_or_default();
        let digits = version.trim_end_matches('t');
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The place with the last folder only.
pub fn short(place: &str) -> &str {
    let mut slashes = place.rmatch_indices('/').map(|(at, _)| at);
    match (is_place(place), slashes.nth(1)) {
        (true, Some(at)) => &place[at + 1..],
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames;

    /// gunicorn's functions, while it reads a request.
    #[test]
    fn where_only_libraries_run_their_functions_are_shown() {
        let stack = [
            "_PyObject_Malloc (obmalloc.c:2140)",
            "_PyBytes_FromSize (bytesobject.c:96)",
            "SocketUnreader.chunk (/srv/venv/lib/python3.13/site-packages/gunicorn/http/unreader.py:100)",
            "Unreader.read (/srv/venv/lib/python3.13/site-packages/gunicorn/http/unreader.py:58)",
            "_run_code (<frozen runpy>:88)",
            "main (main.c:15)",
        ]
        .map(String::from);
        assert_eq!(
            frames::place(&stack)[1],
            "SocketUnreader.chunk (http/unreader.py:100) < Unreader.read (http/unreader.py:58)"
        );
        let folded = ["*/unreader.py".to_string()];
        let shown = frames::place_of(&stack, &folded);
        assert_eq!(shown[1].split(' ').next(), Some("_PyObject_Malloc"));
    }

    #[test]
    fn places_of_python_are_known() {
        for place in [
            "/srv/orders/views.py:112",
            "app.py:3",
            "<string>:1",
            "<frozen os>:7",
            "/usr/bin/tool:9",
        ] {
            assert!(is_place(place), "{place}");
        }
        for place in [
            "ceval.c:900",
            "libc.so.6",
            "m.cpp:15",
            "app.py",
            "more callers: 128 frames are kept",
            "node:internal/timers:438",
        ] {
            assert!(!is_place(place), "{place}");
        }
        assert_eq!(short("/srv/orders/views.py:112"), "orders/views.py:112");
        assert_eq!(short("views.py:112"), "views.py:112");
        assert_eq!(short("libc.so.6"), "libc.so.6");
    }

    #[test]
    fn what_is_installed_is_not_the_programs_own() {
        for (place, expected) in [
            ("/srv/orders/views.py:112", Role::Own),
            ("<string>:1", Role::Own),
            ("/usr/lib/python3.13/json/encoder.py:261", Role::Machinery),
            ("/opt/lib/python3.14t/json/encoder.py:261", Role::Machinery),
            (
                "/srv/venv/lib/python3.13/site-packages/flask/app.py:1",
                Role::Machinery,
            ),
            (
                "/usr/lib/python3/dist-packages/yaml/reader.py:1",
                Role::Machinery,
            ),
            ("<frozen importlib._bootstrap>:488", Role::Machinery),
            ("/srv/lib/python3.d/own.py:1", Role::Own),
        ] {
            assert_eq!(role(place), expected, "{place}");
        }
    }

    #[test]
    fn what_node_brings_hides_no_function_of_the_program() {
        let stack = [
            "node::NodeArrayBufferAllocator::AllocateUninitialized(unsigned long) (node)",
            "0x7f94fb20d546 (of no file)",
            "exportOrders (orders.js:1)",
            "processImmediate (node:internal/timers:438)",
            "Builtins_JSEntry (node)",
        ];
        let forms = frames::place(&stack.map(String::from));
        assert_eq!(forms.last().unwrap(), "exportOrders (orders.js:1)");
    }

    #[test]
    fn tables_show_the_programs_own_function() {
        let stack = [
            "PyUnicode_New (unicodeobject.c:1329)",
            "JSONEncoder.encode (/usr/lib/python3.13/json/encoder.py:200)",
            "dumps (/usr/lib/python3.13/json/__init__.py:238)",
            "Orders.export (/srv/orders/views.py:112)",
            "PyObject_Vectorcall (call.c:327)",
            "<module> (/srv/orders/worker.py:24)",
            "main (python3)",
        ];
        let forms = frames::place(&stack.map(String::from));
        assert_eq!(
            forms[0],
            "dumps < Orders.export (/srv/orders/views.py:112) < <module> (/srv/orders/worker.py:24)"
        );
        assert_eq!(forms.last().unwrap(), "Orders.export (orders/views.py:112)");
    }
}
