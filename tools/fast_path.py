#!/usr/bin/env python3
"""Print what the hot functions compile to, as counts; with --golden, compare with a file.

Each function has two rows: `hit`, the instructions from its entry to `ret` in the usual
case, and `total`, all instructions of its body. The usual path is the one that reaches a `ret` after
a store (a block was taken or put away), without calling or jumping to another function, with as few
taken branches as possible: compilers lay out the likely path in a straight line.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import heapq
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

SKIPPED = 77
COLUMNS = ["all", "load", "store", "cmp", "jcc", "jmp", "call", "push", "rsp", "locked", "div"]
KINDS = [("call", "call"), ("jmp", "jmp"), ("jcc", r"j\w+"), ("cmp", "cmp.?|test.?"),
         ("locked", "lock|xchg"), ("div", "i?div.?"), ("push", "push")]
PADDING = re.compile(r"nop|data16|cs|endbr|xchg +%ax,%ax")


class Instruction(NamedTuple):
    address: int
    text: str

    @property
    def op(self) -> str:
        return self.text.split(" ", 1)[0]

    @property
    def operands(self) -> str:
        return self.text.partition(" ")[2].split("#")[0].split("<")[0].strip()

    @property
    def target(self) -> int | None:
        found = re.match(r"j\w+ +([0-9a-f]+) <", self.text)
        return int(found.group(1), 16) if found else None

    @property
    def writes_memory(self) -> bool:
        return self.op.startswith(("mov", "add", "sub", "inc", "dec", "and", "or", "xor")) and self.operands.endswith(")")


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def functions(library: str) -> dict[str, list[Instruction]]:
    """The instructions of every function, by all its names."""
    by_address: dict[int, list[Instruction]] = {}
    for block in output("objdump", "-d", "--no-show-raw-insn", library).split("\n\n"):
        head = re.search(r"^([0-9a-f]+) <[^>]+>:$", block, re.M)
        if head:
            lines = re.findall(r"^ +([0-9a-f]+):\t(.*)$", block, re.M)
            by_address[int(head.group(1), 16)] = [Instruction(int(a, 16), t) for a, t in lines]
    names = re.findall(r"^([0-9a-f]+) [TtWw] (\S+)$", output("nm", library), re.M)
    return {name: by_address.get(int(address, 16), []) for address, name in names}


def successors(body: list[Instruction], i: int) -> list[tuple[int, int]]:
    """Where control may go from instruction i inside the function, each with 1 for a taken branch."""
    here = body[i]
    place = {instruction.address: index for index, instruction in enumerate(body)}
    if here.op.startswith(("ret", "call", "ud2", "hlt")):
        return []
    if here.op.startswith("jmp"):
        return [(place[here.target], 0)] if here.target in place else []
    following = [(i + 1, 0)] if i + 1 < len(body) else []
    if here.op.startswith("j") and here.target in place:
        following.append((place[here.target], 1))
    return following


def hit_path(body: list[Instruction]) -> list[Instruction]:
    """The usual path through the function; empty if there is none."""
    waiting: list[tuple[int, int, int, bool, list[int]]] = [(0, 1, 0, False, [0])] if body else []
    seen = set()
    while waiting:
        taken, length, i, stored, path = heapq.heappop(waiting)
        if (i, stored) in seen:
            continue
        seen.add((i, stored))
        stored = stored or body[i].writes_memory
        if body[i].op.startswith("ret") and stored:
            return [body[index] for index in path]
        for following, jump in successors(body, i):
            step = (taken + jump, length + 1, following, stored, [*path, following])
            heapq.heappush(waiting, step)
    return []


def count(instructions: list[Instruction]) -> collections.Counter[str]:
    got: collections.Counter[str] = collections.Counter()
    for instruction in instructions:
        op, operands = instruction.op, instruction.operands
        if PADDING.match(instruction.text):
            continue
        got["all"] += 1
        got.update([kind for kind, pattern in KINDS if re.fullmatch(pattern, op)][:1])
        reads_or_writes = "(" in operands or operands.startswith("%fs:")
        if reads_or_writes and not op.startswith(("lea", "j", "call")):
            got["store" if instruction.writes_memory else "load"] += 1
        got["rsp"] += "%rsp" in operands
    return got


def report(library: str, names: list[str]) -> list[str]:
    bodies = functions(library)
    rows = [f"{'function':<14}{'':6}" + "".join(f"{column:>7}" for column in COLUMNS)]
    for name in names:
        if not bodies.get(name):
            raise SystemExit(f"fast_path: {library} has no function {name}")
        for kind, part in (("hit", hit_path(bodies[name])), ("total", bodies[name])):
            got = count(part)
            cells = "".join(f"{got[column] or '-':>7}" for column in COLUMNS)
            rows.append(f"{name:<14}{kind:<6}{cells}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("library")
    parser.add_argument("names", nargs="+")
    parser.add_argument("--golden", type=Path, help="the file to compare with")
    parser.add_argument("--compiler", default="", help="skip unless it is the file's, 'GNU 12.…'")
    parser.add_argument("--update", action="store_true", help="rewrite the golden file")
    parser.add_argument("--path", action="store_true", help="print the hit path's instructions too")
    arguments = parser.parse_args()
    if arguments.compiler and not arguments.compiler.startswith("GNU 12."):
        print(f"the golden file is gcc 12's; this is {arguments.compiler}")
        return SKIPPED
    rows = report(arguments.library, arguments.names)
    print("\n".join(rows))
    if arguments.path:
        for name in arguments.names:
            print(f"\n{name}:")
            print("\n".join(f"    {i.text}" for i in hit_path(functions(arguments.library)[name])))
    if arguments.golden and arguments.update:
        arguments.golden.write_text("\n".join(rows) + "\n")
    if arguments.golden:
        golden = arguments.golden.read_text().splitlines() if arguments.golden.exists() else []
        changes = list(difflib.unified_diff(golden, rows, "golden", "now", lineterm="", n=0))
        print("\n".join(changes))
        return 1 if changes else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
