//! Names in perf maps, which each language writes in its own way, in the form that all other frames have: the function,
//! and in brackets its source and line.

/// Where nothing is known of the source.
const NO_SOURCE: &str = "jit";

/// What V8 writes before the name of a function of a script.
const OF_SCRIPTS: [&str; 6] = [
    "JS",
    "LazyCompile",
    "Function",
    "Script",
    "Eval",
    "Callback",
];

/// "export (views.py)", "tick (app.js:4)", "Builtin:ArrayMap (jit)".
pub fn frame(name: &str) -> String {
    let of_python = name.strip_prefix("py::").and_then(python);
    let known = of_python.or_else(|| {
        let (kind, rest) = name.split_once(':')?;
        OF_SCRIPTS.contains(&kind).then(|| script(rest))?
    });
    known.unwrap_or_else(|| format!("{name} ({NO_SOURCE})"))
}

/// "Order.export:/srv/orders/views.py": no name of a function has a colon.
fn python(text: &str) -> Option<String> {
    let (function, source) = text.split_once(':')?;
    (!function.is_empty()).then(|| format!("{function} ({})", file_name(source)))
}

/// "~tick /srv/app.js:4:14", of a function that is interpreted; other marks are those of its compilers, and change while
/// it runs.
fn script(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['~', '^', '*', '+', '-']);
    // Names have blanks seldom, paths sometimes: a path begins with the first of these.
    let begins = [" /", " file:", " node:", " evalmachine."];
    let found = begins.iter().filter_map(|begin| text.find(begin)).min();
    let (function, source) = text.split_at(found.or_else(|| text.rfind(' '))?);
    let source = source.trim_start();
    let (at, _column) = source.rsplit_once(':')?;
    let (path, line) = at.rsplit_once(':')?;
    line.parse::<u32>().ok()?;
    let function = if function.is_empty() {
        "(anonymous)"
    } else {
        function
    };
    let source = if path.starts_with("node:") {
        path // of Node itself
    } else {
        file_name(path)
    };
    Some(format!("{function} ({source}:{line})"))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_own_form() {
        for (written, expected) in [
            (
                "py::Order.export:/srv/orders/views.py",
                "Order.export (views.py)",
            ),
            (
                "py::<module>:<frozen importlib._bootstrap>",
                "<module> (<frozen importlib._bootstrap>)",
            ),
            ("JS:~tick /srv/app.js:4:14", "tick (app.js:4)"),
            (
                "JS:*get size file:///srv/a b.mjs:12:3",
                "get size (a b.mjs:12)",
            ),
            (
                "LazyCompile:*emit node:events:465:44",
                "emit (node:events:465)",
            ),
            ("Function:^ /srv/my app/x.js:1:1", "(anonymous) (x.js:1)"),
            (
                "Script:~ evalmachine.<anonymous>:1:1",
                "(anonymous) (evalmachine.<anonymous>:1)",
            ),
            ("Builtin:ArrayMap", "Builtin:ArrayMap (jit)"),
            ("JS:nonsense", "JS:nonsense (jit)"),
            ("py::nothing", "py::nothing (jit)"),
            (
                "void java.util.HashMap.resize(int)",
                "void java.util.HashMap.resize(int) (jit)",
            ),
        ] {
            assert_eq!(frame(written), expected);
        }
    }
}
