#!/usr/bin/env python3
"""Runs the declared workloads and compares their answers with the declared ones.

Says nothing about speed: it checks that the programs, and the allocator that is preloaded with
--preload, are right.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GROUPS = ("single-thread", "multi-thread", "large", "latency")
FORMS = {"full": ("args", "answer"), "quick": ("quick_args", "quick_answer")}
TEXT_FIELDS = ("name", "about", "group", "answer", "quick_answer")
LIST_FIELDS = ("args", "quick_args")


class DeclarationError(Exception):
    """A .toml file that does not follow the README."""


def read_declaration(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields program and variant for each variant that `path` declares."""
    declaration = tomllib.loads(path.read_text())
    program = declaration.get("program")
    if not isinstance(program, str) or not declaration.get("variant"):
        raise DeclarationError(f"{path.name}: needs a program and at least one [[variant]]")
    for variant in declaration["variant"]:
        texts_right = all(isinstance(variant.get(field), str) for field in TEXT_FIELDS)
        lists_right = all(isinstance(variant.get(field), list) for field in LIST_FIELDS)
        if not texts_right or not lists_right or not isinstance(variant.get("threads"), int):
            raise DeclarationError(f"{path.name}: a variant lacks a field, see README.md")
        if variant["group"] not in GROUPS:
            raise DeclarationError(f"{path.name}: {variant['group']} is no group")
        yield program, variant


def read_declarations() -> list[tuple[str, dict[str, Any]]]:
    """All variants, in the order of the files' names; names must differ."""
    found = [pair for path in sorted(HERE.glob("*.toml")) for pair in read_declaration(path)]
    names = [variant["name"] for _, variant in found]
    for name in set(names):
        if names.count(name) > 1:
            raise DeclarationError(f"two variants are called {name}")
    return found


def run_variant(command: list[str], preload: str | None, timeout: float) -> tuple[str, str]:
    """Returns the answer, or an empty text, and what went wrong, or an empty text."""
    environment = dict(os.environ)
    if preload is not None:
        environment["LD_PRELOAD"] = preload
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except OSError as error:
        return "", f"cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return "", f"not done after {timeout:.0f} s"
    # The loader only warns about a library that it cannot preload, and the run would be glibc's.
    if "cannot be preloaded" in done.stderr:
        return "", done.stderr.strip().splitlines()[0]
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return "", f"exit code {done.returncode}: {last}"
    answers = [line[8:] for line in done.stdout.splitlines() if line.startswith("answer: ")]
    return (answers[0], "") if len(answers) == 1 else ("", "printed no single answer")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=HERE.parents[1] / "build" / "bench",
                        help="folder of the built programs (default: build/bench)")
    parser.add_argument("--preload", help="shared library that replaces malloc")
    parser.add_argument("--form", choices=sorted(FORMS), default="quick")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run")
    parser.add_argument("names", nargs="*", help="variants to run (default: all)")
    return parser.parse_args()


def check(options: argparse.Namespace) -> bool:
    """Runs what was asked for; True when every answer was right."""
    arguments_field, answer_field = FORMS[options.form]
    declared = read_declarations()
    unknown = set(options.names) - {variant["name"] for _, variant in declared}
    if unknown:
        raise DeclarationError(f"no variant is called {sorted(unknown)[0]}")
    all_right = True
    for program, variant in declared:
        if options.names and variant["name"] not in options.names:
            continue
        command = [str(options.bin / program), *variant[arguments_field]]
        answer, problem = run_variant(command, options.preload, options.timeout)
        if not problem and answer != variant[answer_field]:
            problem = f"answer {answer}, declared {variant[answer_field]}"
        all_right = all_right and not problem
        print(f"{'WRONG' if problem else 'right'}  {variant['name']:24} {problem}".rstrip(),
              flush=True)
    return all_right


def main() -> int:
    options = parse_arguments()
    try:
        return 0 if check(options) else 1
    except (DeclarationError, tomllib.TOMLDecodeError) as error:
        print(f"check_answers: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
