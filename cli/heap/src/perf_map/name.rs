//! Rewrites names in perf maps to the form of all other frames. Each language writes them in its own way; a frame has the
//! function, and in brackets its source and line.

/// In place of an unknown source.
const NO_SOURCE: &str = "jit";

/// V8 writes one of these before the name of a script's function.
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
    let known = match name.strip_prefix("py::") {
        Some(rest) => python(rest),
        None => node(name)
            .or_else(|| lua(name))
            .or_else(|| php(name))
            .or_else(|| dotnet(name))
            .or_else(|| parameters(name))
            .or_else(|| ruby(name)),
    };
    known.unwrap_or_else(|| format!("{name} ({NO_SOURCE})"))
}

fn node(name: &str) -> Option<String> {
    let (kind, rest) = name.split_once(':')?;
    OF_SCRIPTS.contains(&kind).then(|| script(rest))?
}

/// "TRACE_7::app/orders.lua:12": where a trace of LuaJIT begins. The function is not known.
fn lua(name: &str) -> Option<String> {
    let (trace, source) = name.split_once("::")?;
    let (path, line) = source.rsplit_once(':')?;
    trace.strip_prefix("TRACE_")?.parse::<u32>().ok()?;
    line.parse::<u32>().ok()?;
    Some(format!("{trace} ({}:{line})", file_name(path)))
}

/// "JIT$Orders::export"; "TRACE-3$Orders::export$11", with the line where a trace begins; or the script's path instead of a
/// function. "JIT$$assign_tmp" is PHP's own.
fn php(name: &str) -> Option<String> {
    let (of, rest) = name.split_once('$')?;
    let (function, line) = match of.strip_prefix("TRACE-") {
        Some(_) => rest.rsplit_once('$')?,
        None if of == "JIT" => (rest, ""),
        None => return None,
    };
    if function.is_empty() || function.starts_with('$') {
        return None;
    }
    let is_path = function.starts_with('/');
    let source = if is_path {
        file_name(function)
    } else {
        NO_SOURCE
    };
    let name = if is_path { "{main}" } else { function };
    let line = match line.parse::<u32>() {
        Ok(line) => format!(":{line}"),
        Err(_) => String::new(),
    };
    Some(format!("{name} ({source}{line})"))
}

/// "int32 [Shop] Shop.Orders::Export(int32)[OptimizedTier1]": the tier changes at run time, so it is left out.
fn dotnet(name: &str) -> Option<String> {
    let (signature, _tier) = name.strip_suffix(']')?.rsplit_once(")[")?;
    let method = signature.find("::")?;
    let (_, class) = signature[..method].rsplit_once("] ")?;
    Some(format!("{class}{}) ({NO_SOURCE})", &signature[method..]))
}

/// "Order.export:/srv/orders/views.py": a function's name contains no colon.
fn python(text: &str) -> Option<String> {
    let (function, source) = text.split_once(':')?;
    (!function.is_empty()).then(|| format!("{function} ({})", file_name(source)))
}

/// "~tick /srv/app.js:4:14": `~` marks an interpreted function, other marks its compilers. They change at run time, so they are
/// left out.
fn script(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['~', '^', '*', '+', '-']);
    // Names seldom contain blanks, paths sometimes do; a path begins with one of these.
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
        path // of Node's own sources
    } else {
        file_name(path)
    };
    Some(format!("{function} ({source}:{line})"))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// "Orders:Export (int)", "(wrapper managed-to-native) Orders:malloc (intptr)" of Mono, "StubRoutines (1)" of Java. In other
/// forms the blank is between the returned type and the name.
fn parameters(name: &str) -> Option<String> {
    let wrapped = name.strip_prefix("(wrapper ");
    let name = wrapped.map_or(Some(name), |rest| Some(rest.split_once(") ")?.1))?;
    let (function, parameters) = name.split_once(" (")?;
    let is_function = !function.contains(' ') && parameters.ends_with(')');
    is_function.then(|| format!("{function}({parameters} ({NO_SOURCE})"))
}

/// "[JIT] Orders#export" of YJIT.
fn ruby(name: &str) -> Option<String> {
    let method = name.strip_prefix("[JIT] ")?;
    Some(format!("{method} ({NO_SOURCE})"))
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
            ("TRACE_7::app/orders.lua:12", "TRACE_7 (orders.lua:12)"),
            ("TRACE_7::nothing", "TRACE_7::nothing (jit)"),
            ("JIT$Orders::export", "Orders::export (jit)"),
            ("JIT$/srv/a.php", "{main} (a.php)"),
            ("JIT$$assign_tmp", "JIT$$assign_tmp (jit)"),
            ("jit$$trace_exit_0", "jit$$trace_exit_0 (jit)"),
            ("TRACE-3$Orders::export$11", "Orders::export (jit:11)"),
            ("TRACE-8$/srv/a.php$17", "{main} (a.php:17)"),
            ("TRACE-8$", "TRACE-8$ (jit)"),
            (
                "int32 [Shop] Shop.Orders::Export(int32)[OptimizedTier1]",
                "Shop.Orders::Export(int32) (jit)",
            ),
            (
                "class [System.Private.CoreLib]System.String [Shop] Shop.Map`2[System.__Canon,System.__Canon]::Find(class [Shop]Key)[PreJIT]",
                "Shop.Map`2[System.__Canon,System.__Canon]::Find(class [Shop]Key) (jit)",
            ),
            ("Shop.Orders:Export (int)", "Shop.Orders:Export(int) (jit)"),
            (
                "(wrapper managed-to-native) Orders:malloc (intptr)",
                "Orders:malloc(intptr) (jit)",
            ),
            ("StubRoutines (1)", "StubRoutines(1) (jit)"),
            ("[JIT] Orders#export", "Orders#export (jit)"),
            ("f::g()[x", "f::g()[x (jit)"),
        ] {
            assert_eq!(frame(written), expected);
        }
    }
}
