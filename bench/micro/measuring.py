#!/usr/bin/env python3
"""Measures the measuring: what `hakmem compare` adds to a run, and what it reports for allocators whose
difference is known.

    bench/micro/measuring.py cost                     how much longer a run under compare takes, and what compare
                                                      does while a program runs, in CPU time
    bench/micro/measuring.py overhead                 time and CPU time under compare against plain runs, in turn
    bench/micro/measuring.py copies COMPARISONS [RUNS]  two copies of hakmem, and one with a delay of 5 %

The first takes half a minute, and its figures are valid on a busy machine too: a start is short, and the CPU time of
compare is its own. The others take minutes on a machine that does nothing else. Nothing is judged: the figures
are for docs/measuring.md.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processor_time

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
HAKMEM = BUILD / "hakmem"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
# Long enough that a start, about a millisecond, does not matter; many calls, many
# threads, several processes.
PROGRAMS = {
    "bench_random_mixed": ["bench_random_mixed", "10000000", "8192", "42"],
    "larson, 12,000 threads": ["larson", "0", "8", "128", "256", "3000", "12345", "4"],
    "gcc": ["/usr/bin/gcc", "-O2", "-c", "INPUT", "-o", "/dev/null"],
}
GCC_FUNCTIONS = 120
BLOCKS, RUNS_A_BLOCK = 8, 5
STARTS = 200
SLEEPS_FEW, SLEEPS_MANY = 3, 13
NO_DIFFERENCE = "no proven difference"
COPIES_PROGRAM = ["bench_random_mixed", "1500000", "8192", "42"]


def command_of(words: list[str], folder: Path) -> list[str]:
    source = folder / "input.c"
    if "INPUT" in words and not source.exists():
        body = "for (int i = 0; i < n; i++) { x[i % 9] += n ^ i; } return x[n % 9];"
        functions = (f"int f{i}(int n) {{ int x[9] = {{{i}}}; {body} }}" for i in range(GCC_FUNCTIONS))
        source.write_text("\n".join(functions))
    words = [str(source) if word == "INPUT" else word for word in words]
    return words if "/" in words[0] else [str(BUILD / "bench" / words[0]), *words[1:]]


def plain_run(command: list[str]) -> tuple[float, float]:
    start = time.monotonic()
    spent = processor_time.of_command(command, ENVIRONMENT)
    return time.monotonic() - start, spent


def compare(command: list[str], folder: Path, *options: str) -> tuple[list[dict], list[str]]:
    """All samples, and the lines that it prints."""
    result = folder / "result.json"
    done = subprocess.run(
        [HAKMEM, "compare", *options, "--markdown", "--export", result, "--", *command],
        env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"measuring: {done.stderr.strip() or done.stdout}")
    return json.loads(result.read_text())["samples"], done.stdout.splitlines()


def cells_of(lines: list[str], name: str) -> list[str]:
    """An allocator's row of the table."""
    rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|"))
    return next(row for row in rows if row[0] == name)


def ratio(ours: list[float], theirs: list[float]) -> str:
    """The ratio of the medians, with its 95 % interval by resampling."""
    generator = random.Random(1)

    def drawn_median(runs: list[float]) -> float:
        return statistics.median(generator.choices(runs, k=len(runs)))

    drawn = sorted(drawn_median(ours) / drawn_median(theirs) for _ in range(2000))
    return f"{statistics.median(ours) / statistics.median(theirs):.3f} ({drawn[50]:.3f} to {drawn[-51]:.3f})"


def overhead(folder: Path) -> None:
    for name, words in PROGRAMS.items():
        command = command_of(words, folder)
        plain: list[tuple[float, float]] = []
        traced: list[tuple[float, float]] = []
        for _ in range(BLOCKS):
            plain += [plain_run(command) for _ in range(RUNS_A_BLOCK)]
            options = ["-n", str(RUNS_A_BLOCK), "-a", "glibc", "--ignore-output"]
            samples, _ = compare(command, folder, *options)
            traced += [(sample["wall_s"], sample["cpu_s"]) for sample in samples]
        wall, cpu = (ratio([run[of] for run in traced], [run[of] for run in plain]) for of in (0, 1))
        print(f"{name}: {statistics.median(run[0] for run in plain):.3f} s; under compare {wall} of the time, "
              f"{cpu} of the CPU time ({len(plain)} runs of each)", flush=True)


def cpu_s_of(command: list[str | Path]) -> float:
    """CPU time of a command and of all processes that it has waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sleep_cpu_s(seconds: str) -> float:
    """CPU time of one more run of `sleep`: its own, and that of compare."""
    few, many = (cpu_s_of([HAKMEM, "compare", "-n", str(count), "-a", "glibc", "--", "/bin/sleep", seconds])
                 for count in (SLEEPS_FEW, SLEEPS_MANY))
    return (many - few) / (SLEEPS_MANY - SLEEPS_FEW)


def cost(folder: Path) -> None:
    # A program that only starts and ends: the difference is how much longer each run takes.
    options = ["-n", str(STARTS), "-a", "glibc", "--ignore-output"]
    samples, _ = compare(["/bin/true"], folder, *options)
    traced = [sample["wall_s"] for sample in samples]
    plain = [plain_run(["/bin/true"])[0] for _ in range(STARTS)]
    generator = random.Random(1)
    drawn = sorted(statistics.median(generator.choices(traced, k=STARTS)) -
                   statistics.median(generator.choices(plain, k=STARTS)) for _ in range(2000))
    print(f"a start and an end: {1e3 * statistics.median(plain):.2f} ms, under compare "
          f"{1e3 * (statistics.median(traced) - statistics.median(plain)):+.2f} ms "
          f"({1e3 * drawn[50]:+.2f} to {1e3 * drawn[-51]:+.2f}; {STARTS} runs of each)")
    # A program that does nothing for a second: all CPU time is compare's.
    second = sleep_cpu_s("1") - sleep_cpu_s("0")
    print(f"a second of a run: {1e3 * second:.2f} ms of CPU time by compare")


def make_libraries(folder: Path) -> dict[str, Path]:
    """Two copies of the library, and one made of the same objects and the delay."""
    copies = {name: folder / f"{name}.so" for name in ["one", "two"]}
    for path in copies.values():
        shutil.copy(BUILD / "libhakmem.so", path)
    objects = folder / "hakmem.o"
    subprocess.run(["ar", "x", BUILD / "libhakmem.a"], cwd=folder, check=True)
    subprocess.run(["objcopy", "--redefine-sym", "malloc=undelayed_malloc", objects], check=True)
    delayed = folder / "delayed.so"
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-fno-builtin-malloc", "-Wl,-Bsymbolic-functions",
                    "-o", delayed, HERE / "delayed_malloc.c", objects], check=True)
    return copies | {"delayed": delayed}


def cpu_verdict(lines: list[str], name: str) -> str:
    """What compare reports on the CPU time of `one` and another."""
    said = next(line for line in lines if "the lightest on the CPU" in line)
    if NO_DIFFERENCE in said:
        return NO_DIFFERENCE
    return "heavier" if said.startswith("one ") else "lighter" if said.startswith(f"{name} ") else "unclear"


def copies(folder: Path, comparisons: int, runs: int | None) -> None:
    libraries = make_libraries(folder)
    command = command_of(COPIES_PROGRAM, folder)
    times: dict[str, list[str]] = {"two": [], "delayed": []}
    cpus: dict[str, list[str]] = {"two": [], "delayed": []}
    ratios: dict[str, list[float]] = {"two": [], "delayed": []}
    run_counts = []
    for _ in range(comparisons):
        for name in times:
            both = f"one={libraries['one']},{name}={libraries[name]}"
            options = ["-a", both, "--baseline", "one", *(["-n", str(runs)] if runs else [])]
            samples, lines = compare(command, folder, *options)
            row = cells_of(lines, name)
            run_counts.append(max(sample["round"] for sample in samples))
            ratios[name].append(float(row[3]))
            times[name].append(row[5])
            cpus[name].append(cpu_verdict(lines, name))
    for name in times:
        said = [", ".join(f"{word} {verdicts.count(word)}" for word in sorted(set(verdicts)))
                for verdicts in (times[name], cpus[name])]
        print(f"{name}: of {comparisons} comparisons by time: {said[0]}; by CPU time: {said[1]}; ratios of time "
              f"{min(ratios[name]):.3f} to {max(ratios[name]):.3f}, median {statistics.median(ratios[name]):.3f}")
    print(f"runs of each: {min(run_counts)} to {max(run_counts)}, median {statistics.median(run_counts):.0f}")


def main() -> int:
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if words == ["cost"]:
            cost(folder)
        elif words == ["overhead"]:
            overhead(folder)
        elif len(words) in (2, 3) and words[0] == "copies" and all(word.isdigit() for word in words[1:]):
            copies(folder, int(words[1]), int(words[2]) if len(words) == 3 else None)
        else:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
