//! The moment of the peak, who held what then, and which blocks were temporary.

mod support;

use hakmem_trace::analysis::{Analysis, analyse, analyse_within};
use hakmem_trace::event::{Event, Kind};
use hakmem_trace::reader::Reader;
use support::{Threads, event, free, malloc, write};

fn by(stack: u32, event: Event) -> Event {
    Event { stack, ..event }
}

fn reader(folder: &tempfile::TempDir, threads: &Threads) -> Reader {
    let path = folder.path().join("trace.hkt");
    write(&path, threads, 100);
    Reader::open(&path).unwrap()
}

/// Stack, blocks and bytes of each site that holds blocks at the peak.
fn held(analysis: &Analysis) -> Vec<(u32, u64, u64)> {
    let sites = analysis.sites.iter().map(|site| {
        let held = &site.held;
        (site.stack, held.at_peak_blocks, held.at_peak_bytes)
    });
    let mut held: Vec<_> = sites.filter(|(_, blocks, _)| *blocks > 0).collect();
    held.sort_unstable();
    held
}

#[test]
fn sites_hold_what_they_held_when_most_was_live() {
    let folder = tempfile::tempdir().unwrap();
    let events = vec![
        by(1, malloc(1_000, 0x1000, 100)),
        by(2, malloc(2_000, 0x2000, 50)),
        free(3_000, 0x2000),
        by(3, malloc(4_000, 0x3000, 10)),
        by(2, malloc(5_000, 0x4000, 300)), // the peak: 410
        free(6_000, 0x1000),
        free(7_000, 0x3000),
        by(1, malloc(8_000, 0x5000, 110)), // the same peak again, which does not count
        free(9_000, 0x4000),
    ];
    let reader = reader(&folder, &Threads::from([(7, events)]));
    let analysis = analyse(&reader, 1).unwrap();
    assert_eq!(held(&analysis), [(1, 1, 100), (2, 1, 300), (3, 1, 10)]);
    let peak = &analysis.peak;
    assert_eq!((peak.live_bytes, peak.live_blocks), (410, 3));
    assert_eq!((peak.operation, peak.operations), (5, 9));
    assert_eq!((peak.thread, peak.stack, peak.size), (7, 2, 300));
    assert_eq!(peak.seconds, 4e-6); // since the first call
    let sizes = analysis.sizes.iter().map(|class| class.held.at_peak_bytes);
    assert_eq!(sizes.sum::<u64>(), 410);
}

#[test]
fn a_realloc_at_the_peak_counts_with_what_it_became() {
    let folder = tempfile::tempdir().unwrap();
    let events = vec![
        by(1, malloc(1_000, 0x1000, 100)),
        event(2_000, Kind::ReallocFrom, 0x1000, 0),
        by(2, event(2_100, Kind::ReallocTo, 0x1000, 900)),
        free(3_000, 0x1000),
    ];
    let reader = reader(&folder, &Threads::from([(1, events)]));
    let analysis = analyse(&reader, 1).unwrap();
    assert_eq!(held(&analysis), [(2, 1, 900)]);
    assert_eq!((analysis.peak.operation, analysis.peak.operations), (2, 3));
}

#[test]
fn a_block_is_temporary_while_its_thread_asks_for_few_others() {
    let folder = tempfile::tempdir().unwrap();
    let first = vec![
        by(1, malloc(10_000, 0x1000, 8)), // no other block in its life
        free(20_000, 0x1000),
        by(2, malloc(30_000, 0x2000, 8)), // one other block: 3
        by(3, malloc(40_000, 0x3000, 8)), // one other block: 4
        free(50_000, 0x2000),
        by(4, malloc(60_000, 0x4000, 8)), // the other thread frees it
        free(70_000, 0x3000),
    ];
    // Another thread's calls do not count.
    let second = vec![
        by(5, malloc(35_000, 0x5000, 8)),
        by(6, malloc(36_000, 0x6000, 8)),
        free(75_000, 0x4000),
    ];
    let reader = reader(&folder, &Threads::from([(1, first), (2, second)]));
    let temporary = |within| -> Vec<u32> {
        let analysis = analyse_within(&reader, 1, within).unwrap();
        let sites = analysis
            .sites
            .iter()
            .filter(|site| site.temporary_blocks > 0);
        let mut stacks: Vec<u32> = sites.map(|site| site.stack).collect();
        stacks.sort_unstable();
        assert_eq!(analysis.temporary_blocks, stacks.len() as u64);
        stacks
    };
    assert_eq!(temporary(0), [1]);
    assert_eq!(temporary(1), [1, 2, 3]);
}
