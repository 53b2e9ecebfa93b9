//! The command as users run it, and small programs and allocators compiled for a test.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod dump;
pub mod protobuf;
pub mod waiting;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A complete allocator that never gives anything back. It stands for any other one: MARK adds a symbol that only a certain
/// allocator has, and with BREAKS it ends the program.
pub const ALLOCATOR: &str = r#"
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#define MAPPED ((size_t)1 << 30)
static char *memory;
static size_t used;
#ifdef MARK
void MARK(void) {}
#endif
void *memalign(size_t alignment, size_t bytes)
{
    alignment = alignment < 16 ? 16 : alignment;
    if (bytes > MAPPED) {
        return NULL;
    }
    if (__atomic_load_n(&memory, __ATOMIC_ACQUIRE) == NULL) {
        char *none = NULL;
        char *mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!__atomic_compare_exchange_n(&memory, &none, mapped, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            munmap(mapped, MAPPED);
        }
    }
    size_t all = sizeof(size_t) + alignment + bytes;
    size_t start = __atomic_fetch_add(&used, all, __ATOMIC_RELAXED);
    if (start + all > MAPPED) {
        return NULL;
    }
    start = (start + sizeof(size_t) + alignment - 1) & ~(alignment - 1);
    ((size_t *)(memory + start))[-1] = bytes;
    return memory + start;
}
#ifdef BREAKS
static int calls;
#endif
void *malloc(size_t bytes)
{
#ifdef BREAKS
    if (++calls > BREAKS) {
        __builtin_trap();
    }
#endif
    return memalign(16, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
size_t malloc_usable_size(void *block) { return block ? ((size_t *)block)[-1] : 0; }
void *realloc(void *block, size_t bytes)
{
    void *target = malloc(bytes);
    size_t old = malloc_usable_size(block);
    return block ? memcpy(target, block, old < bytes ? old : bytes) : target;
}
int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = memalign(alignment, bytes);
    return 0;
}
"#;

/// Allocates some memory and prints a result.
pub const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **arguments)
{
    char *text = malloc(100);
    strcpy(text, count > 1 ? arguments[1] : "nothing");
    puts(text);
    free(text);
    return 0;
}
"#;

pub struct Workshop {
    folder: TempDir,
}

impl Workshop {
    pub fn open() -> Workshop {
        Workshop {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        make_program(&path, text.as_bytes());
        path
    }

    /// Compiles C source with further compiler arguments.
    pub fn compile(&self, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let file = self.write(&format!("{name}.c"), source);
        let output = self.path(name);
        let made = Command::new("cc")
            .args(["-O1", "-w", "-fno-builtin", "-o"])
            .args([&output, &file])
            .args(arguments)
            .current_dir(self.folder())
            .status()
            .unwrap();
        assert!(made.success(), "{name} does not compile");
        output
    }

    pub fn program(&self) -> PathBuf {
        self.compile("program", PROGRAM, &[])
    }

    pub fn allocator(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let all = [&["-shared", "-fPIC"], arguments].concat();
        self.compile(name, ALLOCATOR, &all)
    }

    /// Runs the command in this folder.
    pub fn hakmem(&self, arguments: &[&str]) -> Answer {
        answer(self.command(arguments))
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hakmem"));
        command
            .args(arguments)
            .current_dir(self.folder())
            .env("HOME", self.folder())
            .env_remove("LD_PRELOAD")
            .env_remove("XDG_CACHE_HOME");
        command
    }

    /// The command as installed elsewhere, with the library beside it; its files stay in this folder.
    pub fn installed(&self, arguments: &[&str]) -> Answer {
        let bin = self.path("bin");
        if !bin.exists() {
            std::fs::create_dir(&bin).unwrap();
            make_program(
                &bin.join("hakmem"),
                &std::fs::read(env!("CARGO_BIN_EXE_hakmem")).unwrap(),
            );
            std::fs::copy(library(), bin.join("libhakmem.so")).unwrap();
        }
        let mut command = Command::new(bin.join("hakmem"));
        command
            .args(arguments)
            .current_dir(self.folder())
            .env("HOME", self.folder());
        command
            .env_remove("XDG_CACHE_HOME")
            .env_remove("LD_PRELOAD");
        answer(command)
    }
}

/// Writes an executable file in a separate process. In this process, another test's thread might fork while the file is open
/// for writing, and the kernel does not execute a file that any process has open for writing.
pub fn make_program(path: &Path, content: &[u8]) {
    let mut install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    install.stdin.take().unwrap().write_all(content).unwrap();
    assert!(install.wait().unwrap().success());
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

pub fn library() -> PathBuf {
    let path = root().join("build/libhakmem.so");
    assert!(
        path.exists(),
        "{} is missing: run make first",
        path.display()
    );
    path.canonicalize().unwrap()
}

pub struct Answer {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

pub fn answer(mut command: Command) -> Answer {
    Answer::from(command.output().unwrap())
}

impl From<Output> for Answer {
    fn from(output: Output) -> Answer {
        Answer {
            code: output.status.code(),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Answer {
    /// It failed with this exit code, and with exactly one line, which is this text.
    pub fn is_one_line(&self, code: i32, text: &str) {
        assert_eq!(self.errors.trim_end(), format!("hakmem: {text}"));
        assert_eq!(self.code, Some(code));
        assert_eq!(self.output, "");
    }

    pub fn says(&self, text: &str) -> &Answer {
        let all = format!("{}{}", self.output, self.errors);
        assert!(all.contains(text), "'{text}' is not in:\n{all}");
        self
    }

    pub fn ended_with(&self, code: i32) -> &Answer {
        assert_eq!(self.code, Some(code), "{}{}", self.output, self.errors);
        self
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
