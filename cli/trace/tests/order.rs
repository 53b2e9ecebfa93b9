//! Events of several threads get an order in which they may have happened.

mod support;

use hakmem_trace::event::{Event, Kind};
use hakmem_trace::order::{Ordered, Step, What};
use hakmem_trace::reader::Reader;
use std::collections::HashMap;
use support::{Threads, event, free, malloc, write};

fn steps_of(threads: &Threads) -> (Vec<(u32, Step)>, u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    write(&path, threads, 7);
    let reader = Reader::open(&path).unwrap();
    let mut ordered = Ordered::new(&reader, 1).unwrap();
    let mut steps = Vec::new();
    while let Some(step) = ordered.step().unwrap() {
        steps.push((ordered.threads[step.thread], step));
    }
    (steps, ordered.foreign, ordered.implied)
}

fn whats(threads: &Threads) -> Vec<(u32, What)> {
    steps_of(threads)
        .0
        .into_iter()
        .map(|(thread, step)| (thread, step.what))
        .collect()
}

#[test]
fn times_decide() {
    let threads = Threads::from([
        (1, vec![malloc(10, 0x10, 5), malloc(30, 0x30, 5)]),
        (2, vec![malloc(20, 0x20, 5)]),
    ]);
    let order: Vec<u32> = whats(&threads)
        .into_iter()
        .map(|(thread, _)| thread)
        .collect();
    assert_eq!(order, [1, 2, 1]);
}

#[test]
fn a_free_waits_for_its_allocation() {
    let threads = Threads::from([(1, vec![malloc(100, 0x10, 5)]), (2, vec![free(90, 0x10)])]);
    assert_eq!(whats(&threads), [(1, What::Malloc), (2, What::Free)]);
}

#[test]
fn an_address_is_given_again_only_after_its_free() {
    let threads = Threads::from([
        (1, vec![malloc(10, 0x10, 5), free(100, 0x10)]),
        (2, vec![malloc(95, 0x10, 6)]),
    ]);
    assert_eq!(
        whats(&threads),
        [(1, What::Malloc), (1, What::Free), (2, What::Malloc)]
    );
}

#[test]
fn a_moving_block_leaves_its_address_to_others() {
    let threads = Threads::from([
        (
            1,
            vec![
                malloc(10, 0x10, 5),
                event(20, Kind::ReallocFrom, 0x10, 0),
                event(40, Kind::ReallocTo, 0x50, 9),
            ],
        ),
        (2, vec![malloc(30, 0x10, 6), free(50, 0x50)]),
    ]);
    let (steps, foreign, implied) = steps_of(&threads);
    let order: Vec<_> = steps
        .iter()
        .map(|(thread, step)| (*thread, step.what))
        .collect();
    let expected = [
        (1, What::Malloc),
        (2, What::Malloc),
        (1, What::Realloc),
        (2, What::Free),
    ];
    assert_eq!(order, expected);
    assert_eq!(steps[3].1.before.size, 9);
    assert_eq!((foreign, implied), (0, 0));
}

#[test]
fn a_realloc_that_failed_leaves_the_block() {
    let threads = Threads::from([(
        1,
        vec![
            malloc(10, 0x10, 5),
            event(20, Kind::ReallocFrom, 0x10, 0),
            event(21, Kind::ReallocTo, 0, 1 << 60),
            free(30, 0x10),
        ],
    )]);
    assert_eq!(
        whats(&threads),
        [(1, What::Malloc), (1, What::Failed), (1, What::Free)]
    );
}

#[test]
fn a_realloc_to_nothing_is_a_free() {
    let threads = Threads::from([(
        1,
        vec![
            malloc(10, 0x10, 5),
            event(20, Kind::ReallocFrom, 0x10, 0),
            event(21, Kind::ReallocTo, 0, 0),
        ],
    )]);
    assert_eq!(whats(&threads), [(1, What::Malloc), (1, What::Free)]);
}

#[test]
fn what_the_trace_lacks_is_counted() {
    let threads = Threads::from([(
        1,
        vec![free(10, 0x10), malloc(20, 0x20, 1), malloc(30, 0x20, 2)],
    )]);
    let (steps, foreign, implied) = steps_of(&threads);
    assert_eq!((foreign, implied), (1, 1));
    assert_eq!(steps.len(), 4); // a free in between is added
}

/// Threads that exchange no blocks never wait for each other in a replay.
#[test]
fn threads_with_blocks_of_their_own_share_no_slot() {
    let replacements = |thread: u64| -> Vec<Event> {
        let at = |time: u64| time * 2 + thread;
        let address = thread << 20;
        (0..1000)
            .flat_map(|round| {
                [
                    malloc(at(2 * round), address, 8),
                    free(at(2 * round + 1), address),
                ]
            })
            .collect()
    };
    let threads = Threads::from([(1, replacements(1)), (2, replacements(2))]);
    let mut owners: HashMap<u32, u32> = HashMap::new();
    for (thread, step) in steps_of(&threads).0 {
        assert_eq!(*owners.entry(step.slot).or_insert(thread), thread);
    }
    assert_eq!(owners.len(), 2);
}

/// One thread allocates, another one frees. The first cannot run far ahead, so a few slots are enough.
#[test]
fn slots_that_another_thread_frees_are_used_again() {
    let count = 50_000u64;
    let threads = Threads::from([
        (
            1,
            (0..count)
                .map(|i| malloc(10 * i, 16 * (i + 1), 8))
                .collect(),
        ),
        (
            2,
            (0..count).map(|i| free(10 * i + 5, 16 * (i + 1))).collect(),
        ),
    ]);
    let slots = steps_of(&threads).0.iter().map(|(_, step)| step.slot).max();
    assert!(slots < Some(5000), "{slots:?}");
}

/// A simulated heap, with threads that exchange blocks. Their clocks differ by a little more than the time between two events,
/// so neighbouring events swap places.
fn random_threads(seed: u64, threads: u32) -> Threads {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all = Threads::new();
    let mut live: Vec<u64> = Vec::new();
    let mut unused: Vec<u64> = (1..200).map(|unit| unit * 16).collect();
    for time in 0..5000u64 {
        let thread = random.u32(1..=threads);
        let skew = u64::from(thread) * 12;
        let events = all.entry(thread).or_default();
        let time = time * 20 + skew;
        if !live.is_empty() && (unused.is_empty() || random.bool()) {
            let address = live.swap_remove(random.usize(..live.len()));
            events.push(free(time, address));
            unused.push(address);
        } else {
            let address = unused.swap_remove(random.usize(..unused.len()));
            events.push(malloc(time, address, random.u64(1..100)));
            live.push(address);
        }
    }
    all
}

#[test]
fn clocks_that_differ_lose_nothing() {
    for seed in 0..20 {
        let (steps, foreign, implied) = steps_of(&random_threads(seed, 3));
        assert_eq!((foreign, implied), (0, 0), "seed {seed}");
        let mut turns: HashMap<u32, u32> = HashMap::new();
        let mut live: HashMap<u64, u32> = HashMap::new();
        for (_, step) in &steps {
            let turn = turns.entry(step.slot).or_default();
            assert_eq!(step.turn, *turn, "seed {seed}: each slot's turns count up");
            *turn += 1;
            match step.what {
                What::Malloc => assert_eq!(live.insert(step.address, step.slot), None),
                What::Free => assert_eq!(live.remove(&step.address), Some(step.slot)),
                _ => panic!("neither malloc nor free: {step:?}"),
            }
        }
        assert_eq!(steps.len(), 5000);
    }
}
