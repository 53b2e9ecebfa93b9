#!/usr/bin/env python3
"""Measures what the sampling profiler costs loops that do nothing but allocate and free.

    bench/micro/sampling.py [--every BYTES] [--rate SAMPLES] [--rounds N] [BYTESxCOUNT ...]

`batch` runs with sampling off and on in turn; each figure is processor time for one call, the median of
the rounds, and the cost is the median of the rounds' ratios. The machine must do nothing else.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import processor_time

BUILD = Path(__file__).resolve().parents[2] / "build"
DEFAULT_LOOPS = [f"{size}x{count}" for size in (16, 64, 1024) for count in (1, 100, 5000)]
TARGET_NS = 0.15e9  # of processor time for one run: long enough for its start not to count


def run(options: argparse.Namespace, loop: tuple[int, int], pairs: int, every: int) -> float:
    """Processor time of one run in ns."""
    command = [str(options.program), *(str(number) for number in loop), str(pairs)]
    environment = {
        "PATH": "/usr/bin:/bin",
        "LD_PRELOAD": str(options.library),
        "HAKMEM_SAMPLE_BYTES": str(every),
        "HAKMEM_SAMPLE_RATE": str(options.rate),
    }
    return processor_time.of_command(command, environment) * 1e9


def measure(options: argparse.Namespace, loop: tuple[int, int]) -> tuple[float, float, float]:
    """ns for a call without sampling and with it, and the ratio."""
    pairs = 1_000_000
    once = run(options, loop, pairs, 0)
    pairs = max(loop[1], int(pairs * TARGET_NS / once))
    rounds = [
        [run(options, loop, pairs, every) / pairs / 2 for every in (0, options.every)]
        for _ in range(options.rounds)
    ]
    off, on = (statistics.median(column) for column in zip(*rounds))
    return off, on, statistics.median(with_it / without for without, with_it in rounds)


def loop_of(text: str) -> tuple[int, int]:
    size, _, count = text.partition("x")
    if not (size.isdecimal() and count.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text} is not BYTESxCOUNT, as 64x100")
    return int(size), int(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=Path, default=BUILD / "libhakmem.so")
    parser.add_argument("--program", type=Path, default=BUILD / "bench" / "micro" / "batch")
    parser.add_argument("--every", type=int, default=512 * 1024, help="option sample_bytes (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=2048, help="option sample_rate (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("loops", nargs="*", type=loop_of, metavar="BYTESxCOUNT")
    options = parser.parse_args()
    print("| loop | off, ns | on, ns | cost |\n|---|---:|---:|---:|")
    for size, count in options.loops or map(loop_of, DEFAULT_LOOPS):
        off, on, ratio = measure(options, (size, count))
        print(f"| {size} B, {count} at a time | {off:.2f} | {on:.2f} | {100 * (ratio - 1):+.1f} % |", flush=True)


if __name__ == "__main__":
    main()
