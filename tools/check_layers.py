#!/usr/bin/env python3
"""Fail if a file in src/ includes a layer above its own, if the includes inside a layer form a cycle, if a function is
not named after its file, or if src/README.md names other layers.

The layers and their order are HAK_CORE_LAYERS and HAK_FEATURE_LAYERS in src/CMakeLists.txt; files outside the
folders are above all layers.
Inside a layer, x.c and x.h are one room, whoever else includes x.h. A cycle is one of rooms. Functions that x.h declares start with
hak_x_; so do those that x.c defines for others, or they start with the name of a header that x begins with, as guard_report.c's start
with hak_guard_. The functions of the C API have their own names, and so has the contract of the os layer.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict, deque
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
PUBLIC = "hakmem"  # include/hakmem/: for users; open to every layer
UNNAMED = {"cache/fast_path", "front/alloc", "front/aligned"}  # files whose functions have other names
NOUNLESS = {"base/bits", "base/check"}  # additions to the language: named for what they do

DECLARED = re.compile(r"^(?:HAK_INTERNAL|HAK_INLINE|HAKMEM_API)\b[^;{]*?\b(hak_\w+)\(", re.M)
DEFINED = re.compile(r"^(?!static|HAK_INLINE)[A-Za-z_][^;{}=#]*?\b(hak_\w+)\([^;{}]*\n\{", re.M)

Rooms = dict[str, dict[str, str]]  # room -> room that it includes -> the file that does


def declared_layers(src: Path) -> list[str]:
    text = (src / "CMakeLists.txt").read_text()
    layers = []
    for name in ("HAK_CORE_LAYERS", "HAK_FEATURE_LAYERS"):
        found = re.search(rf"set\({name} ([^)]+)\)", text)
        if found is None:
            sys.exit(f"check_layers: no set({name} …) in {src}/CMakeLists.txt")
        layers += found.group(1).split()
    return layers


def include_problems(src: Path, layers: list[str]) -> list[str]:
    problems = []
    for path in sorted(src.rglob("*.[ch]")):
        where = path.relative_to(src)
        if len(where.parts) == 1:
            continue  # hakmem.c, the composition root
        if where.parts[0] not in layers:
            problems.append(f"{where}: {where.parts[0]}/ is no layer")
            continue
        own = layers.index(where.parts[0])
        for target in INCLUDE.findall(path.read_text()):
            layer = target.split("/")[0]
            if layer == PUBLIC:
                continue
            if layer not in layers:
                problems.append(f'{where}: write "{target}" as "layer/file.h"')
            elif layers.index(layer) > own:
                problems.append(f"{where}: {where.parts[0]}/ may not include {layer}/")
    return problems


def rooms_of(src: Path, layer: str) -> Rooms:
    rooms: Rooms = defaultdict(dict)
    for path in sorted((src / layer).glob("*.[ch]")):
        for target in INCLUDE.findall(path.read_text()):
            other = Path(target)
            if other.parts[0] == layer and other.stem != path.stem:
                rooms[path.stem].setdefault(other.stem, path.name)
    return rooms


def shortest_way_back(rooms: Rooms, start: str) -> list[str]:
    """The rooms of the shortest cycle through `start`; none if there is no cycle."""
    came_from = {start: start}
    waiting = deque([start])
    while waiting:
        room = waiting.popleft()
        for other in rooms.get(room, {}):
            if other == start:
                way = [room]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if other not in came_from:
                came_from[other] = room
                waiting.append(other)
    return []


def cycle_problems(src: Path, layers: list[str]) -> list[str]:
    problems = []
    for layer in layers:
        rooms = rooms_of(src, layer)
        cycles = [cycle for room in sorted(rooms) if (cycle := shortest_way_back(rooms, room))]
        if cycles:
            cycle = min(cycles, key=len)
            steps = [
                f"{rooms[room][after]} includes {after}.h"
                for room, after in zip(cycle, cycle[1:] + cycle[:1], strict=True)
            ]
            problems.append(f"{layer}/: a cycle of includes: {', '.join(steps)}")
    return problems


def is_named_after(name: str, nouns: list[str]) -> bool:
    return any(re.match(rf"hak_({noun}|{noun.removesuffix('s')})(_|$)", name) for noun in nouns)


def name_problems(src: Path, layers: list[str]) -> list[str]:
    def names_in(folder: Path, stems: set[str]) -> set[str]:
        headers = [path for path in folder.rglob("*.h") if path.stem in stems or not stems]
        return {name for path in headers for name in DECLARED.findall(path.read_text())}

    free = names_in(src.parent / "include", set())
    free |= names_in(src, {"hooks", "fast_path"})  # the feature that has them defines these, or the code that the fast paths call
    free |= names_in(src / "base", {room.split("/")[1] for room in NOUNLESS})
    problems = []
    for layer in layers:
        for path in sorted((src / layer).glob("*.[ch]")):
            if f"{layer}/{path.stem}" in UNNAMED | NOUNLESS:
                continue
            words = path.stem.split("_")
            least = len(words) if path.suffix == ".h" else 1
            nouns = ["_".join(words[:count]) for count in range(least, len(words) + 1)]
            nouns = ["os", *nouns] if layer == "os" else nouns
            found = (DECLARED if path.suffix == ".h" else DEFINED).findall(path.read_text())
            problems += [
                f"{layer}/{path.name}: {name} is not named after the file"
                for name in found
                if name not in free and not is_named_after(name, nouns)
            ]
    return problems


def readme_problems(src: Path, layers: list[str]) -> list[str]:
    readme = src / "README.md"
    if not readme.exists():
        return ["README.md: missing; it explains the layers"]
    existing = [layer for layer in layers if (src / layer).is_dir()]
    for line in readme.read_text().splitlines():
        if "→" in line:
            named = re.findall(r"[a-z]+", line.split("(")[0])
            if named == existing:
                return []
            return [f"README.md: says {' → '.join(named)}, but src/ has {' → '.join(existing)}"]
    return ["README.md: no line 'base → os → …'"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("src", type=Path, nargs="?", default=Path("src"))
    src = parser.parse_args().src
    layers = declared_layers(src)
    problems = [
        problem
        for check in (include_problems, cycle_problems, name_problems, readme_problems)
        for problem in check(src, layers)
    ]
    print("\n".join(problems) or "layers: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
