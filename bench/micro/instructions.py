#!/usr/bin/env python3
"""Counts user instructions of a malloc + free pair, the call through the PLT included.

Each program of this folder runs under callgrind at n and 2n pairs, around malloc and free and
around calls that do nothing. The difference between n and 2n removes the program's start; the
loop around calls that do nothing, less those calls themselves, is the loop's own cost.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
KIB = 1024
# One instruction each: the loop has the calls of malloc and of free in both kinds of run.
CALLS_IN_LOOP = 2


@dataclass(frozen=True)
class Case:
    """One column of the table: a program, its arguments before n, and n."""

    name: str
    program: str
    arguments: tuple[str, ...]
    pairs: int


def pair_case(name: str, size: int, pairs: int) -> Case:
    return Case(name, "pair", (str(size),), pairs)


# Fewer pairs of large blocks: some allocators make a system call for each, which is slow here.
CASES = (
    pair_case("16 B", 16, 20000),
    pair_case("64 B", 64, 20000),
    pair_case("1 KiB", KIB, 20000),
    Case("ring", "ring", (), 100000),
    pair_case("32 KiB", 32 * KIB, 10000),
    pair_case("256 KiB", 256 * KIB, 5000),
    pair_case("1 MiB", KIB * KIB, 3000),
    pair_case("4 MiB", 4 * KIB * KIB, 3000),
    Case("16 B x 100", "batch", ("16", "100"), 20000),
    Case("calloc 64 B", "calloc_pair", ("64",), 20000),
)


class MeasureError(Exception):
    """A count that could not be taken, explained in one line."""


@dataclass(frozen=True)
class Count:
    total: int  # instructions of the whole run
    idle: int  # of them, inside the calls that do nothing


def read_profile(text: str) -> Count:
    """Reads callgrind's output: the total, and the self cost of the functions idle_*."""
    total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
    if total is None:
        raise MeasureError("callgrind has written no total")
    names: dict[str, str] = {}
    idle = 0
    is_idle = False
    is_called_cost = False
    for line in text.splitlines():
        function = re.match(r"fn=\((\d+)\)(?: (.*))?$", line)
        called = re.match(r"cfn=\((\d+)\) (.*)$", line)
        if function:
            if function[2] is not None:
                names[function[1]] = function[2]
            is_idle = names.get(function[1], "").startswith("idle_")
        elif called:
            names[called[1]] = called[2]
        elif line.startswith("calls="):
            is_called_cost = True  # the next line is the cost of the called function
        elif re.match(r"[+\-*\d]", line):
            if is_idle and not is_called_cost:
                idle += int(line.split()[1])
            is_called_cost = False
    return Count(int(total[1]), idle)


def count_run(command: list[str], preload: Path | None) -> Count:
    """Runs `command` under callgrind; the preloaded library must really have run."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "profile"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *command],
            env=environment, capture_output=True, text=True, check=False,
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise MeasureError(f"{' '.join(command)}: exit code {done.returncode}: {last}")
        text = output.read_text()
    if preload is not None and f" {preload}\n" not in text:
        raise MeasureError(f"{preload} has not run in {' '.join(command)}")
    return read_profile(text)


def count_per_pair(folder: Path, case: Case, preload: Path | None, idle: bool) -> tuple[float, float]:
    """Instructions for each pair, in total and inside the calls that do nothing."""
    counts = []
    for pairs in (case.pairs, 2 * case.pairs):
        command = [str(folder / case.program), *case.arguments, str(pairs)]
        counts.append(count_run(command + ["idle"] if idle else command, preload))
    total = (counts[1].total - counts[0].total) / case.pairs
    return total, (counts[1].idle - counts[0].idle) / case.pairs


def loop_cost(folder: Path, case: Case) -> float:
    """The loop's instructions for each pair, without the two calls."""
    total, idle = count_per_pair(folder, case, None, idle=True)
    if idle <= 0:
        raise MeasureError(f"{case.program}: callgrind has not seen the calls that do nothing")
    return total - idle - CALLS_IN_LOOP


def parse_library(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not name or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text} is not name=path of a library")
    return name, Path(path).resolve()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=HERE.parents[1] / "build" / "bench" / "micro",
                        help="folder of the built programs (default: build/bench/micro)")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES],
                        help="count only this column; may be given more than once")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("libraries", nargs="*", type=parse_library, metavar="name=path",
                        help="allocators to preload; glibc is always counted")
    return parser.parse_args()


def measure(options: argparse.Namespace, cases: list[Case]) -> dict[str, dict[str, float]]:
    """Instructions for each pair, by allocator and case."""
    libraries: list[tuple[str, Path | None]] = [("glibc", None), *options.libraries]
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        loops = [pool.submit(loop_cost, options.bin, case) for case in cases]
        totals = {
            name: [pool.submit(count_per_pair, options.bin, case, path, False) for case in cases]
            for name, path in libraries
        }
        return {
            name: {
                case.name: round(total.result()[0] - loop.result(), 1)
                for case, loop, total in zip(cases, loops, row)
            }
            for name, row in totals.items()
        }


def print_table(table: dict[str, dict[str, float]], cases: list[Case]) -> None:
    print("instructions of a malloc + free pair, call included")
    print(f"{'':12}" + "".join(f"{case.name:>12}" for case in cases))
    for name, row in table.items():
        print(f"{name:12}" + "".join(f"{row[case.name]:12.1f}" for case in cases))


def main() -> int:
    options = parse_arguments()
    cases = [case for case in CASES if options.case is None or case.name in options.case]
    if shutil.which("valgrind") is None:
        print("instructions: valgrind is not installed", file=sys.stderr)
        return 1
    try:
        table = measure(options, cases)
    except (MeasureError, OSError) as error:
        print(f"instructions: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(table, indent=2))
    else:
        print_table(table, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
