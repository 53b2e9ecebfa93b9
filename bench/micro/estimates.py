#!/usr/bin/env python3
"""Compares the estimates of sampling with what the program really does: its call sites in a recorded trace, which is exact.

    bench/micro/estimates.py [--every BYTES] [--runs N] [--hakmem FILE] -- PROGRAM [ARGUMENT]...

The program must do the same in each run. Sites are distinguished by their innermost functions. A realloc that leaves
its block in place counts in a trace but not in a profile: sites that call it are left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"
FRAMES = 5  # of a stack: the innermost ones, which name a site
ROWS = 12
MALLOC_FAMILY = ("malloc (", "calloc (", "realloc (", "operator new")


def run(command: list[str], **more) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode not in (0, 3):
        sys.exit(f"estimates: {' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def site_of(frames: list[str]) -> tuple[str, ...]:
    while frames and frames[0].startswith(MALLOC_FAMILY):
        frames = frames[1:]
    return tuple(frames[:FRAMES])


def exact_sites(options: argparse.Namespace, folder: Path) -> dict[tuple[str, ...], dict[str, float]]:
    """Bytes and blocks that each site allocates, and what it leaves."""
    trace = str(folder / "trace.hkt")
    run([options.hakmem, "record", "--stacks", "-o", trace, "--", *options.program])
    listed = json.loads(run([options.hakmem, "trace", "top-sites", "--json", "-n", "1000000", trace]))
    sites: dict = defaultdict(lambda: defaultdict(float))
    for one in listed:
        site = sites[site_of(one["frames"])]
        site["bytes"] += one["site"]["bytes"]
        site["blocks"] += one["site"]["count"]
        site["live"] += one["site"]["live_bytes"]
    return sites


def estimated_sites(options: argparse.Namespace, folder: Path) -> dict[tuple[str, ...], dict[str, float]]:
    saved = folder / "profile.json"
    command = [options.hakmem, "leaks", "--exit", "--every", str(options.every), "--save", str(saved)]
    run([*command, "--", *options.program])
    sites: dict = defaultdict(lambda: defaultdict(float))
    for one in json.loads(saved.read_text())["sites"]:
        site = sites[site_of(one["frames"])]
        site["bytes"] += one["allocated"]["bytes"]
        site["samples"] += one["allocated"]["samples"]
        site["live"] += one["live"]["bytes"]
        site["live_samples"] += one["live"]["samples"]
    return sites


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hakmem", default=str(BUILD / "hakmem"))
    parser.add_argument("--every", type=int, default=512 * 1024)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--without", default="realloc|resize|grow", help="leave out sites with these in their frames")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    skipped = options.without.split("|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exact = exact_sites(options, folder)
        runs = [estimated_sites(options, folder) for _ in range(options.runs)]
    exact = {site: figures for site, figures in exact.items()
             if not any(word in " ".join(site[:2]).lower() for word in skipped)}
    table(options, exact, runs)


def table(options: argparse.Namespace, exact: dict, runs: list[dict]) -> None:
    kib = 1024
    print("| allocated by | bytes a block | exact, KiB | estimated: mean | off | one run | ± |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    order = sorted(exact, key=lambda site: -exact[site]["bytes"])
    for site in order[:ROWS]:
        true = exact[site]["bytes"]
        found = [one[site]["bytes"] if site in one else 0.0 for one in runs]
        mean = statistics.mean(found)
        first = runs[0].get(site, defaultdict(float))
        within = 200 / math.sqrt(first["samples"]) if first["samples"] else float("nan")
        name = " < ".join(frame.split(" (")[0] for frame in site[:3])
        print(f"| {name} | {true / exact[site]['blocks']:.0f} | {true / kib:.0f} | {mean / kib:.0f} "
              f"| {100 * (mean / true - 1):+.1f} % | {first['bytes'] / kib:.0f} | {within:.0f} % |")
    for what, samples in (("bytes", "samples"), ("live", "live_samples")):
        true = sum(figures[what] for figures in exact.values())
        sums = [sum(one[site][what] for site in exact if site in one) for one in runs]
        near = all_of = 0
        for one in runs:
            for site, figures in exact.items():
                # Where so many samples are expected that a deviation is significant.
                if figures[what] >= 4 * options.every:
                    found = one.get(site, defaultdict(float))
                    off = 2 * figures[what] / math.sqrt(max(found[samples], 1))
                    near += abs(found[what] - figures[what]) <= off
                    all_of += 1
        name = "allocated" if what == "bytes" else "live at the end"
        deviation = statistics.stdev(sums) if len(sums) > 1 else 0
        print(f"\n{name}: exact {true / kib:.0f} KiB; {len(runs)} runs: mean {statistics.mean(sums) / kib:.0f} KiB, "
              f"deviation {deviation / kib:.0f} KiB; {near} of {all_of} sites within ±")


if __name__ == "__main__":
    main()
