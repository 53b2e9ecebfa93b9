//! A call of a plan is found again in the trace.

mod support;

use hakmem_trace::plan::{self, At};
use hakmem_trace::reader::Reader;
use support::{Threads, free, malloc, write};

#[test]
fn a_call_of_a_plan_is_one_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.hkt");
    // 30,000 calls of one thread, whose first 20,000 fill a window; and two calls of another thread.
    let first =
        (0..15_000).flat_map(|n| [malloc(n * 100 + 10, 0x1000, n), free(n * 100 + 20, 0x1000)]);
    let second = vec![malloc(1_300_001, 0x9000, 7), malloc(1_300_003, 0xa000, 9)];
    write(
        &path,
        &Threads::from([(1, first.collect()), (5, second)]),
        1000,
    );
    let reader = Reader::open(&path).unwrap();
    let file = tempfile::tempfile().unwrap();
    let plan = plan::make(&reader, 1, &file).unwrap();
    assert_eq!(plan.windows.len(), 2);
    let at = At {
        window: 1,
        share: 1,
        index: 1,
    };
    let place = plan::find(&reader, 1, at).unwrap().unwrap();
    assert_eq!((place.thread, place.size, place.live_bytes), (5, 9, 16));
    assert_eq!((place.operation, place.call.as_str()), (26_002, "malloc"));
    assert_eq!(place.seconds, 1_300_003e-9);
    let after = At { index: 2, ..at };
    assert_eq!(plan::find(&reader, 1, after).unwrap(), None);
}
