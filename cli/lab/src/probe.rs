//! Loads a program without running it: its dynamic linker maps and binds everything. Then, before the first instruction of any
//! library or of the program, it is examined and killed.
//!
//! It stops at the function that the dynamic linker calls, for debuggers, whenever its list of objects has changed. By then all
//! names are bound, as LD_BIND_NOW is set.

use crate::control::AddressMap;
use crate::elf;
use crate::error::Result;
use crate::launch::{self, Request};
use crate::process::{Blind, Process};
use crate::proof::Proof;
use crate::ptrace::{ptrace, seize};
use crate::whole_file::temporary;
use crate::{failed, usage};
use hakmem_heap::shown::ShownPath;
use nix::libc;
use registers::Registers;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The offset of the state in the dynamic linker's `struct r_debug`: it tells whether the list is complete.
const STATE_OFFSET: u64 = 24;
const CONSISTENT: u32 = 0;
/// The list changes twice during loading.
const STOPS_MAX: usize = 16;
/// The size of the block for the test.
const TEST_BYTES: u64 = 64;

/// A loaded program that has not started.
pub struct Loaded {
    pub proof: Proof,
    /// For hakmem: does its address map know a block that malloc returned in the process?
    pub knows_its_block: Option<bool>,
}

/// Loads a program in an environment. The inner error says why it cannot be loaded or examined.
pub fn load(
    program: &Path,
    arguments: &[OsString],
    environment: Vec<(OsString, OsString)>,
) -> Result<std::result::Result<Loaded, Blind>> {
    let null = |write: bool| {
        File::options()
            .read(!write)
            .write(write)
            .open("/dev/null")
            .map_err(|error| failed!("/dev/null: {error}"))
    };
    let mut errors = temporary()?;
    let mut environment = environment;
    environment.retain(|(name, _)| name != "LD_BIND_NOW");
    environment.push(("LD_BIND_NOW".into(), "1".into()));
    let request = Request {
        program: program.to_path_buf(),
        name: program.into(),
        arguments: arguments.to_vec(),
        environment,
        folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        input: null(false)?,
        output: null(true)?,
        errors: errors.try_clone().map_err(|error| failed!("{error}"))?,
        timeout: None,
        trace_threads: false,
        has_own_group: true,
        reads_heaps: false,
        ends_what_remains: true,
        control_group: None,
    };
    let started = launch::fork_command(&request)?;
    let mut tracee = Stopped {
        pid: started.root,
        has_ended: false,
    };
    seize(
        started.root,
        libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL,
    )?;
    drop(started.gate);
    let loaded = examine(&mut tracee);
    drop(tracee);
    if let Some(error) = launch::start_error(started.report) {
        return Err(usage!("cannot run {}: {error}", program.shown()));
    }
    let said = loaded.map_err(|blind| match blind {
        Blind::Gone => Blind::Other(format!("it could not be loaded{}", last_line(&mut errors))),
        other => other,
    });
    Ok(said)
}

fn last_line(errors: &mut File) -> String {
    let mut text = String::new();
    let is_read = errors
        .rewind()
        .and_then(|()| errors.read_to_string(&mut text))
        .is_ok();
    match text.trim().lines().next_back() {
        Some(line) if is_read => format!(": {line}"),
        _ => String::new(),
    }
}

/// Our stopped child; it is never allowed to continue by itself.
struct Stopped {
    pid: i32,
    has_ended: bool,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.has_ended {
            // SAFETY: a signal, and a wait for our own child.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL);
            }
        }
    }
}

impl Stopped {
    /// Waits for the next stop; passes on signals that do not concern us.
    fn wait_for_stop(&mut self, wanted: impl Fn(i32) -> bool) -> std::result::Result<(), Blind> {
        loop {
            let mut status = 0;
            // SAFETY: the status is ours to write to.
            let pid = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
            if pid < 0 || !libc::WIFSTOPPED(status) {
                self.has_ended = pid < 0 || libc::WIFEXITED(status) || libc::WIFSIGNALED(status);
                return Err(Blind::Gone);
            }
            if wanted(status) {
                return Ok(());
            }
            let is_event = status >> 16 != 0;
            self.resume(if is_event { 0 } else { libc::WSTOPSIG(status) });
        }
    }

    fn resume(&self, signal: i32) {
        let _ = ptrace(libc::PTRACE_CONT, self.pid, 0, signal as usize);
    }

    /// Sets a breakpoint at `place`; the bytes behind it stay.
    fn break_at(&self, place: u64, memory: &File) -> std::result::Result<(), Blind> {
        let word = word_at(memory, place).ok_or(Blind::Gone)?;
        let mut bytes = word.to_ne_bytes();
        bytes[..registers::BREAKPOINT.len()].copy_from_slice(&registers::BREAKPOINT);
        self.poke(place, u64::from_ne_bytes(bytes))
    }

    fn poke(&self, address: u64, word: u64) -> std::result::Result<(), Blind> {
        ptrace(
            libc::PTRACE_POKEDATA,
            self.pid,
            address as usize,
            word as usize,
        )
        .map_err(|error| Blind::Other(format!("its memory cannot be written: {error}")))
    }
}

/// The dynamic linker's list of objects: glibc's `_r_debug`, or the object that musl's `_dl_debug_addr` points to.
enum List {
    At(u64),
    PointedToBy(u64),
}

impl List {
    fn state(&self, memory: &File) -> Option<u32> {
        let start = match *self {
            List::At(start) => start,
            List::PointedToBy(pointer) => word_at(memory, pointer)?,
        };
        Some(word_at(memory, start + STATE_OFFSET)? as u32)
    }
}

fn word_at(memory: &File, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    memory.read_exact_at(&mut word, address).ok()?;
    Some(u64::from_ne_bytes(word))
}

fn is_exec(status: i32) -> bool {
    status >> 16 == libc::PTRACE_EVENT_EXEC
}

fn is_breakpoint(status: i32) -> bool {
    status >> 16 == 0 && libc::WSTOPSIG(status) == libc::SIGTRAP
}

fn examine(tracee: &mut Stopped) -> std::result::Result<Loaded, Blind> {
    tracee.wait_for_stop(is_exec)?;
    let base = Process::linker_base(tracee.pid).ok_or(Blind::Static)?;
    let linker = elf::read_cached(&Process::linker_path(tracee.pid, base)?)
        .map_err(|error| Blind::Other(format!("its dynamic linker cannot be read: {}", error.0)))?;
    let symbol = |name: &str| {
        let offset = linker.exported_at(name).first();
        offset
            .map(|offset| base.wrapping_add(*offset))
            .ok_or_else(|| {
                Blind::Other(format!("its dynamic linker has no {name}: is it glibc's?"))
            })
    };
    let place = symbol("_dl_debug_state")?;
    let list = symbol("_r_debug").map(List::At);
    let list = list.or_else(|_| symbol("_dl_debug_addr").map(List::PointedToBy))?;
    let memory = File::open(format!("/proc/{}/mem", tracee.pid)).map_err(|_| Blind::Gone)?;
    tracee.break_at(place, &memory)?;
    for _ in 0..STOPS_MAX {
        tracee.resume(0);
        tracee.wait_for_stop(is_breakpoint)?;
        if list.state(&memory) == Some(CONSISTENT) {
            let proof = Proof::collect(tracee.pid)?;
            let knows_its_block = test_block(tracee, &proof, place);
            return Ok(Loaded {
                proof,
                knows_its_block,
            });
        }
        // The function only returns, so return in its place.
        let mut registers = Registers::read(tracee.pid)?;
        registers.return_from_function(&memory)?;
        registers.write(tracee.pid)?;
    }
    Err(Blind::Other("its dynamic linker does not finish".into()))
}

/// Makes the process call malloc, and asks hakmem's map about the block. None without hakmem, or if the call does not return.
fn test_block(tracee: &mut Stopped, proof: &Proof, place: u64) -> Option<bool> {
    proof.blocks.as_ref()?;
    let process = Process::open(tracee.pid).ok()?;
    let owner = process.object_at(proof.definers.get("malloc")?)?;
    let malloc = owner
        .base
        .wrapping_add(*owner.file.exported_at("malloc").first()?);
    let mut registers = Registers::read(tracee.pid).ok()?;
    let stack = registers.prepare_call(malloc, TEST_BYTES, place);
    if let Some(address) = stack {
        tracee.poke(address, place).ok()?;
    }
    registers.write(tracee.pid).ok()?;
    tracee.resume(0);
    tracee.wait_for_stop(is_breakpoint).ok()?;
    let block = Registers::read(tracee.pid).ok()?.result();
    // Not earlier: the first call makes the tables.
    Some(AddressMap::find(tracee.pid).ok()?.knows(block))
}

/// The differences between processors.
mod registers {
    use crate::process::Blind;
    use crate::ptrace::TraceRequest;
    use nix::libc;
    use std::fs::File;

    #[cfg(target_arch = "x86_64")]
    pub const BREAKPOINT: [u8; 1] = [0xcc]; // int3
    #[cfg(target_arch = "aarch64")]
    pub const BREAKPOINT: [u8; 4] = 0xd420_0000_u32.to_le_bytes(); // brk #0

    const NT_PRSTATUS: usize = 1;
    #[cfg(target_arch = "x86_64")]
    const RED_ZONE_BYTES: u64 = 128;

    pub struct Registers(libc::user_regs_struct);

    impl Registers {
        pub fn read(pid: i32) -> Result<Registers, Blind> {
            // SAFETY: all zeros is a valid set of registers.
            let mut registers = Registers(unsafe { std::mem::zeroed() });
            registers.transfer(libc::PTRACE_GETREGSET, pid)?;
            Ok(registers)
        }

        pub fn write(&mut self, pid: i32) -> Result<(), Blind> {
            self.transfer(libc::PTRACE_SETREGSET, pid)
        }

        fn transfer(&mut self, request: TraceRequest, pid: i32) -> Result<(), Blind> {
            let mut area = libc::iovec {
                iov_base: (&raw mut self.0).cast(),
                iov_len: size_of::<libc::user_regs_struct>(),
            };
            // SAFETY: the area describes our own registers' memory, which outlives the call.
            match unsafe { libc::ptrace(request, pid, NT_PRSTATUS, &raw mut area) } {
                0 => Ok(()),
                _ => Err(Blind::Other("its registers cannot be reached".into())),
            }
        }

        /// Prepares a call of `function` with one argument that returns to `back`. Returns the stack address for the return
        /// address, if it belongs on the stack.
        #[cfg(target_arch = "x86_64")]
        pub fn prepare_call(&mut self, function: u64, argument: u64, _back: u64) -> Option<u64> {
            // As behind a call instruction: 8 bytes below a multiple of 16.
            self.0.rsp = ((self.0.rsp - RED_ZONE_BYTES) & !15) - 8;
            self.0.rip = function;
            self.0.rdi = argument;
            self.0.rax = 0;
            self.0.orig_rax = u64::MAX; // so that no system call is repeated
            Some(self.0.rsp)
        }

        #[cfg(target_arch = "aarch64")]
        pub fn prepare_call(&mut self, function: u64, argument: u64, back: u64) -> Option<u64> {
            self.0.pc = function;
            self.0.regs[0] = argument;
            self.0.regs[30] = back;
            None
        }

        #[cfg(target_arch = "x86_64")]
        pub fn return_from_function(&mut self, memory: &File) -> Result<(), Blind> {
            let mut word = [0; 8];
            std::os::unix::fs::FileExt::read_exact_at(memory, &mut word, self.0.rsp)
                .map_err(|_| Blind::Gone)?;
            self.0.rip = u64::from_ne_bytes(word);
            self.0.rsp += 8;
            Ok(())
        }

        #[cfg(target_arch = "aarch64")]
        pub fn return_from_function(&mut self, _memory: &File) -> Result<(), Blind> {
            self.0.pc = self.0.regs[30];
            Ok(())
        }

        #[cfg(target_arch = "x86_64")]
        pub fn result(&self) -> u64 {
            self.0.rax
        }

        #[cfg(target_arch = "aarch64")]
        pub fn result(&self) -> u64 {
            self.0.regs[0]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Vec<(OsString, OsString)> {
        std::env::vars_os()
            .filter(|(name, _)| name != "LD_PRELOAD")
            .collect()
    }

    #[test]
    fn a_program_is_loaded_and_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("made");
        let loaded = load(
            Path::new("/usr/bin/touch"),
            &[file.clone().into()],
            environment(),
        );
        let proof = loaded.unwrap().unwrap().proof;
        assert!(proof.definers["malloc"].ends_with("libc.so.6"));
        assert!(proof.bindings.iter().any(|one| one.object == proof.program));
        assert!(!file.exists());
    }

    /// Compiles an empty program with further compiler arguments.
    fn compile(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
        let source = folder.join(format!("{name}.c"));
        let text = if name.ends_with(".so") {
            ""
        } else {
            "int main(void) { return 0; }\n"
        };
        std::fs::write(&source, text).unwrap();
        let output = folder.join(name);
        let made = std::process::Command::new("cc")
            .arg(&source)
            .args(arguments)
            .arg("-o")
            .arg(&output)
            .current_dir(folder)
            .status()
            .unwrap();
        assert!(made.success());
        output
    }

    #[test]
    fn a_static_program_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), "main", &["-static"]);
        let blind = load(&program, &[], environment()).unwrap().err().unwrap();
        assert_eq!(blind, Blind::Static);
    }

    #[test]
    fn a_missing_library_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let library = compile(folder.path(), "libgone.so", &["-shared"]);
        let program = compile(folder.path(), "main", &["-Wl,--no-as-needed", "libgone.so"]);
        std::fs::remove_file(&library).unwrap();
        let blind = load(&program, &[], environment()).unwrap().err().unwrap();
        assert!(blind.to_string().contains("libgone.so"), "{blind}");
    }
}
