#!/usr/bin/env python3
"""Fail if the library has more static data than MOST bytes.

A conservative garbage collector (bdwgc, in guile, Inkscape, w3m, ecl and others) looks through all writable data of each library of
its program, each time it collects, and how much there is decides when it does. With 1.6 MB of it, guile collects when it must not and
hangs now and then; with 800 KB it does not (docs/faults.md). Large tables that not every program uses are made when they are first
needed (src/meta/table.h).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

MOST = 300 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    library = parser.parse_args().library
    command = ["size", "--format=sysv", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {name: int(count) for name, count in re.findall(r"^(\.data|\.bss) +(\d+)", text, re.M)}
    if set(found) != {".data", ".bss"}:
        sys.exit(f"static_data: {library} has no sections .data and .bss")
    count = sum(found.values())
    parts = ", ".join(f"{name} {part}" for name, part in found.items())
    print(f"static data: {count} bytes ({parts}), at most {MOST}")
    return 1 if count > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
