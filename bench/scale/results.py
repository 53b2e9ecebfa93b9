"""A result file: what was measured, with what, and where."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from pathlib import Path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def key(sample: dict) -> tuple[str, str, int, int]:
    return sample["subject"], sample["allocator"], sample["x"], sample["repeat"]


def store(path: Path, document: dict) -> None:
    """Whole or not at all; one sample on each line, so that results can be compared line by line."""
    parts = {name: json.dumps(value, indent=2) for name, value in document.items() if name != "samples"}
    parts["samples"] = "[\n" + ",\n".join("  " + json.dumps(one) for one in document["samples"]) + "\n]"
    text = "{\n" + ",\n".join(f"{json.dumps(name)}: {value}" for name, value in parts.items()) + "\n}\n"
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


def least(document: dict) -> dict[tuple[str, str, int], float]:
    """The least of the runs, by operation, allocator and point."""
    found: dict[tuple[str, str, int], float] = {}
    for sample in document["samples"]:
        for operation, value in sample["figures"].items():
            place = operation, sample["allocator"], sample["x"]
            found[place] = min(value, found.get(place, value))
    return found


def first_line(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip() if found else ""


def machine() -> dict:
    return {
        "cpu": first_line("/proc/cpuinfo", r"^model name\s*:(.*)$") or platform.machine(),
        "cpus": os.cpu_count(),
        "memory_kib": int(first_line("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0),
        "kernel": platform.release(),
        "system": first_line("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "transparent_huge_pages": first_line("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
        "overcommit": first_line("/proc/sys/vm/overcommit_memory", r"(\d+)"),
        "load_before": os.getloadavg()[0],
    }


def machine_name() -> str:
    """The folder's name, as `hakmem bench` chooses it."""
    here = machine()
    return f"{re.sub('[^a-z0-9]+', '-', here['cpu'].lower()).strip('-')}-{here['cpus']}cpu"
