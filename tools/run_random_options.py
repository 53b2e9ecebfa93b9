#!/usr/bin/env python3
"""Run programs under random combinations of options: any combination has to work.

    tools/run_random_options.py [--rounds N] [--seed N] BUILD

The options and their ranges are those that the library itself describes (hak_option_describe). Each
round draws a combination and runs every program under it, with the library preloaded. Seed 0 takes one
from the clock; the seed and each combination are printed, so that a failure can be repeated.

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


PROGRAMS = [
    ["stress_random_operations", "4", "10000", "1"],
    ["stress_blocks_freed_by_other_threads", "4", "10000", "1"],
    ["stress_realloc_storm", "2", "2000", "1"],
    ["stress_thread_churn", "4", "200", "1"],
    ["stress_fork_storm", "4", "20", "1"],
    ["fuzz_random_programs", "20", "500", "1"],
]
# The programs have no use for being refused memory, and nobody reads the files.
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
    # Small values and large ones are equally likely.
    top = chance.randint(0, max(option.most.bit_length(), 1))
    return str(min(max(chance.getrandbits(top) if top else 0, option.least), option.most))


def combination(options: list[Info], chance: random.Random) -> str:
    chosen = [one for one in options if chance.random() < 0.5]
    return ",".join(f"{one.name.decode()}={value_of(one, chance)}" for one in chosen)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, help="folder with the library and the tests")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    seed = arguments.seed or time.time_ns()
    chance = random.Random(seed)
    library = str(arguments.build.resolve() / "libhakmem.so")
    options = options_of(library)
    programs = [[str(arguments.build.resolve() / "tests" / name), *rest] for name, *rest in PROGRAMS]
    print(f"seed {seed}, {len(options)} options", flush=True)
    for _ in range(arguments.rounds):
        chosen = combination(options, chance)
        print(chosen or "(all defaults)", flush=True)
        environment = {**os.environ, "LD_PRELOAD": library, "HAKMEM_OPTIONS": chosen}
        for program in programs:
            run = subprocess.run(
                program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
            if run.returncode not in (0, 77):
                print(f"{' '.join(program)} ended with {run.returncode}:")
                print(run.stdout.decode(errors="replace")[-3000:])
                print(f"again: HAKMEM_OPTIONS={chosen} LD_PRELOAD={library} {' '.join(program)}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
