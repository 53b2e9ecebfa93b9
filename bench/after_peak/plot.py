#!/usr/bin/env python3
"""Draw a result of `hakmem bench --after-peak`: resident memory over time, one picture for each service, with all allocators.

    bench/after_peak/plot.py RESULT.json [FOLDER]     writes FOLDER/after-peak-SERVICE.svg (default: docs/pictures)

For each allocator the first run is drawn. Time starts when the service is full. Clients are not equally fast under all
allocators: between two moments time is stretched to the median of the runs, so that each moment is the same for all.
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
    """The moment of the common time that corresponds to `seconds` of this run."""
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
    # The text for what follows a moment starts at it.
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
