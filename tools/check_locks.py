#!/usr/bin/env python3
"""Fail if a fuzz target's Cargo.lock lacks what our crates depend on: else only tools/fuzz would notice, which builds with --locked."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

CLI = Path(__file__).resolve().parents[1] / "cli"


def dependencies(manifest: dict) -> set[str]:
    """Those of the crate itself: another crate's lock file has none for its tests."""
    tables = [manifest, *manifest.get("target", {}).values()]
    return {name for table in tables for kind in ("dependencies", "build-dependencies") for name in table.get(kind, {})}


def problems_of(lock: Path, ours: dict[str, set[str]]) -> Iterator[str]:
    for package in tomllib.loads(lock.read_text())["package"]:
        wanted = ours.get(package["name"])
        found = {entry.split()[0] for entry in package.get("dependencies", [])}
        if wanted is not None and found != wanted:
            names = ", ".join(sorted(found ^ wanted))
            yield f"{lock.relative_to(CLI.parent)}: {package['name']} there and in its Cargo.toml differ by {names}: cargo update --workspace"


def main() -> int:
    manifests = [tomllib.loads(path.read_text()) for path in CLI.glob("*/Cargo.toml")]
    ours = {manifest["package"]["name"]: dependencies(manifest) for manifest in manifests}
    locks = sorted(CLI.glob("*/fuzz/Cargo.lock"))
    problems = [problem for lock in locks for problem in problems_of(lock, ours)]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    print(f"locks: {'FAILED' if problems else 'ok'} ({len(locks)} files)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
