//! Whatever a process writes into its perf map or jitdump file, an address has no name, or one that can be written to a
//! terminal.
#![no_main]

use hakmem_heap::perf_map::PerfMap;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// The addresses that the lines contain, and their neighbours.
fn addresses(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.split(|byte| matches!(byte, b' ' | b'\n'));
    let numbers = words.filter_map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
    });
    numbers
        .flat_map(|number| [number.wrapping_sub(1), number, number.saturating_add(1)])
        .chain(bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())))
        .collect()
}

fuzz_target!(|bytes: &[u8]| {
    let mut map = PerfMap::parse(bytes.to_vec());
    let _ = map.add_dump(Cursor::new(bytes)); // it reports how a jitdump file ends
    for address in addresses(bytes) {
        let Some(name) = map.name(address) else {
            continue;
        };
        assert!(!name.is_empty() && !name.chars().any(char::is_control), "{name:?}");
        assert!(name.ends_with(')'), "{name:?}");
    }
});
