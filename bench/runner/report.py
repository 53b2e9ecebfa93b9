"""report -- the tables, as plain text or as Markdown, from a result document."""

from __future__ import annotations

import math
import statistics
from typing import Any

from . import summary
from .allocators import MEMORY_PEERS
from .summary import Ratio, Values

KIB_A_MIB = 1024
# Title, and the two variants whose reported throughput is divided.
SCALING = (
    ("slowdown from 256 to 8,192 live blocks", "random-mixed-256", "random-mixed-8192"),
    ("larson's throughput, 2 threads against 1", "larson-2", "larson-1"),
    ("larson's throughput, 4 threads against 1", "larson-4", "larson-1"),
)


def layout(rows: list[list[str]], markdown: bool) -> str:
    """Columns aligned: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(row: list[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        return f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip()

    lines = [line(row) for row in rows]
    if markdown:
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        lines.insert(1, f"| {' | '.join(rule)} |")
    return "\n".join(lines)


def heading(text: str, markdown: bool) -> str:
    return f"\n### {text}\n" if markdown else f"\n{text}\n"


def show_ratio(ratio: Ratio | None) -> str:
    return "-" if ratio is None else f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def ours_in(document: dict[str, Any]) -> list[str]:
    return [name for name in document["allocators"] if summary.is_ours(name)]


def value_table(document: dict[str, Any], values: Values, scale: float, digits: int,
                markdown: bool) -> str:
    """Medians of one metric; a `~` marks a noisy one, a `*` the lowest of the row."""
    names = list(document["allocators"])
    ours = ours_in(document)
    header = ["workload", *names]
    header += ["best peer", f"{ours[0]} / best", "95 %"] if ours else []
    rows = [header]
    for variant, samples in values.items():
        medians = summary.medians({variant: samples})[variant]
        lowest = min(medians.values(), default=math.nan)
        row = [variant]
        for name in names:
            if name not in medians:
                row.append("-")
                continue
            mark = "~" if summary.spread(samples[name]) > summary.NOISY_SPREAD else ""
            mark += "*" if medians[name] == lowest else ""
            row.append(f"{mark}{medians[name] * scale:.{digits}f}")
        row += ratio_cells(variant, samples, medians, ours)
        rows.append(row)
    return layout(rows, markdown)


def ratio_cells(variant: str, samples: dict[str, list[float]], medians: dict[str, float],
                ours: list[str]) -> list[str]:
    if not ours:
        return []
    best = summary.best_peer(medians)
    if best is None or ours[0] not in medians or medians[best] == 0:
        return [best or "-", "-", ""]
    ratio = summary.ratio(samples[ours[0]], samples[best], f"{variant} {best}")
    return [best, f"{ratio.value:.3f}", f"{ratio.low:.3f}-{ratio.high:.3f}"]


def means_table(document: dict[str, Any], metrics: dict[str, Values], markdown: bool) -> str:
    """Geometric means against the best of each workload."""
    means = {title: summary.means_against_best(values) for title, values in metrics.items()}
    rows = [["geometric mean against the best of each", *metrics, "workloads"]]
    for name in document["allocators"]:
        counted = [means[title].get(name, (math.nan, 0)) for title in metrics]
        rows.append([name, *(f"{value:.3f}" if count else "-" for value, count in counted),
                     str(counted[0][1])])
    return layout(rows, markdown)


def goal_lines(document: dict[str, Any], time: Values, memory: Values) -> list[str]:
    """The figures that the project's goals are stated in."""
    lines = []
    for ours in ours_in(document):
        fastest = summary.best_single_peer(time)
        smallest = summary.best_single_peer(memory, MEMORY_PEERS)
        if fastest:
            lines.append(f"{ours}: time against the best single peer ({fastest}): "
                         f"{show_ratio(summary.mean_ratio(time, ours, fastest))}")
        if smallest:
            lines.append(f"{ours}: peak memory against the best of {', '.join(MEMORY_PEERS)} "
                         f"({smallest}): {show_ratio(summary.mean_ratio(memory, ours, smallest))}")
    return lines


def scaling_table(document: dict[str, Any], markdown: bool) -> str:
    """How throughput changes with the working set and with threads; empty when not run."""
    speeds: dict[tuple[str, str], list[float]] = {}
    for one in document["samples"]:
        if "ops/s" in one["reported"]:
            key = (one["variant"], one["allocator"])
            speeds.setdefault(key, []).append(one["reported"]["ops/s"])
    names = list(document["allocators"])
    rows = [["scaling", *names]]
    for title, upper, lower in SCALING:
        row = [title]
        for name in names:
            pair = [speeds.get((variant, name)) for variant in (upper, lower)]
            row.append("-" if None in pair else "{:.2f}".format(
                statistics.median(pair[0] or []) / statistics.median(pair[1] or [])))
        if set(row[1:]) != {"-"}:
            rows.append(row)
    return layout(rows, markdown) if len(rows) > 1 else ""


def reported_table(document: dict[str, Any], variant: str, markdown: bool) -> str:
    """What a latency workload measured itself."""
    samples = [one for one in document["samples"] if one["variant"] == variant]
    keys = list(dict.fromkeys(key for one in samples for key in one["reported"]))
    names = [name for name in document["allocators"]
             if any(one["allocator"] == name for one in samples)]
    rows = [[variant, *names]]
    for key in keys:
        row = [key]
        for name in names:
            numbers = [one["reported"][key] for one in samples
                       if one["allocator"] == name and key in one["reported"]]
            row.append(f"{statistics.median(numbers):g}" if numbers else "-")
        rows.append(row)
    return layout(rows, markdown)


def identity_lines(document: dict[str, Any]) -> list[str]:
    machine = document["machine"]
    lines = [
        f"machine   {machine['cpu']}, {machine['usable_cpus']} CPUs, "
        f"{machine['memory_kib'] // (KIB_A_MIB * KIB_A_MIB)} GiB, {machine['system']}, "
        f"kernel {machine['kernel']}, huge pages {machine['transparent_huge_pages']}",
        f"commit    {document['commit']}, {document['started']}, "
        f"{document['settings']['runs']} runs each"
        + (", QUICK: no measurement" if document["settings"]["quick"] else "")
        + ("" if "finished" in document else ", UNFINISHED"),
    ]
    for name, one in document["allocators"].items():
        source = one["library"] or "the C library's own"
        lines.append(f"{name:<9} {one['version']}  {source}  {one['sha256'][:16]}")
    return lines


def render(document: dict[str, Any], markdown: bool = False) -> str:
    """The whole report."""
    time = summary.values_of(document, "wall_s")
    cpu = summary.values_of(document, "cpu_s")
    memory = summary.values_of(document, "peak_kib")
    counted = {title: summary.in_means(document, values)
               for title, values in (("time", time), ("CPU", cpu), ("memory", memory))}
    identity = "\n".join(identity_lines(document))
    parts = [f"```\n{identity}\n```" if markdown else identity]
    parts.append(heading("Time, ms (median; * best, ~ noisy)", markdown))
    parts.append(value_table(document, counted["time"], 1000, 1, markdown))
    parts.append(heading("CPU time, ms", markdown))
    parts.append(value_table(document, counted["CPU"], 1000, 1, markdown))
    parts.append(heading("Peak memory (VmHWM), MiB", markdown))
    parts.append(value_table(document, counted["memory"], 1 / KIB_A_MIB, 1, markdown))
    if document["settings"].get("real"):
        tree = summary.values_of(document, "tree_peak_kib")
        parts.append(heading("Peak memory of all processes that live at one time, MiB", markdown))
        parts.append(value_table(document, tree, 1 / KIB_A_MIB, 1, markdown))
    for variant, entry in document["variants"].items():
        if entry["group"] == "latency":
            parts.append(heading(f"Latency: {entry['about']}", markdown))
            parts.append(reported_table(document, variant, markdown))
    parts.append(heading("Means", markdown))
    parts.append(means_table(document, counted, markdown))
    scaling = scaling_table(document, markdown)
    parts += [heading("Scaling", markdown), scaling] if scaling else []
    bullet = "- " if markdown else ""
    goals = goal_lines(document, counted["time"], counted["memory"])
    parts.append("\n" + "\n".join(bullet + line for line in goals))
    warnings = [f"refused: {one['variant']} under {one['allocator']}: {one['reason']}"
                for one in document["refused"]]
    warnings += [f"noise: {line}" for line in summary.noisy(document)]
    if warnings:
        parts.append(heading("To be read before any figure is quoted", markdown))
        parts.append("\n".join(bullet + line for line in warnings))
    return "\n".join(parts) + "\n"
