#!/usr/bin/env python3
"""Fail if a document links to a file or a heading that does not exist, or shows a missing picture.

Links to other sites are left alone: checks need no network. Headings have the anchors that GitHub and the site
(tools/site) give them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["docs", "src", "tests", "bench", "cli", "rust", "packaging"]
BUILT = {"target", "vendor", "node_modules"}
CODE_BLOCK = re.compile(r"^(```.*?^```|    [^\n]*)$", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*<?([^()\s>]+(?:\([^()\s]*\)[^()\s>]*)?)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.M)
HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)?$", re.M)
ELSEWHERE = re.compile(r"^[a-z][a-z+.-]*:")


def blanked(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def anchor_of(heading: str) -> str:
    """GitHub's anchor: lower case, no punctuation, dashes for blanks; of a link, its text."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors_in(text: str) -> set[str]:
    """A heading that occurs twice has a number at the end of the second one's anchor."""
    anchors: set[str] = set()
    seen: dict[str, int] = {}
    for heading in HEADING.findall(CODE_BLOCK.sub(blanked, text)):
        anchor = anchor_of(heading)
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        anchors.add(f"{anchor}-{count}" if count else anchor)
    return anchors | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def targets_in(text: str) -> Iterator[tuple[int, str]]:
    """Each link's target, and the number of its line."""
    prose = CODE.sub(blanked, CODE_BLOCK.sub(blanked, text))
    for found in LINK.finditer(prose):
        yield prose.count("\n", 0, found.start()) + 1, found[1] or found[2]


def problem_of(root: Path, page: Path, target: str) -> str:
    """What is wrong with the link, or an empty text."""
    name, _, anchor = unquote(target).partition("#")
    path = page.parent / name if name else page
    if not path.exists():
        return f"there is no {name}"
    if path.resolve() != root and root not in path.resolve().parents:
        return f"{name} lies outside the project"
    if anchor and path.suffix == ".md" and anchor not in anchors_in(path.read_text()):
        return f"{path.name} has no heading #{anchor}"
    return ""


def problems_of(root: Path, page: Path) -> Iterator[str]:
    for line, target in targets_in(page.read_text()):
        if not ELSEWHERE.match(target) and (problem := problem_of(root, page, target)):
            yield f"{page.relative_to(root)}:{line}: {problem}"


def documents(root: Path) -> list[Path]:
    found = [*root.glob("*.md"), *(path for folder in FOLDERS for path in (root / folder).rglob("*.md"))]
    return sorted(path for path in found if not BUILT.intersection(path.relative_to(root).parts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="the sources, or an installed share/doc/hakmem")
    root = parser.parse_args().root.resolve()
    pages = documents(root)
    problems = [problem for page in pages for problem in problems_of(root, page)]
    print("\n".join(problems) or f"links: ok ({len(pages)} documents)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
