#!/usr/bin/env python3
"""Draw a result of `hakmem bench --day`: resident memory over the day, all allocators, and what the program holds.

    bench/day/plot.py RESULT.json [FOLDER]     writes FOLDER/service-day.svg (default: docs/pictures)

For each allocator the first run is drawn. What the program holds is the same under all of them: it is measured here, in a
separate run, which takes as long as the day.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import plot  # noqa: E402

HOURS = 24
POINTS = 240
NAME = "service-day"


def held(arguments: list[str], hour_s: float) -> plot.Points:
    """MiB that the program holds, by the hour."""
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run([ROOT / "build/bench/service_day", *arguments, "1", file.name], check=True, stdout=subprocess.DEVNULL)
        lines = [[float(field) for field in line.split()] for line in file]
    every = max(len(lines) // POINTS, 1)
    return [(seconds / hour_s, live) for seconds, live, _ in lines[::every]]


def main() -> None:
    document, folder = plot.result_and_folder(__doc__)
    declared = tomllib.loads((ROOT / "bench/day/service_day.toml").read_text())
    arguments = next(variant["args"] for variant in declared["variant"] if variant["name"] == NAME)
    hour_s = int(arguments[1]) / 1000
    curves: dict[str, plot.Points] = {}
    for sample in document["samples"]:
        if sample["variant"] == NAME:
            points = [(seconds / hour_s, kib / 1024) for seconds, kib in sample["timeline"]]
            curves.setdefault(sample["allocator"], [point for point in points if point[0] <= HOURS])
    curves["held"] = held(arguments, hour_s)
    path = folder / "service-day.svg"
    path.write_text(
        plot.over_time(
            "A service's day: resident memory, MiB",
            "hours; held: what the program has asked for and not freed",
            curves,
            [],
            lambda value: f"{value:,.0f}",
        )
    )
    print(path)


main()
