//! Functions of interpreters, which a program in their language does not know. If a stack has functions of that language, all
//! of these are machinery; if not, only those that are on every stack.

/// Source files of CPython; its functions have source lines if it has debugging information.
const FILES_OF_PYTHON: [&str; 37] = [
    "_functoolsmodule.c",
    "abstract.c",
    "bltinmodule.c",
    "bytecodes.c",
    "bytesobject.c",
    "call.c",
    "ceval.c",
    "classobject.c",
    "codeobject.c",
    "compile.c",
    "descrobject.c",
    "dictobject.c",
    "floatobject.c",
    "frameobject.c",
    "funcobject.c",
    "gc.c",
    "gcmodule.c",
    "generated_cases.c.h",
    "genobject.c",
    "import.c",
    "iterobject.c",
    "listobject.c",
    "longobject.c",
    "marshal.c",
    "methodobject.c",
    "moduleobject.c",
    "object.c",
    "obmalloc.c",
    "perf_trampoline.c",
    "pythonrun.c",
    "rangeobject.c",
    "setobject.c",
    "structseq.c",
    "tupleobject.c",
    "typeobject.c",
    "unicodeobject.c",
    "weakrefobject.c",
];

/// Programs and libraries that are interpreters, without version numbers.
const MODULES: [&str; 20] = [
    "node",
    "libnode",
    "python",
    "libpython",
    "libjvm",
    "libjli",
    "libjava",
    "libnio",
    "php",
    "luajit",
    "libluajit",
    "dotnet",
    "libcoreclr",
    "libhostfxr",
    "libhostpolicy",
    "libSystem",
    "mono-sgen",
    "ruby",
    "libruby",
    "libmonosgen",
];

/// The beginnings of names in Java's and .NET's libraries.
const OF_LIBRARIES: [&str; 6] = ["java.", "javax.", "jdk.", "sun.", "System.", "Microsoft."];

/// CPython's functions that are on every stack, or between an object's creation and malloc. An asterisk matches anything.
const ALWAYS: [&str; 39] = [
    "_PyBytes_FromSize",
    "_PyEval_*",
    "_PyFunction_Vectorcall",
    "_PyImport_*",
    "_PyLong_From*",
    "_PyLong_New",
    "_PyObject_Call*",
    "_PyObject_GC_*",
    "_PyObject_MakeTpCall",
    "_PyObject_New*",
    "_PyObject_Vectorcall*",
    "_PyRun_*",
    "_PyType_AllocNoTrack",
    "_PyUnicode_From*",
    "_PyVectorcall_*",
    "PyBytes_FromString*",
    "PyEval_*",
    "PyImport_*",
    "PyList_New",
    "PyLong_From*",
    "PyObject_Call*",
    "PyObject_GC_*",
    "PyObject_New*",
    "PyObject_Vectorcall*",
    "PyRun_*",
    "PyTuple_New*",
    "PyType_GenericAlloc",
    "PyUnicode_From*",
    "PyUnicode_New",
    "Py_BytesMain",
    "Py_RunMain",
    "cfunction_vectorcall_*",
    "gc_alloc",
    "method_vectorcall*",
    "object_vacall",
    "pymain_*",
    "run_eval_code_obj",
    "run_mod",
    "slot_tp_*",
];

/// Is it machinery, whatever else is on the stack?
pub fn is_always_machinery(name: &str, place: &str) -> bool {
    super::fits_one(&ALWAYS, name)
        || place.starts_with("node:")
        || place.starts_with("<frozen ")
        || is_made_by_interpreter(name, place)
        || is_jit(place) && OF_LIBRARIES.iter().any(|package| name.starts_with(package))
}

/// Generated code that belongs to no function of the program.
fn is_made_by_interpreter(name: &str, place: &str) -> bool {
    const BEGINNINGS: [&str; 10] = [
        "Builtin:",
        "BytecodeHandler:",
        "Stub:",
        "StubRoutines",
        "Interpreter",
        "Callback:",
        "JIT$$",
        "jit$$",
        "stub<",
        "dynamicClass::IL_STUB",
    ];
    is_jit(place) && BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Generated code: the source file is unknown, but perhaps not the line.
fn is_jit(place: &str) -> bool {
    place.split(':').next() == Some("jit")
}

/// Is it a function of a program in an interpreted language?
pub fn is_script(name: &str, place: &str) -> bool {
    let file = place.split(':').next().unwrap_or_default();
    let endings = [".py", ".js", ".mjs", ".cjs", ".ts", ".lua", ".php"];
    let is_source = endings.iter().any(|ending| file.ends_with(ending));
    (is_source || is_jit(place)) && !is_always_machinery(name, place)
}

/// Is it the interpreter's function? For stacks with functions of a script.
pub fn is_interpreters(name: &str, place: &str) -> bool {
    let file = place.split(':').next().unwrap_or_default();
    let module = place.split(['.', '+']).next().unwrap_or_default();
    let module = module.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
    FILES_OF_PYTHON.contains(&file)
        || file.starts_with("pycore_")
        || MODULES.contains(&module)
        || ["Py", "_Py", "v8::", "node::", "Builtins_", "uv_"]
            .iter()
            .any(|begin| name.starts_with(begin))
        || place == "of no file"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_not_the_program() {
        for (name, place) in [
            ("unicode_repeat", "unicodeobject.c:12022"),
            ("_Py_INCREF", "pycore_object.h:12"),
            ("", "python3.12+0x1234"),
            ("v8::internal::Heap::Allocate", "heap.cc:12"),
            ("node::Start", "node"),
            ("0x7f00", "of no file"),
            ("JavaMain", "libjli.so"),
            ("lj_str_new", "libluajit-5.1.so.2.1.0"),
            ("zif_str_repeat", "php8.2"),
            ("SystemNative_Read", "libSystem.Native.so"),
        ] {
            assert!(is_interpreters(name, place), "{name} ({place})");
        }
        for (name, place) in [
            ("array_new", "libnumpy.so"),
            ("main", "nodes.c:12"),
            ("f", "a.c:1"),
        ] {
            assert!(!is_interpreters(name, place), "{name} ({place})");
        }
    }

    /// Compiled code of Node calls through one of Node's own functions.
    #[test]
    fn what_calls_for_a_script_is_not_what_it_called() {
        for inside in [
            "0x7f9ed620d546 (of no file)",
            "Builtins_CallApiCallback (node)",
        ] {
            let stack = [
                "node::NodeArrayBufferAllocator::AllocateUninitialized(unsigned long) (node)",
                inside,
                "exportOrders (app.js:2)",
                "serve (app.js:4)",
                "node::Start(int, char**) (node)",
            ]
            .map(String::from);
            assert_eq!(
                crate::frames::place(&stack)[0],
                "exportOrders (app.js:2) < serve (app.js:4)"
            );
        }
    }

    #[test]
    fn functions_of_scripts_are_told_from_what_runs_them() {
        for (name, place) in [
            ("export", "views.py"),
            ("tick", "app.js:4"),
            ("Alloc.serve", "jit"),
            ("Orders::export", "jit:11"),
            ("TRACE_7", "orders.lua:12"),
        ] {
            assert!(is_script(name, place), "{name} ({place})");
        }
        for (name, place) in [
            ("emit", "node:events:465"),
            ("<module>", "<frozen importlib._bootstrap>"),
            ("Builtin:ArrayMap", "jit"),
            ("java.util.HashMap.put", "jit"),
            ("System.String::Concat", "jit"),
            ("JIT$$assign_tmp", "jit"),
            ("main", "main.c:3"),
        ] {
            assert!(!is_script(name, place), "{name} ({place})");
        }
    }
}
