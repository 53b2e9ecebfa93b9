//! Reading a heap, however damaged, ends with figures or with an error line.
//!
//! The fuzzer starts a program under `HAKMEM_LIB` and reads its heap. The input says which reads return wrong content, in
//! records of eight bytes: the number of the read, the word in it, the kind of the wrong value, and a part of that value.
#![no_main]

use hakmem_heap::control::Control;
use hakmem_heap::error::Error;
use hakmem_heap::failures::Failures;
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::profile::Profile;
use hakmem_heap::{judge, options, timings};
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Blocks of all sizes, some freed, in two threads. The program ends with the fuzzer: then its input is closed.
const PROGRAM: &str = "
import sys, threading
blocks = [bytearray(16 + 37 * i % 3000) for i in range(20000)] + [bytearray(40000 * i) for i in range(20)]
def free_some():
    for i in range(0, 9000, 2):
        blocks[i] = None
thread = threading.Thread(target=free_some)
thread.start()
thread.join()
print('ready', flush=True)
sys.stdin.read()
";

const READS_MAX: usize = 200_000;

fn program() -> &'static Child {
    static PROGRAM_RUNS: OnceLock<Child> = OnceLock::new();
    PROGRAM_RUNS.get_or_init(|| {
        let library = std::env::var("HAKMEM_LIB").expect("HAKMEM_LIB names libhakmem.so");
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM])
            .env("PYTHONMALLOC", "malloc")
            .env("HAKMEM_SAMPLE_BYTES", "4096")
            .env("LD_PRELOAD", library)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it has one");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it answers");
        assert_eq!(line, "ready\n");
        child
    })
}

/// Content that was read before. The program stands still, and asking the kernel is the slowest part.
type Seen = HashMap<(u64, usize), Option<Vec<u8>>>;

struct Damaged<'a> {
    process: LiveProcess,
    seen: &'a Mutex<Seen>,
    records: HashMap<usize, &'a [u8]>,
    reads: Cell<usize>,
}

impl<'a> Damaged<'a> {
    fn new(input: &'a [u8], seen: &'a Mutex<Seen>) -> Damaged<'a> {
        let pid = i32::try_from(program().id()).expect("a process id");
        let records = input.chunks_exact(8);
        Damaged {
            process: LiveProcess::open(pid).expect("it runs"),
            seen,
            records: records
                .map(|record| {
                    (
                        usize::from(u16::from_le_bytes([record[0], record[1]])),
                        record,
                    )
                })
                .collect(),
            reads: Cell::new(0),
        }
    }

    fn read_whole(&self, address: u64, target: &mut [u8]) -> bool {
        let mut seen = self.seen.lock().expect("one thread");
        let bytes = seen.entry((address, target.len())).or_insert_with(|| {
            let mut bytes = vec![0; target.len()];
            self.process.read(address, &mut bytes).then_some(bytes)
        });
        if let Some(bytes) = bytes {
            target.copy_from_slice(bytes);
        }
        bytes.is_some()
    }
}

fn damage(record: &[u8], address: u64, target: &mut [u8]) {
    let part = u64::from(u32::from_le_bytes([
        record[4], record[5], record[6], record[7],
    ]));
    let word = match record[3] % 6 {
        0 => address.wrapping_add(part & !7), // another address nearby
        1 => address.wrapping_sub(part & !7),
        2 => u64::MAX - part,
        3 => 1 << (part % 64),
        4 => part,
        _ => part << 32 | part,
    };
    let at = usize::from(record[2]) * 8 % target.len();
    let end = target.len().min(at + 8);
    target[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
}

impl Memory for Damaged<'_> {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let number = self.reads.replace(self.reads.get() + 1);
        assert!(number < READS_MAX, "it reads without an end");
        let is_read = self.read_whole(address, target);
        match self.records.get(&number) {
            Some(record) if record[3] == u8::MAX => return false,
            Some(record) if !target.is_empty() => damage(record, address, target),
            _ => {}
        }
        is_read
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        self.process.data_areas()
    }

    fn explain(&self, address: u64) -> Error {
        self.process.explain(address)
    }
}

fn read_all(memory: &Damaged, control: &Control) -> Result<(), Error> {
    let heap = Heap::read_by(memory, control)?;
    let figures = Figures::of(&heap);
    assert!(figures.doubts.len() <= 20);
    judge::damage(&heap);
    for run in heap.supers.iter().flat_map(|one| &one.runs).take(50) {
        judge::describe(&heap, run.base + 40);
    }
    Failures::read_by(memory, control)?;
    options::read(control, memory)?;
    options::read_features(control, memory)?;
    timings::read(control, memory)?;
    Profile::read_by(control, memory)?;
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    static SEEN: OnceLock<Mutex<Seen>> = OnceLock::new();
    let memory = Damaged::new(bytes, SEEN.get_or_init(Mutex::default));
    // In every second case, the control block itself is damaged.
    let control = if bytes.first().is_some_and(|first| first % 2 == 0) {
        Control::find(&memory.process)
    } else {
        Control::find(&memory)
    };
    if let Err(error) = control.and_then(|control| read_all(&memory, &control)) {
        assert!(!error.to_string().contains('\n'));
    }
});
