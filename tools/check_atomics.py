#!/usr/bin/env python3
"""Fail if an atomic operation does not show its order, or an ordered one does not name its partner.

Every acquire and release has `// pairs with: <function>, …` on its line, on the line above or at the
end of its statement. The named function must exist and contain an ordered operation itself, or
be the system call that orders all threads. Macros are exempt: their uses have functions around them.
The operations of <stdatomic.h> are used in base/atomic.h only, which names the order.
`--table` prints the pairs as a table for documents.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

ORDERED = re.compile(r"\bhak_\w+_(acquire|release|acq_rel|seq_cst)\(")
RAW = re.compile(
    r"\b(atomic_(load|store|exchange|compare|fetch|flag|thread_fence|signal_fence|init)\w*"
    r"|__atomic_\w+|__sync_\w+)\s*\("
)
PARTNERS = re.compile(r"// pairs with: ([\w, ]+)")
WRAPPERS = "base/atomic.h"
BARRIERS = {"hak_os_barrier_all"}


class Use(NamedTuple):
    """One ordered operation."""

    file: str
    line: int
    function: str
    operation: str
    partners: list[str]


def functions_of(lines: list[str]) -> list[str]:
    """For each line, the function it belongs to, or ''."""
    owner = [""] * len(lines)
    name = ""
    inside = False
    for i, line in enumerate(lines):
        if not inside and not line.startswith((" ", "#", "/", "{", "}")):
            found = re.search(r"(\w+)\(", line.replace("__attribute__(", ""))
            name = found.group(1) if found else name
        if line == "{":
            inside = True
        owner[i] = name if inside else ""
        if line.startswith("}"):
            inside = False
    return owner


def partners_at(lines: list[str], i: int) -> list[str]:
    """The functions that the statement near line i names as its partners."""
    end = i
    while end + 1 < len(lines) and not re.search(r"[;{]", lines[end].split("//")[0]):
        end += 1
    for line in lines[max(0, i - 1) : end + 1]:
        found = PARTNERS.search(line)
        if found:
            return [partner.strip() for partner in found.group(1).split(",") if partner.strip()]
    return []


def uses_in(where: str, lines: list[str]) -> list[Use]:
    owner = functions_of(lines)
    uses = []
    for i, line in enumerate(lines):
        code = line.split("//")[0]
        found = ORDERED.search(code)
        if found and not code.startswith("#"):
            operation = found.group(0)[:-1]
            uses.append(Use(where, i + 1, owner[i], operation, partners_at(lines, i)))
    return uses


def problems_of(uses: list[Use]) -> list[str]:
    problems = []
    ordered = {use.function for use in uses} | BARRIERS
    for use in uses:
        if not use.partners:
            problems.append(f"{use.file}:{use.line}: {use.operation} without `// pairs with:`")
        for partner in use.partners:
            if partner not in ordered:
                problems.append(
                    f"{use.file}:{use.line}: pairs with {partner}, which has no ordered operation"
                )
    return problems


def table(uses: list[Use]) -> str:
    rows = ["| function | operation | pairs with |", "|---|---|---|"]
    for use in uses:
        rows.append(f"| `{use.function}` ({use.file}) | {use.operation} | {', '.join(use.partners)} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("src", type=Path, nargs="?", default=Path("src"))
    parser.add_argument("--table", action="store_true", help="print the pairs")
    arguments = parser.parse_args()
    uses: list[Use] = []
    problems: list[str] = []
    for path in sorted(arguments.src.rglob("*.[ch]")):
        where = str(path.relative_to(arguments.src))
        if where == WRAPPERS:
            continue
        lines = path.read_text().split("\n")
        uses += uses_in(where, lines)
        for i, line in enumerate(lines):
            if RAW.search(line.split("//")[0]):
                problems.append(f"{where}:{i + 1}: use a name of {WRAPPERS}, which shows the order")
    problems += problems_of(uses)
    if arguments.table:
        print(table(uses))
    else:
        print("\n".join(problems) or f"atomics: ok ({len(uses)} ordered operations)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
