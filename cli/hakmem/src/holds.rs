//! The contents of resident memory: the lines of the ledger.

use hakmem_heap::ledger::Ledger;

/// A line of the table: a name, the bytes, and an explanation.
pub type Row = (&'static str, u64, &'static str);

/// hakmem's memory, and the program's blocks in it.
pub fn ours(ledger: &Ledger) -> [Row; 10] {
    [
        (
            "live blocks",
            ledger.live,
            "including class slack: the rest of each block",
        ),
        (
            "in magazines",
            ledger.cached,
            "free, in caches; mode secure: stock, quarantine",
        ),
        (
            "between threads",
            ledger.in_transit,
            "remote frees that wait for their owner",
        ),
        ("in BigCache", ledger.kept, "large, free, kept for reuse"),
        ("free in slabs", ledger.slab_free, "beside live blocks"),
        (
            "never used",
            ledger.never_used,
            "on pages that other blocks use",
        ),
        (
            "rests",
            ledger.rests,
            "after the last block of slabs and runs",
        ),
        ("waiting", ledger.waiting, "free, to be purged"),
        (
            "huge page excess",
            ledger.huge_excess,
            "free, but part of a resident huge page",
        ),
        ("descriptors", ledger.metadata, "and the address map"),
    ]
}

/// What is not this heap's. Hardly a process has other copies: a line of them only where it does.
pub fn others(ledger: &Ledger) -> impl Iterator<Item = Row> {
    let copies = (
        "other copies",
        ledger.copies,
        "of hakmem: their heaps, used and free",
    );
    let rest = [
        (
            "files",
            ledger.files,
            "code and data of the program and its libraries",
        ),
        (
            "shared memory",
            ledger.shared,
            "other processes may have it, too",
        ),
        ("stacks", ledger.stacks, "of threads with a guard page"),
        (
            "other",
            ledger.other,
            "what the program or a library maps itself",
        ),
    ];
    let copies = (ledger.copies > 0).then_some(copies);
    copies.into_iter().chain(rest)
}

/// All lines.
pub fn rows(ledger: &Ledger) -> impl Iterator<Item = Row> {
    ours(ledger).into_iter().chain(others(ledger))
}
