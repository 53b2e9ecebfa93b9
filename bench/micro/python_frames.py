#!/usr/bin/env python3
"""What a sample costs with the frames of a Python program, in instructions: two programs at several depths. In one all frames are
of a function that calls itself, in the other each is of a function of its own.

    python_frames.py LIBRARY [--python PYTHON] [DEPTH …]

Runs valgrind's callgrind, which counts no system calls; of those there are as many with Python frames as without.
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
def down(depth, count):
    if depth:
        return down(depth - 1, count)
    for _ in range(count):
        bytes(2000)
down(int(sys.argv[1]), int(sys.argv[2]))
"""
MANY_FUNCTIONS = """
import sys
depth = int(sys.argv[1])
source = "def f0(count):\\n for _ in range(count):\\n  bytes(2000)\\n"
for i in range(depth):
    source += f"def f{i + 1}(count):\\n return f{i}(count)\\n"
exec(source)
globals()[f"f{depth}"](int(sys.argv[2]))
"""
FUNCTIONS = ("hak_hook_taken", "hak_python_add")
FEW, MANY = 1000, 6000


def instructions(arguments: argparse.Namespace, program: str, depth: int, count: int, folder: Path) -> dict[str, int]:
    """Of each of FUNCTIONS, with what it calls."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--python", default="python3")
    parser.add_argument("depths", type=int, nargs="*", default=[0, 10, 30, 60, 120], metavar="DEPTH")
    arguments = parser.parse_args()
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


if __name__ == "__main__":
    main()
