#!/usr/bin/env python3
"""Put a mistake into a copy of the allocator and expect a test to notice it.

A mutant is a patch. The text before its first difference says what is wrong, and has the lines

    test: stress/handover      the test that must fail
    build: tsan                the preset to build (default: release)
    runs: 3                    how often the test may run until it notices (default: 1)

Exit code: 0 noticed, 1 not noticed, 2 the mutant itself is broken (does not apply, does not
compile, or names no test), 77 the test is skipped here.
"""

from __future__ import annotations

import argparse
import fcntl
import filecmp
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPIED = ["CMakeLists.txt", "CMakePresets.json", "cmake", "src", "include", "tests", "tools"]
SKIPPED = 77
HANG_SECONDS = 120  # a mutant that makes the test hang is noticed, too


class Broken(Exception):
    """The mutant proves nothing about the tests."""


class Mutant(NamedTuple):
    patch: Path
    test: str
    build: str
    runs: int


def read_mutant(patch: Path) -> Mutant:
    head = re.split(r"^(?:diff |--- )", patch.read_text(), maxsplit=1, flags=re.M)[0]
    said = dict(re.findall(r"^(test|build|runs): *(\S+)$", head, re.M))
    if "test" not in said:
        raise Broken(f"{patch}: no line 'test: <name of a test>' before the difference")
    return Mutant(patch, said["test"], said.get("build", "release"), int(said.get("runs", "1")))


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise Broken(f"{' '.join(map(str, command))}\n{tail}")
    return done.stdout


@contextmanager
def own_folder(folders: Path) -> Iterator[Path]:
    """The first of `folders` that no other run uses: its content was built for another mutant, and is mostly the same."""
    for number in itertools.count():
        folder = folders / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield folder
            return


def copy_sources(to: Path) -> None:
    """Make `to` the same as the sources. Only files that differ are written, and so compiled again: those changed
    since, those that the last mutant changed, and (by the patch) those that this one changes."""
    wanted = {}
    for name in COPIED:
        for path in [ROOT / name, *(ROOT / name).rglob("*")]:
            if path.is_file() and not {"mutants", "target", "__pycache__"} & set(path.relative_to(ROOT).parts):
                wanted[to / path.relative_to(ROOT)] = path
    for path in list(to.rglob("*")):
        if path.is_file() and path not in wanted and to / "build" not in path.parents:
            path.unlink()
    for copy, path in wanted.items():
        if not copy.exists() or not filecmp.cmp(path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)  # with the present time


def target_of(test: str) -> str:
    """The program that the test runs, as tests/CMakeLists.txt names it."""
    kind, _, name = test.partition("/")
    if kind not in ("unit", "promises", "misuse", "stress", "fuzz") or not name:
        raise Broken(f"a mutant cannot be judged by the test '{test}'")
    return f"{kind.removesuffix('s') if kind == 'promises' else kind}_{name.replace('/', '_')}"


def kill_session(leader: int) -> None:
    """Kill every process of the session, also those with a process group of their own."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == leader:
                os.kill(int(entry.name), signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended meanwhile


def test_outcome(test: str, build: Path) -> str:
    """'run' (passed), 'fail' or 'notrun' (skipped)."""
    report = build / "mutant.xml"
    report.unlink(missing_ok=True)
    name = f"^([a-z0-9]+/)?{re.escape(test)}$"
    # The first race is enough: the rest may never end. And only this build's tests are meant, though other
    # mutants have other builds in the same folder (tools/test).
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1", "HAKMEM_TEST_BUILDS": ""}
    ctest = subprocess.Popen(
        ["ctest", "-R", name, "--output-junit", report], cwd=build, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True,
    )
    try:
        ctest.wait(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        kill_session(ctest.pid)
        ctest.wait()
        return "fail"
    case = xml.parse(report).getroot().find("testcase")
    if case is None:
        raise Broken(f"ctest ran no test '{test}'")
    skipped = case.find("skipped")
    if skipped is not None and not skipped.get("message", "").startswith("SKIP_RETURN_CODE"):
        raise Broken(f"'{test}' did not run: {skipped.get('message')}")
    return case.get("status", "notrun")


def judge(mutant: Mutant, source: Path) -> int:
    build = source / "build" / ("" if mutant.build == "release" else mutant.build)
    copy_sources(source)
    run("patch", "-p1", "--batch", "--fuzz=0", "--no-backup-if-mismatch", "-i", mutant.patch, cwd=source)
    if not (build / "build.ninja").exists():
        run("cmake", "--preset", mutant.build, "-DHAKMEM_BENCH=OFF", "-DHAKMEM_CLI=OFF", "-DHAKMEM_WERROR=OFF",
            cwd=source)
    run("cmake", "--build", build, "--target", target_of(mutant.test), cwd=source)
    for attempt in range(1, mutant.runs + 1):
        outcome = test_outcome(mutant.test, build)
        if outcome == "fail":
            print(f"{mutant.patch.stem}: noticed by {mutant.test} (run {attempt})")
            return 0
        if outcome != "run":
            print(f"{mutant.patch.stem}: {mutant.test} is skipped here")
            return SKIPPED
    print(f"{mutant.patch.stem}: {mutant.test} passes in spite of it ({mutant.runs} runs)")
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("patch", type=Path)
    parser.add_argument("--build", type=Path, required=True, help="folder to build mutants in")
    arguments = parser.parse_args()
    patch = arguments.patch.resolve()
    try:
        with own_folder(arguments.build.resolve()) as folder:
            return judge(read_mutant(patch), folder / "source")
    except Broken as broken:
        print(f"run_mutant: {broken}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
