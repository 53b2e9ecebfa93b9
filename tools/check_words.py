#!/usr/bin/env python3
"""Fail if a document, a comment or a name uses a word that this project has given up, and print the word to use instead.

`code` in documents, and generated text, is not checked: it has the names of the sources. In sources comments are
checked, in the allocator's own also the names. The words to use are in ARCHITECTURE.md, section 7.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["*.md", "docs/**/*.md", "src/*.md", "tests/*.md", "bench/**/*.md", "cli/*.md"]
NAMED = ["src/**/*.[ch]", "src/**/*.def", "record/*.[ch]", "include/**/*.h*"]  # names and comments
SAID = ["cli/**/*.rs", "rust/**/*.rs", "tests/**/*.[ch]", "tests/models/*.pml", "bench/**/*.[ch]"]  # comments

# Each word, in all its forms, and the word to use instead.
GONE = {
    r"loot\w*": "reclaim",
    r"lone": "with a mapping of its own",
    r"patience": "decay, timeout",
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
# The doctor of the command line has patients, and a strategy of the learner has that name.
GONE_IN_C = {r"patient": "decay"}


# A word may be a part_of_a_name.
def patterns_of(words: dict[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(rf"(?<![A-Za-z])(?:{word})(?![A-Za-z])", re.I), said) for word, said in words.items()]


EVERYWHERE = patterns_of(GONE)
IN_C = patterns_of(GONE | GONE_IN_C)  # and in documents
CODE = re.compile(
    r"^<!-- generated.*?^<!-- end of generated|^```.*?^```|^    [^\n]*$|`[^`\n]*`|\]\([^)]*\)", re.M | re.S
)


def prose_of(text: str) -> str:
    """The text without code, generated parts and the targets of links, with the same lines."""
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def comments_of(text: str) -> str:
    return "\n".join(line[line.find("//") :] if "//" in line else "" for line in text.split("\n"))


def problems_of(path: Path, text: str) -> Iterator[str]:
    patterns = IN_C if path.suffix in {".md", ".c", ".h"} else EVERYWHERE
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, said in patterns:
            if found := pattern.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: '{found[0]}'; we say: {said}"


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    kinds = [(DOCUMENTS, prose_of), (NAMED, str), (SAID, comments_of)]
    texts = {
        path: what_counts(path.read_text())
        for globs, what_counts in kinds
        for pattern in globs
        for path in ROOT.glob(pattern)
        if "target" not in path.parts
    }
    problems = [problem for path, text in sorted(texts.items()) for problem in problems_of(path, text)]
    print("\n".join(problems) or f"words: ok ({len(texts)} files)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
