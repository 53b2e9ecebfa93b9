//! Any events that are written are read unchanged.

mod support;

use hakmem_trace::event::{Event, Kind};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

fn any_event() -> impl Strategy<Value = Event> {
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let address = prop_oneof![
        0..1u64 << 48,
        (0..1u64 << 20).prop_map(|unit| 0x7f00_0000_0000 + unit * 16)
    ];
    let size = prop_oneof![0..5000u64, any::<u64>()];
    let stack = prop_oneof![4 => Just(0), 1 => any::<u32>()];
    (0..1u64 << 30, kind, address, size, stack, 0..48u8).prop_map(
        |(time, kind, address, size, stack, log2)| Event {
            time,
            address,
            size: if kind.gives() { size } else { 0 },
            stack: if kind.gives() { stack } else { 0 },
            kind,
            alignment_log2: if kind == Kind::Aligned { log2 } else { 0 },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn events_come_back(
        mut threads in btree_map(1..9u32, vec(any_event(), 1..300), 1..4),
        chunk_events in 1..400usize,
    ) {
        for events in threads.values_mut() {
            events.sort_by_key(|event| event.time); // as the events of a thread are
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        support::write(&path, &threads, chunk_events);
        prop_assert_eq!(support::read(&path).unwrap(), threads);
    }
}
