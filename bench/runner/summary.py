"""summary -- numbers from a result document; pure functions, nothing is printed.

A figure of a variant under an allocator is the median over its samples. Ratios have
a 95 % interval from resampling both sides (bootstrap) with a fixed seed, so that the
same file always gives the same table.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

RESAMPLES = 1000
SEED = 20
# Beyond this spread (half the samples lie within it) a difference of a few percent means nothing.
NOISY_SPREAD = 0.05
# CPU time of others during a run, as a part of the run, that is worth a warning.
BUSY_PART = 0.10

Values = dict[str, dict[str, list[float]]]  # variant -> allocator -> samples


@dataclass
class Ratio:
    value: float
    low: float
    high: float


def is_ours(name: str) -> bool:
    return name == "hakmem" or name.startswith("hakmem+")


def values_of(document: dict[str, Any], metric: str) -> Values:
    """All samples of one metric, in the document's order of variants and allocators."""
    values: Values = {
        variant: {allocator: [] for allocator in document["allocators"]}
        for variant in document["variants"]
    }
    for sample in document["samples"]:
        values[sample["variant"]][sample["allocator"]].append(sample[metric])
    return {
        variant: {allocator: samples for allocator, samples in row.items() if samples}
        for variant, row in values.items()
    }


def in_means(document: dict[str, Any], values: Values) -> Values:
    """Without the variants whose result is a latency."""
    return {variant: row for variant, row in values.items()
            if document["variants"][variant]["group"] != "latency"}


def medians(values: Values) -> dict[str, dict[str, float]]:
    return {variant: {allocator: statistics.median(samples) for allocator, samples in row.items()}
            for variant, row in values.items()}


def geometric_mean(numbers: Iterable[float]) -> float:
    logs = [math.log(number) for number in numbers]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def spread(samples: list[float]) -> float:
    """The distance between the quartiles, as a part of the median."""
    if len(samples) < 3 or statistics.median(samples) == 0:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / statistics.median(samples)


def best_peer(row: dict[str, float]) -> str | None:
    peers = {name: value for name, value in row.items() if not is_ours(name)}
    return min(peers, key=lambda name: peers[name]) if peers else None


def interval(draw: Callable[[random.Random], float], seed_text: str) -> tuple[float, float]:
    generator = random.Random(f"{SEED} {seed_text}")
    drawn = sorted(draw(generator) for _ in range(RESAMPLES))
    return drawn[int(RESAMPLES * 0.025)], drawn[int(RESAMPLES * 0.975) - 1]


def resampled_median(generator: random.Random, samples: list[float]) -> float:
    return statistics.median(generator.choices(samples, k=len(samples)))


def ratio(ours: list[float], theirs: list[float], seed_text: str) -> Ratio:
    low, high = interval(
        lambda generator: resampled_median(generator, ours) / resampled_median(generator, theirs),
        seed_text,
    )
    return Ratio(statistics.median(ours) / statistics.median(theirs), low, high)


def mean_ratio(values: Values, ours: str, peer: str) -> Ratio | None:
    """The geometric mean, over the variants that both finished, of ours against one peer."""
    rows = [row for row in values.values() if ours in row and peer in row]
    if not rows:
        return None
    value = geometric_mean(
        statistics.median(row[ours]) / statistics.median(row[peer]) for row in rows
    )
    low, high = interval(
        lambda generator: geometric_mean(
            resampled_median(generator, row[ours]) / resampled_median(generator, row[peer])
            for row in rows
        ),
        f"{ours} {peer}",
    )
    return Ratio(value, low, high)


def means_against_best(values: Values) -> dict[str, tuple[float, int]]:
    """For each allocator: geometric mean of its medians against the best of each variant,
    ours included, and over how many variants."""
    table = medians(values)
    names = list(dict.fromkeys(name for row in table.values() for name in row))
    result = {}
    for name in names:
        factors = [row[name] / min(row.values()) for row in table.values() if name in row]
        result[name] = (geometric_mean(factors), len(factors))
    return result


def best_single_peer(values: Values, among: Iterable[str] | None = None) -> str | None:
    """The peer with the lowest geometric mean over the variants that all such peers finished."""
    table = medians(values)
    names = {name for row in table.values() for name in row if not is_ours(name)}
    names = names & set(among) if among is not None else names
    common = [row for row in table.values() if names <= set(row)]
    if not names or not common:
        return None
    return min(sorted(names), key=lambda name: geometric_mean(row[name] for row in common))


def noisy(document: dict[str, Any]) -> list[str]:
    """What speaks against trusting small differences in this document."""
    lines = []
    for variant, row in values_of(document, "wall_s").items():
        loud = {name: spread(samples) for name, samples in row.items()
                if spread(samples) > NOISY_SPREAD}
        if loud:
            lines.append(f"{variant}: spread of time "
                         + ", ".join(f"{name} {part:.0%}" for name, part in loud.items()))
    busy = [sample for sample in document["samples"]
            if sample["other_cpu_s"] > 0.05 + BUSY_PART * sample["wall_s"]]
    if busy:
        lines.append(f"other programs took CPU time during {len(busy)} of "
                     f"{len(document['samples'])} runs")
    return lines
