"""Commands that make the packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def said(*command: str | Path) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout.strip()


def quietly(*command: str | Path, log: Path, env: dict[str, str] | None = None, folder: Path | None = None) -> None:
    with log.open("a") as file:
        words = [str(word) for word in command]
        done = subprocess.run(words, stdout=file, stderr=file, env=env, cwd=folder, check=False)
    if done.returncode != 0:
        sys.stderr.write("".join(log.read_text().splitlines(True)[-20:]))
        sys.exit(f"dist: {command[0]} failed; all of it is in {log}")


def script(path: Path, text: str) -> Path:
    """A script that can be called as a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path
