#!/usr/bin/env python3
"""Run programs under random combinations of options: any combination has to work.

    tools/run_random_options.py [--rounds N] [--seed N] LIBRARY -- PROGRAM [ARGUMENT...] [-- PROGRAM...]

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


def programs_in(words: list[str]) -> list[list[str]]:
    programs: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            programs.append([])
        else:
            programs[-1].append(word)
    return [program for program in programs if program]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("programs", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    seed = arguments.seed or time.time_ns()
    chance = random.Random(seed)
    options = options_of(arguments.library)
    programs = programs_in(arguments.programs)
    if not options or not programs:
        parser.error("no options, or no programs")
    print(f"seed {seed}, {len(options)} options", flush=True)
    for _ in range(arguments.rounds):
        chosen = combination(options, chance)
        print(chosen or "(all defaults)", flush=True)
        environment = {**os.environ, "LD_PRELOAD": arguments.library, "HAKMEM_OPTIONS": chosen}
        for program in programs:
            run = subprocess.run(
                program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
            if run.returncode not in (0, 77):
                print(f"{' '.join(program)} ended with {run.returncode}:")
                print(run.stdout.decode(errors="replace")[-3000:])
                print(f"again: HAKMEM_OPTIONS={chosen} LD_PRELOAD={arguments.library} {' '.join(program)}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
