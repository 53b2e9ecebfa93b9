#!/usr/bin/env python3
"""Print the parts of a release: a list in CycloneDX 1.5 (JSON), from the files that pin them.

libhakmem consists of its own code and the C library; the command line and its HTML page have the crates of
cli/Cargo.lock and the packages of cli/report/package-lock.json, each with its version and checksum. The
same sources give the same list: it has no date.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version_of(root: Path) -> str:
    found = re.search(r"project\(hakmem\s+VERSION\s+([\d.]+)", (root / "CMakeLists.txt").read_text())
    if found is None:
        raise ValueError("CMakeLists.txt: no project(hakmem VERSION …)")
    return found[1]


def part(kind: str, name: str, version: str, checksum: tuple[str, str] | None) -> dict[str, object]:
    one: dict[str, object] = {
        "type": "library", "name": name, "version": version,
        "purl": f"pkg:{kind}/{name.replace('@', '%40')}@{version}",
    }
    if checksum is not None:
        one["hashes"] = [{"alg": checksum[0], "content": checksum[1]}]
    return one


def crates(lock: Path) -> list[dict[str, object]]:
    parts = []
    for block in lock.read_text().split("[[package]]\n")[1:]:
        field = dict(re.findall(r'^(\w+) = "(.*)"$', block, re.M))
        if "source" in field:  # the others are ours
            parts.append(part("cargo", field["name"], field["version"], ("SHA-256", field["checksum"])))
    return parts


def packages(lock: Path) -> list[dict[str, object]]:
    parts = []
    for path, field in json.loads(lock.read_text())["packages"].items():
        if path and not field.get("link"):
            algorithm, _, text = field["integrity"].partition("-")
            checksum = (algorithm.upper().replace("SHA", "SHA-"), base64.b64decode(text).hex())
            parts.append(part("npm", path.rpartition("node_modules/")[2], field["version"], checksum))
    return parts


def main() -> int:
    if len(sys.argv) > 1:
        print(__doc__.split("\n", maxsplit=1)[0], file=sys.stderr)
        print("usage: tools/sbom.py", file=sys.stderr)
        return 2
    try:
        parts = crates(ROOT / "cli" / "Cargo.lock") + packages(ROOT / "cli" / "report" / "package-lock.json")
        document = {
            "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": {"type": "library", "name": "hakmem", "version": version_of(ROOT),
                                       "licenses": [{"license": {"id": "MIT"}}]}},
            "components": parts,
        }
    except (OSError, ValueError, KeyError) as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    json.dump(document, sys.stdout, indent=1, ensure_ascii=False)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
