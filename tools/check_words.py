#!/usr/bin/env python3
"""Fail if a document uses a word that this project has given up, and say which one is used in its place.

What stands in `code`, or is generated, is left alone: it names what is in the sources. The words that are used
are in ARCHITECTURE.md, section 7.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["*.md", "docs/**/*.md", "src/*.md", "src/**/*.[ch]", "tests/*.md", "bench/**/*.md", "cli/*.md"]

# Each word, in all its forms, and what is said in its place.
GONE = {
    r"loot\w*": "reclaim",
    r"lone": "with a mapping of its own",
    r"patien(?:ce|t)": "decay",
    r"relief": "pressure response",
    r"hurr(?:y|ies|ied)": "without waiting",
    r"strangers?": "blocks of other owners",
    r"shed(?:s|ding)?": "flush",
    r"settles?(?! of)": "look at the fence",
    r"lies? down": "is not watched",
    r"go(?:es|ing)? home": "into its slab",
    r"indivisible": "atomic",
    r"arms": "variants",
    r"purse": "budget",
}
PATTERNS = [(re.compile(rf"\b{word}\b", re.I), said) for word, said in GONE.items()]
CODE = re.compile(
    r"^<!-- generated.*?^<!-- end of generated|^```.*?^```|^    [^\n]*$|`[^`\n]*`|\]\([^)]*\)", re.M | re.S
)


def prose_of(text: str) -> str:
    """The text without code, generated parts and the targets of links, of the same lines."""
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def problems_of(path: Path) -> Iterator[str]:
    for number, line in enumerate(prose_of(path.read_text()).split("\n"), 1):
        for pattern, said in PATTERNS:
            if found := pattern.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: '{found[0]}'; we say: {said}"


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    files = sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)})
    problems = [problem for path in files for problem in problems_of(path)]
    print("\n".join(problems) or f"words: ok ({len(files)} documents)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
