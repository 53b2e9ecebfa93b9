#!/usr/bin/env python3
"""Check a model of a protocol, tests/models/*.pml, in all its interleavings, with spin.

A model's head has a line for each other way to build it:

    // variant: NAME  what is different, and must hold as well
    // mutant: NAME   a mistake: spin must find that it breaks something

A model with an `ltl` claim is searched for endless runs that break it, in which no process that can go on is
passed over for ever (weak fairness); the others for a state that breaks an assertion, or in which no process can go on.

`// long search` in a model: it is compiled with optimisation, and states are stored uncompressed: faster, in more memory.

`// step NAME` in a model marks what the allocator's sources call `step NAME of MODEL.pml`; tools/gen_docs.py
compares the two, and lists them in docs/concurrency.md.

Exit code: 0 holds, and every mutant is refuted; 1 does not; 2 the model cannot be checked; 77 there is
no spin here.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

SKIPPED = 77
MEMORY_MB = 2000
DEPTH = 100_000
FAIR_PROCESSES = 3  # 30 processes at most, and the claim
# An assertion of memory.pml: a place has more values than the model has room for.
TOO_SMALL = re.compile(r"assertion violated \(count\[.*\]<\d+\)|max search depth too small")


class Broken(Exception):
    """The model cannot be judged."""


class Found(NamedTuple):
    """spin's result for one way to build a model."""

    states: int
    errors: int
    what: str


def ways(model: Path) -> list[tuple[str, str]]:
    """Each way to build it: what is expected of it, and its name ('' for the unchanged model)."""
    return [("holds", "")] + [
        ("refuted" if kind == "mutant" else "holds", name)
        for kind, name in re.findall(r"^// (variant|mutant): (\w+)", model.read_text(), re.M)
    ]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise Broken(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}")
    return done.stdout


def check(model: Path, name: str, build: Path) -> Found:
    folder = build / (name or "model")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run("spin", "-a", *([f"-D{name}"] if name else []), model, cwd=folder)
    # Without optimisation: most searches end within a second, and it would take longer to compile pan.c well.
    is_long = re.search(r"^// long search$", model.read_text(), re.M) is not None
    how = ["-O1"] if is_long else ["-DCOLLAPSE"]
    is_endless = re.search(r"^ltl ", model.read_text(), re.M) is not None
    kind = f"-DNFAIR={FAIR_PROCESSES}" if is_endless else "-DSAFETY"
    run("cc", "-w", kind, *how, f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c", cwd=folder)
    said = run("./pan", f"-m{DEPTH}", "-w22", *(["-a", "-f"] if is_endless else []), cwd=folder)
    (folder / "pan.log").write_text(said)
    counts = re.search(r"errors: (\d+)\s+(\d+) states, stored", said)
    if counts is None or TOO_SMALL.search(said) or "out of memory" in said:
        raise Broken(f"{model.stem} {name}: the model is too large or too small; see {folder}/pan.log")
    what = re.search(r"^pan:1: (.*) \(at depth", said, re.M)
    if what is None and "Search not completed" in said:
        raise Broken(f"{model.stem} {name}: not all was searched; see {folder}/pan.log")
    return Found(int(counts[2]), int(counts[1]), what[1] if what else "")


def judge(model: Path, build: Path) -> bool:
    good = True
    for expected, name in ways(model):
        found = check(model, name, build)
        outcome = "refuted" if found.errors else "holds"
        good &= outcome == expected
        print(f"{model.stem:<10} {name:<20} {outcome:<8} {found.states:>9,} states  {found.what}")
        if outcome != expected:
            print(f"{model.stem} {name}: should be: {expected}; the trail is in {build / (name or 'model')}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--build", type=Path, required=True, help="folder to build the checkers in")
    arguments = parser.parse_args()
    if shutil.which("spin") is None:
        print("run_model: no spin here; tools/setup test installs it", file=sys.stderr)
        return SKIPPED
    model = arguments.model.resolve()
    try:
        return 0 if judge(model, arguments.build.resolve() / model.stem) else 1
    except (OSError, Broken) as broken:
        print(f"run_model: {broken}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
