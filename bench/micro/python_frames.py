#!/usr/bin/env python3
"""What a sample with the frames of a Python program costs: two programs at several depths. In one all frames are of a function that
calls itself, in the other each frame is of another function.

    python_frames.py LIBRARY [--python PYTHON] [DEPTH …]          in instructions
    python_frames.py LIBRARY --time [--python PYTHON] [DEPTH …]   in time, on a machine that does nothing else

Instructions are those of valgrind's callgrind, which counts no system calls; there are as many of those with Python frames as without.

Time is the processor time for one allocation in a loop in which each one is a sample, less that of the same loop without
sampling: the sample, and its lookup when the block is freed. Each is the least of some rounds, taken in turn. An interpreter whose
frames are not read (`--python python3.10`) shows what a sample costs without them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

ONE_FUNCTION = """
import sys
from time import thread_time_ns as now
def down(depth, count):
    if depth:
        return down(depth - 1, count)
    start = now()
    for _ in range(count):
        bytes(2000)
    return now() - start
print(down(int(sys.argv[1]), int(sys.argv[2])))
"""
MANY_FUNCTIONS = """
import sys
from time import thread_time_ns as now
depth = int(sys.argv[1])
source = "def f0(count):\\n start = now()\\n for _ in range(count):\\n  bytes(2000)\\n return now() - start\\n"
for i in range(depth):
    source += f"def f{i + 1}(count):\\n return f{i}(count)\\n"
exec(source)
print(globals()[f"f{depth}"](int(sys.argv[2])))
"""
FUNCTIONS = ("hak_hook_taken", "hak_python_add")
FEW, MANY = 1000, 6000
ROUNDS, TIMED = 9, 100000


def instructions(arguments: argparse.Namespace, program: str, depth: int, count: int, folder: Path) -> dict[str, int]:
    """Instructions of each of FUNCTIONS, including what it calls."""
    profile = folder / "callgrind.out"
    environment = os.environ | {"LD_PRELOAD": str(arguments.library.resolve()), "HAKMEM_SAMPLE_BYTES": "1"}
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
    command += [arguments.python, "-c", program, str(depth), str(count)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    report = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", profile], check=True, capture_output=True, text=True
    ).stdout
    found = {}
    for function in FUNCTIONS:
        match = re.search(rf"^\s*([\d,]+) .*\.c:{function} ", report, re.M)
        found[function] = int(match.group(1).replace(",", "")) if match else 0
    return found


def nanoseconds(arguments: argparse.Namespace, program: str, depth: int) -> float:
    """The time of one sample."""
    least = {}
    for _ in range(ROUNDS):
        for every in ("0", "1"):
            environment = os.environ | {"LD_PRELOAD": str(arguments.library.resolve()), "HAKMEM_SAMPLE_BYTES": every}
            command = [arguments.python, "-c", program, str(depth), str(TIMED)]
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            least[every] = min(int(done.stdout), least.get(every, 1 << 60))
    return (least["1"] - least["0"]) / TIMED


def print_times(arguments: argparse.Namespace) -> None:
    print("| Python frames | a sample, one function, ns | a sample, many functions, ns |")
    print("|---:|---:|---:|")
    for depth in arguments.depths:
        times = [nanoseconds(arguments, program, depth) for program in (ONE_FUNCTION, MANY_FUNCTIONS)]
        print(f"| {depth + 2} | {times[0]:,.0f} | {times[1]:,.0f} |", flush=True)


def print_instructions(arguments: argparse.Namespace) -> None:
    print("| Python frames | a sample, one function | of these, for Python | a sample, many functions | of these, for Python |")
    print("|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for depth in arguments.depths:
            row = [depth + 2]
            for program in (ONE_FUNCTION, MANY_FUNCTIONS):
                few = instructions(arguments, program, depth, FEW, Path(folder))
                many = instructions(arguments, program, depth, MANY, Path(folder))
                row += [(many[function] - few[function]) / (MANY - FEW) for function in FUNCTIONS]
            print(" | ".join(["", *(f"{figure:,.0f}" for figure in row), ""]).strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("depths", type=int, nargs="*", default=[0, 10, 30, 60, 120], metavar="DEPTH")
    arguments = parser.parse_intermixed_args()
    (print_times if arguments.time else print_instructions)(arguments)


if __name__ == "__main__":
    main()
