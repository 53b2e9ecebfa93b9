"""Processor time of a measuring script's children, in seconds."""

from __future__ import annotations

import os
import signal
import sys

NOTHING = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)


def of_child(pid: int, name: str) -> float:
    """Wait until a child ends, by itself or killed by us; exits if it has failed."""
    _, status, usage = os.wait4(pid, 0)
    if status not in (0, signal.SIGKILL):
        sys.exit(f"{os.path.basename(sys.argv[0])}: {name} failed")
    return usage.ru_utime + usage.ru_stime


def of_command(command: list[str], environment: dict[str, str]) -> float:
    """Run it, without its output."""
    pid = os.posix_spawnp(command[0], command, environment, file_actions=[NOTHING])
    return of_child(pid, " ".join(command)[:70])
