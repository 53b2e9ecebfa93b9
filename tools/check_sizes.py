#!/usr/bin/env python3
"""Fail if a file has more than 500 lines or a function more than 70."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ["src", "include", "record", "cli", "rust", "tests", "bench", "tools", "cmake"]
SOURCES = {".c", ".h", ".cpp", ".hpp", ".py", ".sh", ".cmake", ".rs"}
FILE_LINES = 500
FUNCTION_LINES = 70


def c_functions(text: str) -> Iterator[tuple[int, int]]:
    """First line and length of each function body: in the house style its braces are in column 0."""
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start - 1
            start = 0


def rust_functions(text: str) -> Iterator[tuple[int, int]]:
    """A function ends at the first brace that is indented as far as its first line."""
    started: tuple[int, str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"( *)(?:pub(?:\([a-z]+\))? )?(?:unsafe |extern \"C\" )*fn ", line)
        if found and started is None and not line.rstrip().endswith((";", "}")):
            started = (number, found.group(1))
        elif started is not None and line == started[1] + "}":
            yield started[0], number - started[0]
            started = None


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, (node.end_lineno or node.lineno) - node.lineno


FUNCTIONS = {".py": python_functions, ".rs": rust_functions}


def problems_of(path: Path) -> Iterator[str]:
    text = path.read_text()
    lines = text.count("\n")
    if lines > FILE_LINES:
        yield f"{path}: {lines} lines; at most {FILE_LINES}"
    functions = FUNCTIONS.get(path.suffix, c_functions)
    for start, length in functions(text):
        if length > FUNCTION_LINES:
            yield f"{path}:{start}: a function of {length} lines; at most {FUNCTION_LINES}"


def is_ours(path: Path) -> bool:
    """Not the output of a build inside the tree."""
    return path.suffix in SOURCES and not {"target", "vendor"} & set(path.parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*", default=[Path(f) for f in FOLDERS])
    folders = parser.parse_args().folders
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if is_ours(path)]
    problems = [problem for path in files for problem in problems_of(path)]
    print("\n".join(problems) or f"sizes: ok ({len(files)} files)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
