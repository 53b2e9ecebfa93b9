#!/usr/bin/env python3
"""Draw a result of `hakmem bench --after-peak`: resident memory over time, all allocators in a picture for each service.

    bench/after_peak/plot.py RESULT.json [FOLDER]     writes FOLDER/after-peak-SERVICE.svg (default: docs/pictures)

Of each allocator it is the first run. Time begins when the service is full. Clients are not equally fast under all
allocators: between two moments time is stretched to the median of the runs, so that the same happens to all at once.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import plot  # noqa: E402

BEFORE_S = 5


def moments_of(sample: dict) -> list[float]:
    return [seconds for seconds, _ in sample["moments"].values()]


def stretched(seconds: float, own: list[float], common: list[float]) -> float:
    """The moment of the common time at which this run was so far."""
    after = next((at for at in range(1, len(own)) if seconds <= own[at]), len(own) - 1)
    if seconds <= own[0]:
        return common[0] + seconds - own[0]
    part = (seconds - own[after - 1]) / (own[after] - own[after - 1])
    return common[after - 1] + part * (common[after] - common[after - 1])


def curve(sample: dict, common: list[float]) -> plot.Points:
    """Resident MiB over time."""
    own = moments_of(sample)
    points = [(stretched(seconds, own, common), kib / 1024) for seconds, kib in sample["timeline"] if seconds <= own[-1]]
    return [point for point in points if point[0] >= -BEFORE_S]


def picture(document: dict, service: str) -> str:
    runs: dict[str, dict] = {}
    for sample in document["samples"]:
        if sample["variant"] == service:
            runs.setdefault(sample["allocator"], sample)
    since_full = [[at - moments_of(run)[0] for at in moments_of(run)] for run in runs.values()]
    common = [statistics.median(ends) for ends in zip(*since_full, strict=True)]
    # What follows a moment begins there.
    marks = list(zip(common, ["nine tenths go", "the rest goes"], strict=False))
    return plot.over_time(
        f"{service}: resident memory, MiB",
        f"seconds; {document['variants'][service]['about']}",
        {name: curve(run, common) for name, run in runs.items()},
        marks,
        lambda value: f"{value:,.0f}",
    )


def main() -> None:
    document, folder = plot.result_and_folder(__doc__)
    measured = {sample["variant"] for sample in document["samples"]}
    for service in (name for name in document["variants"] if name in measured):
        path = folder / f"after-peak-{service}.svg"
        path.write_text(picture(document, service))
        print(path)


main()
