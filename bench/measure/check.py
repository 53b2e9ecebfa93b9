#!/usr/bin/env python3
"""Check measure: that it reports truly, and that its proof cannot be fooled.

    bench/measure/check.py build/bench/measure [build/peers]

Compiles small programs into a temporary folder. Exit code 0 passed, 1 failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

OWN_MALLOC = r"""
#include <stddef.h>
static char memory[1 << 20];
static size_t used;
LINKAGE void *malloc(size_t bytes)
{
    void *block = memory + used;
    used += (bytes + 15) & ~(size_t)15;
    return block;
}
int main(void)
{
    void *volatile block = malloc(10);
    return block == NULL;
}
"""

PEAK = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef PAUSE_US
#define PAUSE_US 0
#endif
int main(void)
{
    size_t bytes = (size_t)64 << 20;
    char *volatile block = malloc(bytes);
    memset(block, 1, bytes);
    usleep(PAUSE_US);
    free(block);
    return 0;
}
"""

# A library that forwards nothing: it stands for any allocator under another name.
PRELOAD = r"""
#include <stddef.h>
static char memory[8 << 20];
static size_t used;
void *malloc(size_t bytes) { void *at = memory + used; used += (bytes + 15) & ~(size_t)15; return at; }
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void *realloc(void *block, size_t bytes)
{
    char *from = block, *to = malloc(bytes);
    for (size_t i = 0; from != NULL && i < bytes; i++) { to[i] = from[i]; }
    return to;
}
int posix_memalign(void **out, size_t a, size_t n) { *out = malloc(n); return a > 16 ? 22 : 0; }
void *aligned_alloc(size_t alignment, size_t bytes) { (void)alignment; return malloc(bytes); }
void *memalign(size_t alignment, size_t bytes) { (void)alignment; return malloc(bytes); }
size_t malloc_usable_size(void *block) { (void)block; return 0; }
"""

UNUSED = "int nothing_of_interest;\n"


class Checks:
    """Runs commands under measure, and counts what came out wrong."""

    def __init__(self, measure: Path, work: Path) -> None:
        self.measure = measure
        self.work = work
        self.failures = 0

    def compile(self, name: str, source: str, *flags: str) -> str:
        target = self.work / name
        (self.work / f"{name}.c").write_text(source)
        subprocess.run(
            ["cc", "-O1", "-w", "-fno-builtin", *flags, "-o", target, f"{target}.c"], check=True
        )
        return str(target)

    def run(self, *arguments: str) -> dict:
        output = self.work / "report.json"
        subprocess.run(
            [self.measure, "--output", output, *arguments],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
        )
        return json.loads(output.read_text())

    def expect(self, promise: str, holds: bool) -> None:
        if not holds:
            self.failures += 1
        print(f"{'ok  ' if holds else 'FAIL'} {promise}")


def owners(report: dict, process: int = 0) -> list[str]:
    return [Path(path).name for path in report["processes"][process]["proof"]["owners"]]


def importers(report: dict) -> list[str]:
    return [Path(path).name for path in report["processes"][0]["proof"]["importers"]]


def check_proof(checks: Checks) -> None:
    library = checks.compile("liballoc.so", PRELOAD, "-shared", "-fPIC")
    unused = checks.compile("libunused.so", UNUSED, "-shared", "-fPIC")
    visible = checks.compile("own", OWN_MALLOC.replace("LINKAGE", ""))
    hidden = '__attribute__((visibility("hidden")))'
    private = checks.compile("own_private", OWN_MALLOC.replace("LINKAGE", hidden))
    stripped = checks.compile("own_stripped", OWN_MALLOC.replace("LINKAGE", hidden), "-s")
    static = checks.compile("static", PEAK, "-static")
    preload = ("--env", f"LD_PRELOAD={library}")

    checks.expect("without a preload libc owns malloc",
                  owners(checks.run("--unset", "LD_PRELOAD", "--", "/bin/ls", "/")) == ["libc.so.6"])
    checks.expect("a preloaded allocator owns malloc",
                  owners(checks.run(*preload, "--", "/bin/ls", "/")) == ["liballoc.so"])
    checks.expect("a path that does not exist leaves libc as the owner",
                  owners(checks.run("--env", "LD_PRELOAD=/no/such.so", "--", "/bin/ls", "/"))
                  == ["libc.so.6"])
    checks.expect("a library that is mapped but has no malloc owns nothing",
                  owners(checks.run("--env", f"LD_PRELOAD={unused}", "--", "/bin/ls", "/"))
                  == ["libc.so.6"])
    checks.expect("a program's own malloc is found behind a preload",
                  "own" in owners(checks.run(*preload, "--", visible)))
    checks.expect("a program's hidden malloc is reported as private",
                  checks.run(*preload, "--", private)["processes"][0]["proof"]["private_malloc"])
    checks.expect("a stripped program with a hidden malloc imports none",
                  "own_stripped" not in importers(checks.run(*preload, "--", stripped)))
    checks.expect("a static program is refused",
                  checks.run(*preload, "--", static)["processes"][0]["proof"]["static"])


def check_costs(checks: Checks) -> None:
    peak = checks.compile("peak", PEAK)
    report = checks.run("--", peak)
    checks.expect("the peak is that of the program, 64 MiB and its code",
                  64 << 10 <= report["peak_kib"] < 72 << 10)
    report = checks.run("--warm-mib", "200", "--", peak)
    checks.expect("memory that was touched before is not the command's",
                  64 << 10 <= report["peak_kib"] < 72 << 10 and len(report["processes"]) == 1)
    report = checks.run("--", "sh", "-c", f"{peak}; exit 3")
    checks.expect("the exit code is the command's", report["exit_code"] == 3)
    checks.expect("a child's peak counts", 64 << 10 <= report["peak_kib"] < 72 << 10)
    checks.expect("every process is reported", len(report["processes"]) == 2)
    slow = checks.compile("slow", PEAK, "-DPAUSE_US=400000")
    report = checks.run("--", "sh", "-c", f"{slow} & {slow} & wait")
    checks.expect("the tree's peak adds what lives at one time",
                  report["tree_peak_kib"] >= 128 << 10)
    report = checks.run("--", "sh", "-c", f"{slow}; {slow}; exit 0")
    checks.expect("the tree's peak does not add what lives one after the other",
                  report["tree_peak_kib"] < 80 << 10)
    report = checks.run("--", "sh", "-c", "kill -9 $$")
    checks.expect("a command that a signal ended says so", report["signal"] == 9)
    report = checks.run("--timeout", "1", "--", "sleep", "30")
    checks.expect("a command that takes too long is ended",
                  report["timed_out"] and 0.9 < report["wall_s"] < 5)
    report = checks.run("--", "sh", "-c", "sleep 30 & exit 0")
    checks.expect("processes left behind are counted", report["left_running"] == 1)
    spawn = "import subprocess, threading; " \
            "t = threading.Thread(target=lambda: subprocess.run(['/bin/ls'])); t.start(); t.join()"
    report = checks.run("--", "/usr/bin/python3", "-c", spawn)
    checks.expect("a child that a thread started is at least noticed",
                  report["processes"][0]["hidden_children"])
    report = checks.run("--trace-threads", "--", "/usr/bin/python3", "-c", spawn)
    checks.expect("a child that a thread started is seen with --trace-threads",
                  len(report["processes"]) == 2)


def check_peers(checks: Checks, directory: Path) -> None:
    for library in sorted(directory.glob("lib*.so")):
        report = checks.run("--env", f"LD_PRELOAD={library}", "--", "/bin/ls", "/")
        checks.expect(f"{library.name} is proved to own malloc", owners(report) == [library.name])


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as work:
        checks = Checks(Path(sys.argv[1]).resolve(), Path(work))
        check_proof(checks)
        check_costs(checks)
        if len(sys.argv) == 3:
            check_peers(checks, Path(sys.argv[2]).resolve())
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
