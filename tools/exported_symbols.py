#!/usr/bin/env python3
"""Compare what the library exports with a golden file; the archive must define the same.

A hidden name left in the archive could collide with one of the program it is linked into.
Exit code: 0 as in the golden file, 1 not, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

# The C names of the malloc family, the C++ operators new and delete, those of tcmalloc's that compilers know, our own, and two
# of the dynamic linker.
INTENDED = re.compile(
    r"(__libc_)?(malloc|calloc|realloc|free|memalign|valloc|pvalloc|cfree|reallocarray|mallinfo2?|mallopt)"
    r"|aligned_alloc|posix_memalign|__posix_memalign|free_sized|free_aligned_sized"
    r"|malloc_(usable_size|trim|info|stats)"
    r"|_Zn[wa]m\w*|_Zd[la]Pv\w*"
    r"|__size_returning_new(_aligned)?(_hot_cold)?"
    r"|hak(mem)?_\w+"
    r"|dlm?open"
)

# Of all objects with probes: the linker keeps one.
SHARED = {"_.stapsdt.base"}


def defined(path: Path, *options: str) -> list[str]:
    command = ["nm", "--defined-only", "--extern-only", *options, str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"^[0-9a-f]+ [A-Za-z] (\S+)$", text, re.M)) - SHARED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--golden", type=Path, required=True)
    parser.add_argument("--update", action="store_true", help="rewrite the golden file")
    arguments = parser.parse_args()
    exported = defined(arguments.library, "--dynamic")
    if arguments.update:
        arguments.golden.write_text("\n".join(exported) + "\n")
    golden = arguments.golden.read_text().split() if arguments.golden.exists() else []
    archived = defined(arguments.archive)
    unintended = [name for name in exported if not INTENDED.fullmatch(name)]
    problems = [f"{name}: not a name to export" for name in unintended]
    problems += difflib.unified_diff(golden, exported, "golden", "exported", lineterm="", n=0)
    problems += difflib.unified_diff(exported, archived, "library", "archive", lineterm="", n=0)
    print("\n".join(problems) or f"exported symbols: ok ({len(exported)})")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
