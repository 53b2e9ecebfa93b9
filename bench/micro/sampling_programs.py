#!/usr/bin/env python3
"""Measures what the sampling profiler costs real programs.

    bench/micro/sampling_programs.py [--every BYTES] [--rounds N] [NAME ...]

Each program runs with sampling off and on in turn; the cost is the median of the rounds' ratios of processor
time; next to it are the range of half of the rounds, and the ratio of the two least times. The machine must do nothing else, and
have the programs that `make demo` installs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processor_time

ROOT = Path(__file__).resolve().parents[2]
JSON = """
import json
d = [{"id": i, "name": "user%d" % i, "tags": ["a%d" % j for j in range(i % 7)], "x": i * 1.5} for i in range(3000)]
for _ in range(60):
    json.loads(json.dumps(d))
"""
SQL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
SELECT count(*) FROM (SELECT i, hex(i) || 'text' AS t FROM n ORDER BY t);
"""
PERL = """
my %h;
for my $i (1 .. 400000) { $h{"k$i"} = [$i, "v$i"]; delete $h{"k" . ($i - 5000)} if $i > 5000 }
"""
REDIS_LOAD = "-q -c 20 -P 8 -n 120000 -r 50000 -d 300 -t set,lpush,hset".split()


def redis_time(environment: dict[str, str], folder: Path) -> float:
    socket = str(folder / "redis")
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", socket, "--save", ""],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 10
    while subprocess.run(["redis-cli", "-s", socket, "ping"], capture_output=True).stdout != b"PONG\n":
        if time.monotonic() > until:
            sys.exit("sampling_programs: redis-server does not answer")
        time.sleep(0.02)
    subprocess.run(["redis-benchmark", "-s", socket, *REDIS_LOAD], check=True, stdout=subprocess.DEVNULL)
    server.kill()
    return processor_time.of_child(server.pid, "redis-server")


def compiler(folder: Path) -> list[str]:
    """gcc's cc1 on one of our own files, which was preprocessed before."""
    source = folder / "magazine.i"
    includes = [f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"]
    subprocess.run(
        ["gcc", "-E", *includes, str(ROOT / "src/cache/magazine.c"), "-o", str(source)], check=True
    )
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], check=True, capture_output=True, text=True)
    return [cc1.stdout.strip(), "-quiet", "-O2", str(source), "-o", os.devnull]


def programs(folder: Path):
    """By name: a function that runs it once, with that environment, and returns its processor time."""
    python = [sys.executable, "-c", JSON]
    commands = {
        "python3, JSON": (python, {}),
        "python3, JSON, PYTHONMALLOC=malloc": (python, {"PYTHONMALLOC": "malloc"}),
        "sqlite3": (["sqlite3", ":memory:", SQL], {}),
        "perl": (["perl", "-e", PERL], {}),
        "cc1": (compiler(folder), {}),
    }
    for name, (command, more) in commands.items():
        yield name, lambda e, command=command, more=more: processor_time.of_command(command, e | more)
    yield "redis-server", lambda e: redis_time(e, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help="programs whose name begins so (default: all)")
    parser.add_argument("--every", type=int, default=512 * 1024, help="option sample_bytes (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=11, help="runs of each kind (default: %(default)s)")
    parser.add_argument("--library", type=Path, default=ROOT / "build/libhakmem.so")
    options = parser.parse_args()
    print("| program | off, ms | cost | half of the rounds within | by the least |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, run in programs(Path(folder)):
            if options.names and not name.startswith(tuple(options.names)):
                continue
            environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(options.library)}
            rounds = [
                [run(environment | {"HAKMEM_SAMPLE_BYTES": str(every)}) for every in (0, options.every)]
                for _ in range(options.rounds)
            ]
            off = statistics.median(without for without, _ in rounds) * 1e3
            low, middle, high = statistics.quantiles([with_it / without for without, with_it in rounds], n=4)
            least = min(with_it for _, with_it in rounds) / min(without for without, _ in rounds)
            costs = [f"{(ratio - 1) * 100:+.1f}" for ratio in (middle, low, high, least)]
            print(f"| {name} | {off:.0f} | {costs[0]} % | {costs[1]} to {costs[2]} % | {costs[3]} % |", flush=True)


if __name__ == "__main__":
    main()
