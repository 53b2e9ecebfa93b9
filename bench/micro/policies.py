#!/usr/bin/env python3
"""Measures what a site rule and the learner cost and gain, by runs taken in turn.

    bench/micro/policies.py rule [PAIRS]      a server's long-lived entries in slabs of their own: processor time with the
                                              rule divided by that without, and resident memory after the rush
    bench/micro/policies.py learning [PAIRS]  programs that end before or when the learner has decided: processor time and
                                              page faults with it divided by those without
    bench/micro/policies.py decided [RUNS]    on five workloads, after how many seconds the learner decides, and for what
    bench/micro/policies.py turns [TURNS]     a program that changes every eight seconds between three kinds of work: how
                                              long after a change the learner has decided, or recalled, and for what
    bench/micro/policies.py frozen [SECONDS]  processor time of the sweeper's thread, where the learner lives, without it
                                              and once it has decided

What the strategies gain over whole runs: `hakmem tune`. Nothing is judged: the figures are for docs/decisions/figures/ and
the decision records. On a machine with other work processor time is less disturbed than wall time, but still disturbed.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"
HAKMEM = BUILD / "hakmem"
PLAIN = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(BUILD / "libhakmem.so")}
LEARNING = PLAIN | {"HAKMEM_MODE": "learning"}
RULE = "server_take_entry -> long\n"
SERVER = ["server_phases", "20000", "1", "2500"]
LEARNED_FROM = [
    ["phases", "150"],
    ["phases", "600"],
    ["large_blocks", "pages", "200000"],
    ["server_phases", "20000", "5", "0"],
]
WORKLOADS = [
    ["large_blocks", "pages", "2000000"],
    ["server_phases", "20000", "200", "600"],
    ["server_phases", "4000", "1000", "600", "1", "0", "64"],
    ["phases", "8000"],
    ["producer_consumer", "asymmetric", "2", "25000000"],
]
TURN_S = 8
PAIRS, RUNS, TURNS = 20, 3, 9
LOOK_S, TIMEOUT_S = 0.1, 60
SETTLE_S, FROZEN_S = 10, 10


@dataclass(frozen=True)
class Run:
    cpu_s: float
    faults: int
    resident_kib: int  # printed by the program; 0: it prints none


def start(words: list[str], environment: dict[str, str]) -> subprocess.Popen:
    command = [str(BUILD / "bench" / words[0]), *words[1:]]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def run(words: list[str], environment: dict[str, str]) -> Run:
    process = start(words, environment)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        sys.exit(f"policies: {words[0]} failed")
    found = re.search(r"^resident KiB[^:]*: (\d+)", output, re.MULTILINE)
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_minflt, int(found[1]) if found else 0)


def pairs(words: list[str], others: dict[str, str], count: int) -> tuple[list[Run], list[Run]]:
    """Runs without and with the settings of `others`; each kind comes first in every other pair."""
    without: list[Run] = []
    having: list[Run] = []
    for number in range(count):
        turns = [(without, PLAIN), (having, PLAIN | others)]
        for runs, environment in turns if number % 2 == 0 else reversed(turns):
            runs.append(run(words, environment))
    return without, having


def ratio(without: list[Run], having: list[Run], of: Callable[[Run], float]) -> str:
    """The geometric mean of the pairs' ratios, with its 95 % interval by resampling."""
    logs = [math.log(of(b) / of(a)) for a, b in zip(without, having, strict=True)]
    generator = random.Random(1)
    drawn = sorted(statistics.fmean(generator.choices(logs, k=len(logs))) for _ in range(2000))
    middle, low, high = (math.exp(value) for value in (statistics.fmean(logs), drawn[50], drawn[-51]))
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def rule(count: int) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".rules") as file:
        file.write(RULE)
        file.flush()
        without, having = pairs(SERVER, {"HAKMEM_SITE_RULES": file.name}, count)
    before, after = (statistics.median(one.resident_kib for one in runs) for runs in (without, having))
    print(f"{' '.join(SERVER)}, {count} pairs: processor time with the rule by without "
          f"{ratio(without, having, lambda one: one.cpu_s)}")
    print(f"resident after the rush: {before:.0f} KiB without, {after:.0f} with: {100 * (1 - after / before):.0f} % less")


def learning(count: int) -> None:
    for words in LEARNED_FROM:
        without, having = pairs(words, LEARNING, count)
        before, after = (statistics.median(one.faults for one in runs) for runs in (without, having))
        print(f"{' '.join(words)}, {count} pairs: processor time while learning by without "
              f"{ratio(without, having, lambda one: one.cpu_s)}; page faults {before:.0f} and {after:.0f}", flush=True)


def decisions(pid: int) -> list[dict]:
    """All decisions in a process so far."""
    said = subprocess.run([HAKMEM, "explain", str(pid), "--json"], capture_output=True, text=True)
    return json.loads(said.stdout)["decisions"]["latest"] if said.returncode == 0 else []


def verdict(decision: dict) -> str:
    if len(set(decision["strategies"])) == 1:
        return "the baseline stays, no other was ahead"
    said = ", ".join(f"{name} {100 * decision[name]:+.1f} %" for name in ("difference", "low", "high"))
    return f"{decision['verdict']} of {' and '.join(decision['strategies'])}, {decision['games']} pairs ({said})"


def wait_for_decision(process: subprocess.Popen) -> str:
    """After how long the learner decided, and for what."""
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < TIMEOUT_S:
        found = decisions(process.pid)
        if found:
            return f"after {time.monotonic() - begin:.1f} s {verdict(found[0])}"
        time.sleep(LOOK_S)
    return f"nothing decided in {time.monotonic() - begin:.0f} s"


def decided(count: int) -> None:
    for words in WORKLOADS:
        for _ in range(count):
            process = start(words, LEARNING)
            print(f"{' '.join(words)}: {wait_for_decision(process)}", flush=True)
            process.kill()
            process.communicate()


def turns(count: int) -> None:
    process = start(["micro/turns", str(TURN_S), str(count)], LEARNING)
    assert process.stdout is not None
    changed, seen, turn = time.monotonic(), 0, 1
    while process.poll() is None:
        if select.select([process.stdout], [], [], LOOK_S)[0]:
            done = process.stdout.readline()
            if done == "":
                break
            print(f"turn {turn}: {done.strip()}", flush=True)
            changed, turn = time.monotonic(), turn + 1
        found = decisions(process.pid)
        for decision in found[seen:]:
            print(f"turn {turn}, after {time.monotonic() - changed:.1f} s: {verdict(decision)}", flush=True)
        seen = max(seen, len(found))
    process.communicate()


def sweeper_s(pid: int) -> float:
    """Processor time of all threads but the first: those are the allocator's."""
    tasks = (task for task in Path(f"/proc/{pid}/task").iterdir() if task.name != str(pid))
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def frozen(seconds: int) -> None:
    words = WORKLOADS[2]
    for name, environment in (("without the learner", PLAIN), ("after it has decided", LEARNING)):
        process = start(words, environment)
        if environment is LEARNING:
            wait_for_decision(process)
        else:
            time.sleep(SETTLE_S)
        before = sweeper_s(process.pid)
        time.sleep(seconds)
        spent = (sweeper_s(process.pid) - before) / seconds
        print(f"{' '.join(words)}, {name}: {1e3 * spent:.2f} ms a second in the sweeper's thread", flush=True)
        process.kill()
        process.communicate()


def main() -> int:
    commands = {
        "rule": (rule, PAIRS),
        "learning": (learning, PAIRS),
        "decided": (decided, RUNS),
        "turns": (turns, TURNS),
        "frozen": (frozen, FROZEN_S),
    }
    words = sys.argv[1:]
    if len(words) not in (1, 2) or words[0] not in commands or not all(word.isdigit() for word in words[1:]):
        print(__doc__, file=sys.stderr)
        return 2
    command, count = commands[words[0]]
    command(int(words[1]) if len(words) == 2 else count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
