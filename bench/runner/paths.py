"""paths -- where things are, and how results name them.

Results are committed and compared between machines, so they hold no absolute path
of a checkout: everything below the project's root is written relative to it.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
RESULTS = ROOT / "bench" / "results"
WORKLOADS = ROOT / "bench" / "workloads"
REAL = ROOT / "bench" / "real"
REAL_INPUTS = BUILD / "real"
SCRATCH = BUILD / "real" / "scratch"
MEASURE = BUILD / "bench" / "measure"
PEERS = BUILD / "peers"


def relative(text: str) -> str:
    """The same text, with paths below the root made relative to it."""
    return text.replace(f"{ROOT}/", "")


class UsageError(Exception):
    """The user asked for something that is not there; one line says what."""
