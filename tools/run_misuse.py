#!/usr/bin/env python3
"""Run a program that must die: by SIGABRT, with exactly the line on stderr that its source expects.

The line is in a comment of the source: `// expect: <regular expression>`. Exit code: 0 it died that way,
1 it did not, 2 wrong usage, 77 the program cannot tell on this machine.
"""

from __future__ import annotations

import argparse
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
EMULATOR_SAYS = "qemu: uncaught target signal"


def expected_line(source: Path) -> str:
    found = re.search(r"^// expect: (.+)$", source.read_text(), re.M)
    if found is None:
        sys.exit(f"run_misuse: {source} has no line '// expect: <regex>'")
    return found.group(1).strip()


def no_core_dump() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    expected = expected_line(arguments.source)
    done = subprocess.run(
        arguments.command, capture_output=True, text=True, check=False, preexec_fn=no_core_dump
    )
    if done.returncode == SKIPPED:
        print(done.stderr, end="")
        return SKIPPED
    said = [line for line in done.stderr.splitlines() if not line.startswith(EMULATOR_SAYS)]
    died = done.returncode in (-signal.SIGABRT, 128 + signal.SIGABRT)
    if died and len(said) == 1 and re.fullmatch(expected, said[0]):
        print(said[0])
        return 0
    print(f"expected: SIGABRT and the line {expected}")
    print(f"got:      return code {done.returncode} and {len(said)} lines")
    print("\n".join(said))
    return 1


if __name__ == "__main__":
    sys.exit(main())
