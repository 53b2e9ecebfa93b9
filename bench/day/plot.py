#!/usr/bin/env python3
"""Draw a result of `hakmem bench --day`: resident memory over the day, all allocators, and what the program holds.

    bench/day/plot.py RESULT.json [FOLDER]     writes FOLDER/service-day.svg (default: docs/pictures)

Of each allocator it is the first run. What the program holds is the same under all of them: it is measured here, in a
run of its own, which takes as long as the day.
"""

from __future__ import annotations

import json
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
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip().replace("\n\n", "\n", 1) if len(sys.argv) == 1 else "plot.py: RESULT.json [FOLDER]")
    document = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "docs/pictures"
    declared = tomllib.loads((ROOT / "bench/day/service_day.toml").read_text())
    arguments = next(variant["args"] for variant in declared["variant"] if variant["name"] == NAME)
    hour_s = int(arguments[1]) / 1000
    curves: dict[str, plot.Points] = {}
    for sample in document["samples"]:
        if sample["variant"] == NAME:
            points = [(seconds / hour_s, kib / 1024) for seconds, kib in sample["timeline"]]
            curves.setdefault(sample["allocator"], [point for point in points if point[0] <= HOURS])
    curves["held"] = held(arguments, hour_s)
    folder.mkdir(parents=True, exist_ok=True)
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
