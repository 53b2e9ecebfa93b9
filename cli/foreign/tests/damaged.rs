//! A heap with wrong bytes always gives an answer, always comes to an end, and the sum of its parts stays the same.

use fastrand::Rng;
use hakmem_foreign::figures::Figures;
use hakmem_foreign::glibc::Heap;
use hakmem_foreign::glibc::cold::Looked;
use hakmem_foreign::heaps::Heaps;
use hakmem_foreign::ledger::Ledger;
use hakmem_foreign::map::Map;
use hakmem_foreign::space::Space;
use hakmem_heap::cold::Blocks;
use hakmem_heap::error::Error;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::resident::{Counted, read_areas};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Two arenas, with free and cached blocks, and a large block.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *blocks[2][2000];
static void *fill(void *which)
{
    void **mine = blocks[(size_t)which];
    for (int i = 0; i < 2000; i++) {
        mine[i] = malloc(16 + i % 700);
        memset(mine[i], i, 16);
    }
    for (int i = 0; i < 2000; i++) {
        if (i % 3 != 0) {
            free(mine[i]);
        }
    }
    if (which != NULL) {
        write(1, "ready\n", 6);
        pause();
    }
    return NULL;
}
int main(void)
{
    memset(malloc(500000), 1, 1000);
    fill((void *)0);
    pthread_t thread;
    pthread_create(&thread, NULL, fill, (void *)1);
    pause();
    return 0;
}
"#;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder of its source and program; it is removed when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start() -> (Running, Folder) {
    let name = format!(
        "hakmem-foreign-{}-{}",
        std::process::id(),
        fastrand::u64(..)
    );
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir(&folder.0).unwrap();
    let source = folder.0.join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let program = folder.0.join("program");
    let made = Command::new("cc")
        .args(["-O1", "-w", "-fno-builtin", "-pthread", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(made.success());
    let mut child = Command::new(program)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    (Running(child), folder)
}

/// A copy of a process's writable memory.
struct Copied {
    parts: Vec<(u64, Vec<u8>)>,
    data: Vec<Range<u64>>,
}

impl Copied {
    fn of(process: &LiveProcess, areas: &[Counted]) -> Copied {
        let wanted = areas
            .iter()
            .filter(|area| Space::is_plain(area) || area.is_writable);
        let parts = wanted.filter_map(|area| {
            let bytes = usize::try_from(area.range.end - area.range.start).unwrap();
            let content = process.read_vec(area.range.start, bytes).ok()?;
            Some((area.range.start, content))
        });
        Copied {
            parts: parts.collect(),
            data: process.data_areas(),
        }
    }
}

impl Memory for Copied {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let index = self.parts.partition_point(|(start, _)| *start <= address);
        let Some((start, content)) = index.checked_sub(1).and_then(|index| self.parts.get(index))
        else {
            return false;
        };
        let at = usize::try_from(address - start).unwrap();
        let part = at
            .checked_add(target.len())
            .and_then(|end| content.get(at..end));
        part.is_some_and(|part| {
            target.copy_from_slice(part);
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

/// The bytes of the blocks on all pages of a heap, and how many of them are live.
fn of_pages(space: Space, heap: Heap) -> (f64, f64) {
    let blocks = heap.mapped.blocks.iter();
    let mut ranges = heap.ranges();
    ranges.extend(blocks.map(|block| block.start..block.start + block.bytes));
    ranges.sort_unstable_by_key(|range| range.start);
    let pages = ranges.into_iter().flat_map(|range| range.step_by(4096));
    let pages: Vec<u64> = pages.collect();
    let mut looked = Looked::new(space, heap);
    looked.look_at(&pages);
    let parts = pages
        .iter()
        .filter_map(|page| looked.parts(*page, 4096))
        .flatten();
    let bytes = parts.map(|part| {
        assert!(part.range.end <= 4096, "{part:?}");
        part.range.len() as f64
    });
    let live = looked.sizes().into_iter().map(|size| size.bytes.live);
    (bytes.sum(), live.sum())
}

/// The parts that are read add up to the whole.
fn check(memory: &Copied, areas: &[Counted]) -> Option<(Figures, (f64, f64))> {
    let space = Space::of_memory(memory, areas.to_vec());
    let heaps = Heaps::read(&space);
    let numbers = heaps.numbers(&space);
    Ledger::of(&space, &heaps, &numbers, &[]);
    let map = Map::of(&heaps, &space);
    let cells = map.strips.iter().flat_map(|strip| &strip.cells);
    let total = &numbers.glibc.as_ref()?.total;
    assert_eq!(total.resident.sum(), total.bytes, "{total:#?}");
    assert_eq!(cells.map(|cell| cell.resident).sum::<u64>(), total.bytes);
    Some((numbers.glibc?, of_pages(space, heaps.glibc?)))
}

#[test]
fn a_heap_with_wrong_bytes_is_read_to_its_end() {
    let (running, _folder) = start();
    let pid = i32::try_from(running.0.id()).unwrap();
    let process = LiveProcess::open(pid).unwrap();
    let areas = read_areas(pid).unwrap();
    let memory = Copied::of(&process, &areas);
    let (whole, (on_pages, live)) = check(&memory, &areas).unwrap();
    assert_eq!(on_pages, live);
    assert_eq!(whole.arenas.len(), 2);
    assert_eq!(whole.total.unclear_bytes, 0);
    assert!(whole.total.cached_blocks > 0 && whole.mapped.blocks == 1);
    let seed = fastrand::u64(..);
    let mut random = Rng::with_seed(seed);
    println!("seed {seed}");
    for _ in 0..300 {
        let mut damaged = Copied::of(&process, &areas);
        for _ in 0..random.usize(1..200) {
            let part = random.usize(0..damaged.parts.len());
            let content = &mut damaged.parts[part].1;
            // Damages the beginning, where most reads are.
            let most = content.len().min(1 << random.u32(6..20));
            let at = random.usize(0..most);
            content[at] = if random.bool() { random.u8(..) } else { 0xff };
        }
        check(&damaged, &areas);
    }
}
