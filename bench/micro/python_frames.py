#!/usr/bin/env python3
"""What a sample costs with the frames of a Python program, in instructions: the same program at several depths.

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

PROGRAM = """
import sys
def down(depth, count):
    if depth:
        return down(depth - 1, count)
    for _ in range(count):
        bytes(2000)
down(int(sys.argv[1]), int(sys.argv[2]))
"""
FUNCTIONS = ("hak_hook_taken", "hak_python_add")
FEW, MANY = 2000, 12000


def instructions(arguments: argparse.Namespace, depth: int, count: int, folder: Path) -> dict[str, int]:
    """Of each of FUNCTIONS, with what it calls."""
    profile = folder / "callgrind.out"
    environment = os.environ | {"LD_PRELOAD": str(arguments.library.resolve()), "HAKMEM_SAMPLE_BYTES": "1"}
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
    command += [arguments.python, "-c", PROGRAM, str(depth), str(count)]
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
    print("| Python frames | a sample | of these, for Python |\n|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for depth in arguments.depths:
            few = instructions(arguments, depth, FEW, Path(folder))
            many = instructions(arguments, depth, MANY, Path(folder))
            whole, python = ((many[function] - few[function]) / (MANY - FEW) for function in FUNCTIONS)
            print(f"| {depth + 2} | {whole:,.0f} | {python:,.0f} |")


if __name__ == "__main__":
    main()
