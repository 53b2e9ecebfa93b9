//! A heap that changes or is damaged during the read gives an answer or an error. The reader never crashes, and always ends.

use fastrand::Rng;
use hakmem_heap::cold::Before;
use hakmem_heap::control::Control;
use hakmem_heap::error::Error;
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::profile::Profile;
use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program with blocks of several kinds: live, in a magazine, in a slab, large, of another thread.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *blocks[20000];
static void *free_some(void *unused)
{
    for (int i = 0; i < 5000; i++) {
        free(blocks[2 * i]);
    }
    return unused;
}
int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IONBF, 0); /* nothing is allocated after what is freed last */
    for (int i = 0; i < 20000; i++) {
        blocks[i] = malloc(16 + i % 3000);
    }
    void *volatile large[20];
    for (int i = 0; i < 20; i++) {
        large[i] = malloc(40000 * (i + 1));
    }
    void *volatile huge = malloc(600 << 20);
    pthread_t thread;
    pthread_create(&thread, NULL, free_some, NULL);
    pthread_join(thread, NULL);
    for (int i = 15000; i < 18000; i++) {
        free(blocks[i]);
    }
    free(large[7]);
    puts("ready");
    while (count > 1) { /* goes on */
        for (int i = 10001; i < 15000; i += 2) {
            free(blocks[i]);
            blocks[i] = malloc(16 + rand() % 5000);
        }
    }
    pause();
    return 0;
}
"#;

struct Running(Child);

impl Running {
    fn start(folder: &Path, arguments: &[&str]) -> Running {
        let source = folder.join("program.c");
        std::fs::write(&source, PROGRAM).unwrap();
        let program = folder.join("program");
        let made = Command::new("cc")
            .args(["-w", "-fno-builtin", "-pthread", "-o"])
            .args([&program, &source])
            .status()
            .unwrap();
        assert!(made.success());
        let mut child = Command::new(&program)
            .args(arguments)
            .env("LD_PRELOAD", library())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Running(child)
    }

    fn open(&self) -> LiveProcess {
        LiveProcess::open(i32::try_from(self.0.id()).unwrap()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn library() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("build/libhakmem.so");
    assert!(
        path.exists(),
        "{} is missing: run make first",
        path.display()
    );
    path.canonicalize().unwrap()
}

/// A memory in which some reads return wrong content.
struct Damaged {
    process: LiveProcess,
    generator: RefCell<Rng>,
    /// One read in this many is wrong.
    rarity: u32,
    reads: Cell<usize>,
}

impl Memory for Damaged {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        let is_read = self.process.read(address, target);
        let mut generator = self.generator.borrow_mut();
        if !target.is_empty() && generator.u32(..self.rarity) == 0 {
            for _ in 0..=generator.usize(..3) {
                let at = generator.usize(..target.len()) & !7;
                // A pointer elsewhere, a huge number, a bit, zero.
                let old = address.wrapping_add(generator.u64(..100_000) & !7);
                let word = [old, u64::MAX, 1 << generator.u32(..64), 0][generator.usize(..4)];
                let end = target.len().min(at + 8);
                target[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
            }
        }
        is_read && generator.u32(..10_000) != 0
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        self.process.data_areas()
    }

    fn explain(&self, address: u64) -> Error {
        self.process.explain(address)
    }
}

#[test]
fn damage_is_an_error_or_a_doubt_but_never_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let program = Running::start(folder.path(), &[]);
    let (mut heaps, mut errors) = (0, 0);
    for seed in 0..600 {
        let memory = Damaged {
            process: program.open(),
            generator: RefCell::new(Rng::with_seed(seed)),
            rarity: [3, 30, 300][seed as usize % 3],
            reads: Cell::new(0),
        };
        // In every second case, the control block itself is damaged.
        let control = if seed % 2 == 0 {
            Control::find(&memory.process)
        } else {
            Control::find(&memory)
        };
        match control.and_then(|control| Heap::read_by(&memory, &control)) {
            Ok(heap) => {
                let figures = Figures::of(&heap);
                assert!(figures.doubts.len() <= 20);
                heaps += 1;
            }
            Err(error) => {
                assert!(!error.to_string().contains('\n'));
                errors += 1;
            }
        }
        assert!(memory.reads.get() < 200_000, "seed {seed}");
    }
    assert!(heaps > 50 && errors > 50, "{heaps} heaps, {errors} errors");
}

/// For any heap and any changes, the cold bytes are at most the resident bytes.
fn look_twice(process: &LiveProcess, first: Heap, mut second: Heap) {
    let profile = Profile::default();
    let before = Before::look(process, Box::new(first), &profile, false).unwrap();
    let after = before.end(process).unwrap();
    let cold = after.compare(process, &mut second, &profile).unwrap();
    for size in &cold.sizes {
        let bytes = size.bytes;
        assert!(
            bytes.cold <= bytes.resident && bytes.beside <= bytes.cold,
            "{size:?}"
        );
        assert!(
            bytes.zero <= bytes.resident && bytes.resident.is_finite(),
            "{size:?}"
        );
    }
}

#[test]
fn what_is_cold_in_a_damaged_heap_is_an_answer_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let program = Running::start(folder.path(), &[]);
    let control = Control::find(&program.open()).unwrap();
    let mut heaps = 0;
    for seed in 0..30 {
        let memory = Damaged {
            process: program.open(),
            generator: RefCell::new(Rng::with_seed(seed)),
            rarity: 30,
            reads: Cell::new(0),
        };
        let read = || Heap::read_by(&memory, &control);
        if let (Ok(first), Ok(second)) = (read(), read()) {
            look_twice(&memory.process, first, second);
            heaps += 1;
        }
    }
    assert!(heaps > 3, "{heaps}");
}

#[test]
fn a_program_that_goes_on_is_looked_at_twice() {
    let folder = tempfile::tempdir().unwrap();
    let program = Running::start(folder.path(), &["on"]);
    for _ in 0..5 {
        let process = program.open();
        let read = || Heap::read(&process).unwrap();
        look_twice(&process, read(), read());
    }
}

#[test]
fn a_program_that_goes_on_is_read_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let program = Running::start(folder.path(), &["on"]);
    for _ in 0..200 {
        let heap = Heap::read(&program.open()).unwrap();
        let figures = Figures::of(&heap);
        // The number of live blocks is right within its stated accuracy.
        let expected = 20_000 - 5_000 - 3_000 + 20;
        let difference = figures.totals.live_blocks.abs_diff(expected);
        assert!(
            difference < 300 + figures.moved_blocks,
            "{:?}",
            figures.totals
        );
        assert_eq!(figures.doubts, Vec::<String>::new());
    }
}

/// A memory in which one word is replaced.
struct Patched {
    process: LiveProcess,
    address: u64,
    value: u64,
}

impl Memory for Patched {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let is_read = self.process.read(address, target);
        let at = self.address.wrapping_sub(address) as usize;
        if let Some(word) = target.get_mut(at..at.saturating_add(8)) {
            word.copy_from_slice(&self.value.to_le_bytes());
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

#[test]
fn what_shards_have_not_added_to_the_sums_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let program = Running::start(folder.path(), &[]);
    let process = program.open();
    let control = Control::find(&process).unwrap();
    let free_bytes = Heap::read_by(&process, &control).unwrap().arena.free_bytes;
    let shards = control.field("hak_arena", "shards").unwrap();
    let address = control.root("hak_arena").unwrap().address
        + (shards.offset + 3 * shards.bytes) as u64
        + control.field("hak_shard", "untold").unwrap().offset as u64
        + control.field("hak_untold", "free_bytes").unwrap().offset as u64;
    for change in [4096_i64, -4096] {
        let memory = Patched {
            process: program.open(),
            address,
            value: change as u64,
        };
        let heap = Heap::read_by(&memory, &control).unwrap();
        assert_eq!(
            heap.arena.free_bytes,
            free_bytes.wrapping_add(change as u64)
        );
    }
}

#[test]
fn every_place_of_a_block_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let program = Running::start(folder.path(), &[]);
    let heap = Heap::read(&program.open()).unwrap();
    assert_eq!(heap.moved_blocks, 0);
    let totals = Figures::of(&heap).totals;
    assert!(totals.cached_bytes > 0 && totals.slab_free_bytes > 0 && totals.kept_bytes > 0);
    assert_eq!(totals.mapping_count, 1);
    // Some of its blocks wait where the second thread put them: each is free exactly once.
    for (block, _) in &heap.waiting {
        let place = heap.find(*block).unwrap();
        assert!(place.run.is_some());
    }
}
