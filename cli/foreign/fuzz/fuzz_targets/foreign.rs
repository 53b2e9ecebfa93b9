//! Reading another allocator's heap, whatever it contains, comes to an end, and the parts that are found add up to the whole
//! heap.
//!
//! The first byte chooses the heap: that of a program with glibc's malloc, copied once, or an artificial one of jemalloc or
//! mimalloc. Records of eight bytes follow, one for each word that gets a wrong value: which word, the kind of the value, and a
//! part of it.
#![no_main]

#[path = "../../tests/made/mod.rs"]
#[allow(dead_code)]
mod made;

use hakmem_foreign::glibc::cold::Looked;
use hakmem_foreign::heaps::Heaps;
use hakmem_foreign::judge::{Look, judge};
use hakmem_foreign::ledger::Ledger;
use hakmem_foreign::map::Map;
use hakmem_foreign::space::Space;
use hakmem_heap::cold::Blocks;
use hakmem_heap::error::Error;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::resident::{Counted, read_areas};
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Two arenas with blocks in use, free and in caches, and a large block; the stack of the thread is small.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *fill(void *which)
{
    void *blocks[400];
    for (int i = 0; i < 400; i++) {
        blocks[i] = malloc(16 + i * 7 % 700);
    }
    for (int i = 0; i < 400; i += 1 + i % 3) {
        free(blocks[i]);
    }
    if (which != NULL) {
        write(1, "ready\n", 6);
        pause();
    }
    return NULL;
}
int main(void)
{
    static pthread_attr_t small;
    pthread_t thread;
    *(char *)malloc(500000) = 1;
    fill(NULL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_create(&thread, &small, fill, &thread);
    pause();
}
"#;

/// More reads than any heap here takes.
const READS_MOST: usize = 2_000_000;

struct Copied {
    parts: Vec<(u64, Vec<u8>)>,
    areas: Vec<Counted>,
    data: Vec<Range<u64>>,
    /// Addresses of words that may get a wrong value.
    words: Vec<u64>,
    reads: Cell<usize>,
}

// SAFETY: it is only read under its lock.
unsafe impl Sync for Copied {}

impl Copied {
    fn of(memory: &dyn Memory, areas: Vec<Counted>, words: Option<Vec<u64>>) -> Copied {
        let parts: Vec<(u64, Vec<u8>)> = areas
            .iter()
            .filter(|area| area.is_writable)
            .filter_map(|area| {
                let bytes = usize::try_from(area.range.end - area.range.start).ok()?;
                Some((area.range.start, memory.read_vec(area.range.start, bytes).ok()?))
            })
            .collect();
        let all = parts.iter().flat_map(|(start, content)| {
            let words = content.chunks_exact(8).enumerate();
            let words = words.filter(|(_, word)| word.iter().any(|byte| *byte != 0));
            words.map(move |(index, _)| start + index as u64 * 8)
        });
        Copied {
            words: words.unwrap_or_else(|| all.collect()),
            data: memory.data_areas(),
            parts,
            areas,
            reads: Cell::new(0),
        }
    }

    fn place(&self, address: u64, bytes: usize) -> Option<(usize, Range<usize>)> {
        let after = self.parts.partition_point(|(start, _)| *start <= address);
        let part = after.checked_sub(1)?;
        let at = usize::try_from(address - self.parts[part].0).ok()?;
        let end = at.checked_add(bytes)?;
        (end <= self.parts[part].1.len()).then_some((part, at..end))
    }

    /// Sets a word and returns the old one.
    fn set(&mut self, address: u64, word: u64) -> u64 {
        let (part, place) = self.place(address, 8).expect("it is one of the words");
        let target = &mut self.parts[part].1[place];
        let before = u64::from_le_bytes(target.try_into().expect("it has eight bytes"));
        target.copy_from_slice(&word.to_le_bytes());
        before
    }

    fn damage(&mut self, record: &[u8]) -> (u64, u64) {
        let half = |at: usize| usize::from(u16::from_le_bytes([record[at], record[at + 1]]));
        let address = self.words[half(0) % self.words.len()];
        let part = u64::from(u32::from_le_bytes([record[4], record[5], record[6], record[7]]));
        let now = self.read_u64(address).expect("it is one of the words");
        let other = self.words[half(4) % self.words.len()];
        let word = match record[2] % 8 {
            0 => part,
            1 => now ^ part & 0xff,
            2 => now.wrapping_add(part << 4),
            3 => now.wrapping_sub(part << 4),
            4 => other.wrapping_add(part >> 16),
            5 => self.read_u64(other).expect("it is one of the words"),
            6 => u64::MAX - part,
            _ => part << 32 | part,
        };
        (address, self.set(address, word))
    }
}

impl Memory for Copied {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let number = self.reads.replace(self.reads.get() + 1);
        assert!(number < READS_MOST, "it reads without an end");
        let place = self.place(address, target.len());
        place.is_some_and(|(part, place)| {
            target.copy_from_slice(&self.parts[part].1[place]);
            true
        })
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        self.data.clone()
    }

    fn explain(&self, address: u64) -> Error {
        Error::Damaged(format!("there is nothing at {address:#x}"))
    }
}

/// Copies the heap of a program, which then ends.
fn of_glibc() -> Copied {
    let path = std::env::temp_dir().join(format!("hakmem-fuzz-foreign-{}", std::process::id()));
    let mut compiler = Command::new("cc")
        .args(["-O1", "-w", "-fno-builtin", "-pthread", "-xc", "-", "-o"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("cc starts");
    let mut source = compiler.stdin.take().expect("it has one");
    source.write_all(PROGRAM.as_bytes()).expect("it reads");
    drop(source);
    assert!(compiler.wait().is_ok_and(|status| status.success()));
    let mut program = Command::new(&path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let output = program.stdout.take().expect("it has one");
    BufReader::new(output).read_line(&mut line).expect("it answers");
    let pid = i32::try_from(program.id()).expect("a process id");
    let process = LiveProcess::open(pid).expect("it runs");
    let areas = read_areas(pid).expect("it runs");
    let copied = Copied::of(&process, areas, None);
    let _ = program.kill();
    let _ = program.wait();
    let _ = std::fs::remove_file(path);
    assert!(copied.words.len() < 1 << 16);
    copied
}

fn heaps() -> &'static Mutex<Vec<Copied>> {
    static HEAPS: OnceLock<Mutex<Vec<Copied>>> = OnceLock::new();
    HEAPS.get_or_init(|| {
        let images = [
            made::jemalloc(8, 20),
            made::jemalloc(16, 20),
            made::segment(80),
            made::segment(96),
            made::older_arena(false),
            made::older_arena(true),
            made::arena(),
        ];
        let made = images
            .into_iter()
            .map(|image| Copied::of(&image, image.areas(), Some(image.touched.clone())));
        Mutex::new([of_glibc()].into_iter().chain(made).collect())
    })
}

fn read_all(memory: &Copied) {
    memory.reads.set(0);
    let space = Space::of_memory(memory, memory.areas.clone());
    let heaps = Heaps::read(&space);
    let numbers = heaps.numbers(&space);
    let ledger = Ledger::of(&space, &heaps, &numbers, &[]);
    let cells = Map::of(&heaps, &space).strips.into_iter().flat_map(|strip| strip.cells);
    let shown: u64 = cells.map(|cell| cell.resident).sum();
    let others = numbers.others.iter();
    let mut bytes: u64 = others
        .map(|heap| {
            assert_eq!(heap.resident.sum(), heap.bytes, "{heap:#?}");
            heap.bytes
        })
        .sum();
    if let Some(figures) = &numbers.glibc {
        assert_eq!(figures.total.resident.sum(), figures.total.bytes, "{figures:#?}");
        bytes += figures.total.bytes;
    }
    assert_eq!(shown, bytes);
    let look = Look {
        hakmem: None,
        ledger: &ledger,
        figures: numbers.glibc.as_ref(),
        others: &numbers.others,
    };
    judge(&look, Some(&look));
    if let Some(heap) = heaps.glibc {
        let pages: Vec<u64> = heap.ranges().into_iter().flat_map(|range| range.step_by(4096)).collect();
        let mut looked = Looked::new(space, heap);
        looked.look_at(&pages);
        for page in pages {
            for part in looked.parts(page, 4096).into_iter().flatten() {
                assert!(part.range.end <= 4096, "{part:?}");
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, records)) = bytes.split_first() else {
        return;
    };
    let mut heaps = heaps().lock().expect("one thread");
    // Half of the inputs are for glibc, whose heap has the most to get wrong.
    let which = usize::from(*which);
    let which = if which < 128 { 0 } else { 1 + which % (heaps.len() - 1) };
    let heap = &mut heaps[which];
    let before: Vec<(u64, u64)> =
        records.chunks_exact(8).map(|record| heap.damage(record)).collect();
    read_all(heap);
    for (address, word) in before.into_iter().rev() {
        heap.set(address, word);
    }
});
