"""machine -- what a result file says about where and of what it was made."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from .paths import ROOT


def first_match(path: str, pattern: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def cpu_model() -> str:
    model = first_match("/proc/cpuinfo", r"^model name\s*:\s*(.+)$")
    return platform.machine() if model == "unknown" else model


def folder_name() -> str:
    """Names the machine by what it is, not by what its owner calls it."""
    model = re.sub(r"[^a-z0-9]+", "-", cpu_model().lower()).strip("-")
    return f"{model}-{os.cpu_count()}cpu"


def describe() -> dict[str, Any]:
    thp = first_match("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]")
    return {
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "usable_cpus": len(os.sched_getaffinity(0)),
        "memory_kib": int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)")),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "system": first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)'),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "transparent_huge_pages": thp,
        "overcommit": first_match("/proc/sys/vm/overcommit_memory", r"(\d+)"),
        "load_before": os.getloadavg()[0],
    }


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> str:
    """The commit that is measured, marked when the sources differ from it."""
    name = git("rev-parse", "--short=10", "HEAD") or "nocommit"
    return f"{name}-dirty" if git("status", "--porcelain", "--", "src", "include") else name
