#!/usr/bin/env python3
"""Measures what `hakmem top`, refreshed once a second, costs the process that it shows.

    bench/micro/looking.py [ROUNDS]

larson runs on one processor by itself and with top beside it, in turn. It prints the ratios of the calls in a
second, and the processor time of top itself. Nothing is judged; the machine must do nothing else.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import processor_time

BUILD = Path(__file__).resolve().parents[2] / "build"
HAKMEM = os.environ.get("HAKMEM", str(BUILD / "hakmem"))
SECONDS = 4
LARSON = [str(BUILD / "bench" / "larson"), str(SECONDS), "8", "1024", "10000", "1", "12345", "1"]


def run(is_looked_at: bool) -> tuple[float, float]:
    """Calls in a second, and the processor time of top in a second."""
    environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(BUILD / "libhakmem.so")}
    process = subprocess.Popen(LARSON, env=environment, stdout=subprocess.PIPE, text=True)
    spent = 0.0
    if is_looked_at:
        time.sleep(0.1)
        looks = [HAKMEM, "top", str(process.pid), "-n", str(SECONDS - 1)]
        spent = processor_time.of_command(looks, os.environ) / (SECONDS - 1)
    output, _ = process.communicate()
    found = re.search(r"ops/s: (\d+)", output)
    if process.returncode != 0 or found is None:
        sys.exit("looking: larson failed")
    return float(found[1]), spent


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ratios, spent = [], []
    for number in range(rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        results = {is_looked_at: run(is_looked_at) for is_looked_at in order}
        ratios.append(results[True][0] / results[False][0])
        spent.append(results[True][1])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"calls a second with top to those without: median {middle:.4f}, quartiles {low:.4f} to {high:.4f}, {rounds} pairs")
    print(f"processor time of top: {1000 * statistics.median(spent):.1f} ms a second")


if __name__ == "__main__":
    main()
