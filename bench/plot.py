"""Plots as SVG: a line for each allocator, named where it ends."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

WIDTH, HEIGHT = 640, 380
AXIS_MOST = 88  # characters of the axis's text that fit
LEFT, RIGHT, TOP, BOTTOM = 78, 104, 40, 56
APART = 13  # pixels between two names, at least

# People who do not see all colours can distinguish these, too (Okabe and Ito's).
COLOURS = {
    "hakmem": "#d55e00",
    "glibc": "#000000",
    "mimalloc2": "#0072b2",
    "mimalloc3": "#56b4e9",
    "snmalloc": "#009e73",
    "jemalloc": "#cc79a7",
    "tcmalloc": "#c99700",
    "rpmalloc": "#808080",
}
OTHERS = ("#6a3d9a", "#8c564b", "#1b7837", "#b2182b")

Points = list[tuple[float, float]]


def result_and_folder(usage: str) -> tuple[dict, Path]:
    """The arguments of a script that draws a result: RESULT.json [FOLDER]. Creates the folder."""
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(usage.strip().replace("\n\n", "\n", 1) if len(sys.argv) == 1 else "plot.py: RESULT.json [FOLDER]")
    folder = Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "docs/pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return json.loads(Path(sys.argv[1]).read_text()), folder


def colour(name: str, number: int) -> str:
    return COLOURS.get(name, OTHERS[number % len(OTHERS)])


class Axis:
    """Maps a value to pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
        numbers = range(math.ceil(self.low / step), math.floor(self.high / step) + 1)
        return [number * step for number in numbers]


class LogAxis(Axis):
    """Maps the logarithm of a value to pixels."""

    def __init__(self, low: float, high: float, start: float, end: float, least_decades: float) -> None:
        missing = max(least_decades - math.log10(high / low), 0)
        super().__init__(math.log10(low) - missing / 2, math.log10(high) + missing / 2, start, end)

    def at(self, value: float) -> float:
        return super().at(math.log10(value))

    def ticks(self) -> list[float]:
        steps = (1, 2, 5) if self.high - self.low < 2.2 else (1,)
        exponents = range(math.floor(self.low), math.ceil(self.high) + 1)
        every = 1 + len(exponents) // 8
        values = [step * 10.0**n for n in exponents if n % every == 0 for step in steps]
        return [value for value in values if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9]


def apart(wanted: list[tuple[float, str]]) -> dict[str, float]:
    """The places of the names: as near as possible to the ends of their lines, without overlap."""
    places = sorted(wanted)
    heights = [height for height, _ in places]
    for _ in range(200):
        for i in range(len(heights) - 1):
            overlap = APART - (heights[i + 1] - heights[i])
            if overlap > 0.01:
                heights[i] -= overlap / 2
                heights[i + 1] += overlap / 2
    heights[0] = max(heights[0], TOP)
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + APART)
    heights[-1] = min(heights[-1], HEIGHT - BOTTOM)
    for i in reversed(range(len(heights) - 1)):
        heights[i] = min(heights[i], heights[i + 1] - APART)
    return {name: height for height, (_, name) in zip(heights, places, strict=True)}


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, more: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {more}/>'


def grid(x: Axis, y: Axis, xs: list[float], x_text: Callable, y_text: Callable) -> list[str]:
    parts = []
    for value in y.ticks():
        parts.append(line(LEFT, y.at(value), WIDTH - RIGHT, y.at(value), 'stroke="#e2e2e2"'))
        parts.append(text(LEFT - 6, y.at(value) + 4, y_text(value), 'text-anchor="end"'))
    last = -100.0
    for value in xs:
        parts.append(line(x.at(value), TOP, x.at(value), HEIGHT - BOTTOM, 'stroke="#eeeeee"'))
        if x.at(value) - last >= 46:
            parts.append(text(x.at(value), HEIGHT - BOTTOM + 16, x_text(value), 'text-anchor="middle"'))
            last = x.at(value)
    return parts


def curve(
    name: str, points: Points, x: Axis, y: Axis, stroke: str, height: float, dotted: bool, was_cut: bool
) -> list[str]:
    is_ours = name == "hakmem"
    path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in points)
    dashes = ' stroke-dasharray="6 3"' if name == "glibc" else ""
    parts = [
        f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{3 if is_ours else 1.6}"'
        f' stroke-linejoin="round"{dashes}/>'
    ]
    if dotted:
        radius = 3.6 if is_ours else 2.4
        parts += [f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="{radius}" fill="{stroke}"/>' for a, b in points]
    end_x, end_y = x.at(points[-1][0]), y.at(points[-1][1])
    edge = WIDTH - RIGHT + 16
    if was_cut:
        parts.append(text(end_x + 5, end_y + 6, "×", f'font-size="20" fill="{stroke}"'))
    parts.append(line(end_x + (18 if was_cut else 5), end_y, edge - 3, height, f'stroke="{stroke}" stroke-width="0.7" stroke-dasharray="1 2"'))
    weight = ' font-weight="bold"' if is_ours else ""
    parts.append(text(edge, height + 4, name, f'fill="{stroke}"{weight}'))
    return parts


def ordered(lines: dict[str, Points]) -> list[str]:
    """Ours last, on top of the others."""
    return sorted(lines, key=lambda name: name == "hakmem")


def axis_text(axis: str) -> str:
    """The text below the plot; a long one is smaller, so that it fits into the picture."""
    if len(axis) <= AXIS_MOST:
        return text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, axis, 'text-anchor="middle"')
    return text(WIDTH / 2, HEIGHT - 14, axis, f'text-anchor="middle" font-size="{12 * AXIS_MOST / len(axis):.1f}"')


def frame(title: str, axis: str, content: list[str]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12" fill="#222222">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(LEFT, 22, title, 'font-size="15" font-weight="bold"'),
        axis_text(axis),
        *content,
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def log_log(
    title: str, axis: str, lines: dict[str, Points], cut: set[str], x_text: Callable, y_text: Callable
) -> str:
    """`cut`: the names whose lines end with a × if they end before the others."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    ys = [y for points in lines.values() for _, y in points]
    x = LogAxis(xs[0], xs[-1], LEFT + 10, WIDTH - RIGHT, 0.3)
    y = LogAxis(min(ys) / 1.2, max(ys) * 1.2, HEIGHT - BOTTOM, TOP, 1)
    heights = apart([(y.at(points[-1][1]), name) for name, points in lines.items()])
    parts = grid(x, y, xs, x_text, y_text)
    for number, name in enumerate(ordered(lines)):
        was_cut = name in cut and lines[name][-1][0] < xs[-1]
        parts += curve(name, lines[name], x, y, colour(name, number), heights[name], True, was_cut)
    return frame(title, axis, parts)


def over_time(title: str, axis: str, lines: dict[str, Points], moments: list[tuple[float, str]], y_text: Callable) -> str:
    """`moments`: events and their times, drawn as vertical lines."""
    xs = [x for points in lines.values() for x, _ in points]
    x = Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    y = Axis(0, max(y for points in lines.values() for _, y in points) * 1.08, HEIGHT - BOTTOM, TOP)
    heights = apart([(y.at(points[-1][1]), name) for name, points in lines.items()])
    parts = grid(x, y, x.ticks(), lambda value: f"{value:g}", y_text)
    for at, name in moments:
        parts.append(line(x.at(at), TOP, x.at(at), HEIGHT - BOTTOM, 'stroke="#888888" stroke-dasharray="3 3"'))
        parts.append(text(x.at(at) + 4, TOP + 10, name, 'fill="#555555" font-size="11"'))
    for number, name in enumerate(ordered(lines)):
        parts += curve(name, lines[name], x, y, colour(name, number), heights[name], False, False)
    return frame(title, axis, parts)
