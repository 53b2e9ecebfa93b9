"""What is measured: the programs' subjects, their points, and their figures."""

from __future__ import annotations

from dataclasses import dataclass

CUT_S = 10  # of processor time: the series ends after a point that took more
KILLED_S = 60  # on the clock: a point that takes longer is killed


@dataclass(frozen=True)
class Figure:
    """One plot and one table."""

    operation: str  # as the program prints it
    title: str
    unit: str  # ns, us, ms, KiB, MiB or %
    least: float = 1e-3  # a smaller value counts as this one: a logarithm has no 0


@dataclass(frozen=True)
class Subject:
    program: str
    name: str
    axis: str  # the quantity of the points
    unit: str  # of the points: MiB, bytes, or none
    points: tuple[int, ...]
    quick: tuple[int, ...]
    figures: tuple[Figure, ...]
    once: bool = False  # memory hardly differs between runs


SUBJECTS = (
    Subject(
        "large", "large", "addresses of live blocks of 2 MiB, one page of each touched", "MiB",
        (64, 256, 1024, 4096, 16384, 65536), (64, 1024),
        (
            Figure("large-free", "Freeing a large block at random", "ns"),
            Figure("large-malloc", "Allocating a large block, its first page touched", "ns"),
            Figure("large-free-all", "Freeing all large blocks in turn, for each", "ns"),
        ),
    ),
    Subject(
        "large", "half-mib", "live blocks of 0.5 MiB", "",
        (3, 30, 300, 3000, 30000), (3, 300),
        (Figure("half-mib-pair", "Replacing a block of 0.5 MiB, 16 at a time", "ns"),),
    ),
    Subject(
        "large", "pair", "bytes of the block", "bytes",
        (16, 256, 4096, 65536, 1 << 20, 16 << 20, 256 << 20, 1 << 30), (16, 65536, 1 << 20),
        (Figure("pair-by-size", "malloc and free of one block, its first byte written", "ns"),),
    ),
    Subject(
        "large", "growth", "bytes of the block before it grows", "bytes",
        (256, 4096, 65536, 1 << 20, 16 << 20, 128 << 20), (256, 65536),
        (Figure("realloc-by-size", "realloc to twice the size, of a block that is written", "ns"),),
    ),
    Subject(
        "large", "refused", "requests refused so far", "",
        (1, 10, 100, 1000, 5000), (1, 10),
        (
            Figure("refusal", "A request that is refused", "ns"),
            Figure("pair-after-refusals", "Replacing a block of 1 to 5 MiB after refusals", "ns"),
        ),
    ),
    Subject(
        "small", "replace", "heap of blocks of 16 to 496 bytes", "MiB",
        (1, 4, 16, 64, 256, 1024, 4096), (1, 16),
        (Figure("replace", "Replacing a small block at random", "ns"),),
    ),
    Subject(
        "small", "holes", "heap of blocks of 16 to 2,048 bytes, of which nine tenths are freed at random", "MiB",
        (2, 20, 200, 2048), (2, 20),
        (
            Figure("holes-built", "Building the heap, for each block", "ns"),
            Figure("holes-at-once", "Resident when nine tenths are freed, at once", "%"),
            Figure("holes-after-3-s", "Resident when nine tenths are freed, after 3 s", "%"),
            Figure("holes-filled", "Filling it again at random, for each block", "ns"),
        ),
    ),
    Subject(
        "small", "fork-child", "heap of blocks of 16 to 2,048 bytes that the parent has filled", "MiB",
        (1, 10, 100, 1000), (1, 10),
        (
            Figure("child-frees", "Private memory of a child that frees", "KiB"),
            Figure("child-works", "Private memory of a child that works", "KiB"),
        ),
        once=True,
    ),
    Subject(
        "threads", "end", "threads that end together", "",
        (1, 10, 100, 1000, 3000, 10000), (1, 100),
        (
            Figure("threads-start", "Starting a thread that allocates 50 blocks", "us"),
            Figure("threads-end", "A thread that frees 50 blocks and ends, with all others", "us"),
        ),
    ),
    Subject(
        "threads", "at-work", "threads at work", "",
        (1, 10, 100, 1000), (1, 100),
        (Figure("threads-at-work", "Replacing a small block of one's own", "ns"),),
    ),
    Subject(
        "threads", "ended", "threads that have ended", "",
        (1, 10, 100, 1000, 4000), (1, 100),
        (
            Figure("idle-second", "Processor time of a second in which nothing happens", "ms", 0.01),
            Figure("quiet-second", "Processor time of a second with ten blocks of 3 MiB", "ms", 0.01),
        ),
    ),
    Subject(
        "threads", "asleep", "threads that worked once and sleep", "",
        (1, 10, 100, 1000), (1, 10),
        (
            Figure("asleep-at-once", "What stays resident for each, at once", "KiB"),
            Figure("asleep-after-6-s", "What stays resident for each, after 6 s", "KiB"),
        ),
        once=True,
    ),
    Subject(
        "between", "owners", "threads whose blocks one thread frees in turn", "",
        (1, 4, 16, 64, 250, 1000), (1, 64),
        (
            Figure("free-of-owners", "Freeing another thread's block", "ns"),
            Figure("owners-resident", "Resident memory when all are freed, of what it was before", "%"),
        ),
    ),
    Subject(
        "between", "handed", "blocks handed to the other thread at once", "",
        (100, 1000, 10000, 100000, 1000000), (100, 10000),
        (Figure("handed", "A block that one thread allocates and another frees", "ns"),),
    ),
    Subject(
        "whole", "trim", "addresses of the heap, of which each 32nd block is freed", "MiB",
        (16, 64, 256, 1024, 4096), (16, 256),
        (
            Figure("trim", "malloc_trim", "ms"),
            Figure("trim-again", "malloc_trim a second time", "ms"),
            Figure("mallinfo2", "mallinfo2", "us"),
        ),
    ),
    Subject(
        "whole", "fork-heap", "heap of blocks of 1 KiB", "MiB",
        (1, 10, 100, 1000, 4000), (1, 100),
        (
            Figure("fork-heap", "fork, in the parent", "us"),
            Figure("fork-heap-child", "fork to the end of a child that allocates once", "us"),
        ),
    ),
    Subject(
        "whole", "fork-threads", "threads that have blocks and sleep", "",
        (1, 10, 100, 1000), (1, 100),
        (
            Figure("fork-threads", "fork beside other threads, in the parent", "us"),
            Figure("fork-threads-child", "The same to the end of a child that allocates once", "us"),
        ),
    ),
)
