#!/usr/bin/env python3
"""Run programs under random combinations of options: every combination must work.

    tools/run_random_options.py [--rounds N] [--seed N] [--seconds N] [--only NAME] BUILD

The options and their ranges are those that the library itself reports (hak_option_describe). Each
round draws a combination and runs every program under it, with the library preloaded; the modes take
turns. If there is a form of a program with the archive linked in, that is run as well. Seed 0 takes one from the
clock; the seed and each combination are printed, so that a failure can be repeated.

Exit code: 0 all programs passed, 1 one failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import subprocess
import sys
import time
from pathlib import Path


class Info(ctypes.Structure):
    """struct hak_option_info"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
        ("help", ctypes.c_char_p),
        ("source", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("value", ctypes.c_uint64),
        ("initial", ctypes.c_uint64),
        ("least", ctypes.c_uint64),
        ("most", ctypes.c_uint64),
        ("at_run_time", ctypes.c_bool),
    ]


# The last argument of each is its seed, which is drawn.
PROGRAMS = [
    ["stress_random_operations", "4", "10000", "1"],
    ["stress_blocks_freed_by_other_threads", "4", "10000", "1"],
    ["stress_realloc_storm", "2", "2000", "1"],
    ["stress_thread_churn", "4", "200", "1"],
    ["stress_fork_storm", "4", "20", "1"],
    ["fuzz_random_programs", "500", "20", "1"],
    ["fuzz_many_threads", "6", "12000", "1"],
]
MOST_SECONDS = 600  # of each program
# The programs cannot use refused requests, and nobody reads the files.
LEFT_OUT = {"limit_hard", "fail_at", "fail_rate"}
TEXTS = {"ab": ["off", "ace=on|off", "decay_ms=10|1000", "magazine_bytes=4K|1M"]}


def options_of(library: str) -> list[Info]:
    describe = ctypes.CDLL(library).hak_option_describe
    describe.restype = ctypes.c_bool
    describe.argtypes = [ctypes.c_size_t, ctypes.POINTER(Info)]
    found: list[Info] = []
    while describe(len(found), ctypes.byref(info := Info())):
        found.append(info)
    return [one for one in found if one.kind != b"file" and one.name.decode() not in LEFT_OUT]


def value_of(option: Info, chance: random.Random) -> str:
    if option.kind == b"choice":
        return chance.choice(option.unit.decode().split("|"))
    if option.kind == b"text":
        return chance.choice(TEXTS[option.name.decode()])
    if option.kind == b"switch":
        return chance.choice(["on", "off"])
    # Small and large values are equally likely.
    top = chance.randint(0, max(option.most.bit_length(), 1))
    return str(min(max(chance.getrandbits(top) if top else 0, option.least), option.most))


def combination(options: list[Info], mode: str, chance: random.Random) -> str:
    """A mode, and in two rounds of three half of the options."""
    share = chance.choice([0.0, 0.5, 0.5])
    chosen = [one for one in options if one.name != b"mode" and chance.random() < share]
    return ",".join([f"mode={mode}", *(f"{one.name.decode()}={value_of(one, chance)}" for one in chosen)])


def programs_of(build: Path, only: str, library: str) -> list[tuple[list[str], str]]:
    """Each program with its arguments, and the library to preload: none where the archive is linked in."""
    found = []
    for name, *rest in PROGRAMS:
        if name.endswith(only):
            found.append(([str(build / "tests" / name), *rest], library))
            linked = build / "tests" / f"{name}_linked"
            if linked.exists():
                found.append(([str(linked), *rest], ""))
    return found


def run(program: list[str], preload: str, chosen: str) -> bool:
    environment = {**os.environ, "LD_PRELOAD": preload, "HAKMEM_OPTIONS": chosen}
    try:
        done = subprocess.run(
            program,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=MOST_SECONDS,
            check=False,
        )
        status, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        status, said = -1, late.stdout or b""
    if status in (0, 77):
        return True
    print(f"{' '.join(program)} ended with {status}:")
    print(said.decode(errors="replace")[-3000:])
    print(f"again: HAKMEM_OPTIONS='{chosen}' LD_PRELOAD={preload} {' '.join(program)}")
    return False


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, help="folder with the library and the tests")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=10**9, help="begin no round after so many")
    parser.add_argument("--only", default="", help="the program whose name ends so")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    seed = arguments.seed or time.time_ns()
    chance = random.Random(seed)
    build = arguments.build.resolve()
    library = str(build / "libhakmem.so")
    options = options_of(library)
    modes = next(one for one in options if one.name == b"mode").unit.decode().split("|")
    programs = programs_of(build, arguments.only, library)
    if not programs:
        parser.error(f"there is no program {arguments.only}")
    print(f"seed {seed}, {len(options)} options", flush=True)
    for number in range(arguments.rounds):
        if time.monotonic() > end:
            break
        chosen = combination(options, modes[number % len(modes)], chance)
        print(chosen, flush=True)
        for program, preload in programs:
            if not run([*program[:-1], str(chance.randint(1, 2**32))], preload, chosen):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
