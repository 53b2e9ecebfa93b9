#!/usr/bin/env python3
"""Build the peer allocators that hakmem is measured against.

    bench/peers/build.py                 build all that are missing or out of date
    bench/peers/build.py jemalloc        only these
    bench/peers/build.py --list          print what is built, build nothing

Sources come from crates at the exact versions of Cargo.lock, by `cargo vendor`.
Each peer becomes DIR/lib<name>.so, and DIR/peers.json says what each one is.
A peer that cannot be built is reported in one line and left out.
Exit code: 0 all asked for are there, 1 some are not, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from recipes import PEERS, BuildError, Compilers, Job, Peer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# tcmalloc's and snmalloc's headers need the C++ library support of clang 16.
CLANG_OLDEST = 16
CLANG_NEWEST = 25
# The first cargo that reads manifests of the edition 2024, which tcmalloc's crate is.
CARGO_OLDEST_MINOR = 85

# What a preloaded library has to define, or blocks of two allocators would meet.
NEEDED_SYMBOLS = {
    "malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc",
    "memalign", "malloc_usable_size",
}


def find_clang() -> tuple[str, str] | None:
    """The newest clang, as (C, C++) commands."""
    names = [f"-{number}" for number in range(CLANG_NEWEST, CLANG_OLDEST - 1, -1)]
    for suffix in names:
        if shutil.which(f"clang{suffix}") and shutil.which(f"clang++{suffix}"):
            return f"clang{suffix}", f"clang++{suffix}"
    if shutil.which("clang") and shutil.which("clang++"):
        major = re.search(r"version (\d+)", version_line("clang"))
        if major and int(major.group(1)) >= CLANG_OLDEST:
            return "clang", "clang++"
    return None


def version_line(command: str) -> str:
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def find_compilers() -> Compilers:
    clang = find_clang()
    return Compilers("gcc", "g++", *(clang or (None, None)))


def find_cargo() -> str:
    """A cargo that can read the crates; distributions also install it as cargo-1.NN."""
    versioned = sorted((path.name for path in Path("/usr/bin").glob("cargo-1.*")), reverse=True)
    for name in ["cargo", *versioned]:
        found = re.match(r"cargo 1\.(\d+)", version_line(name)) if shutil.which(name) else None
        if found and int(found.group(1)) >= CARGO_OLDEST_MINOR:
            return name
    raise BuildError(f"cargo 1.{CARGO_OLDEST_MINOR} or newer is missing: install rustup, or "
                     "cargo-web on Debian 12")


def locked_crates() -> dict[str, dict[str, str]]:
    lock = tomllib.loads((HERE / "Cargo.lock").read_text(encoding="utf-8"))
    return {package["name"]: package for package in lock["package"]}


def vendor(directory: Path) -> Path:
    """Fetch the crates' sources, unless those of this Cargo.lock are there."""
    target = directory / "vendor"
    stamp = directory / "vendor.sha256"
    wanted = hashlib.sha256((HERE / "Cargo.lock").read_bytes()).hexdigest()
    if target.is_dir() and stamp.is_file() and stamp.read_text().strip() == wanted:
        return target
    done = subprocess.run(
        [find_cargo(), "vendor", "--locked", "--quiet", "--manifest-path", HERE / "Cargo.toml", target],
        capture_output=True, text=True, check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BuildError(f"cargo vendor failed: {reason}")
    stamp.write_text(wanted + "\n")
    return target


def cache_key(peer: Peer, crates: dict[str, dict[str, str]], compilers: Compilers) -> str:
    """Changes with the sources, the recipe's text and the compilers, nothing else."""
    crate = crates[peer.crate]
    parts = [
        crate["version"],
        crate["checksum"],
        inspect.getsource(peer.build),
        *(inspect.getsource(helper) for helper in peer.helpers),
        version_line(compilers.gcc),
        version_line(compilers.best_c()),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def check_library(path: Path, environment: dict[str, str]) -> None:
    """A library that does not define the whole family, or does not load, is no peer."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=False
    )
    defined = {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines() if line}
    missing = sorted(NEEDED_SYMBOLS - defined)
    if missing:
        raise BuildError(f"{path.name} does not define {', '.join(missing)}")
    trial = subprocess.run(
        ["/bin/ls", "/"], capture_output=True, text=True, check=False,
        env={**os.environ, **environment, "LD_PRELOAD": str(path)},
    )
    if trial.returncode != 0 or trial.stderr:
        reason = (trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"])[0]
        raise BuildError(f"{path.name} does not run /bin/ls: {reason}")


def compiler_of(peer: Peer, compilers: Compilers) -> str:
    uses_best = "best_c" in inspect.getsource(peer.build)
    return version_line(compilers.best_c() if uses_best else compilers.gcc)


def build_peer(peer: Peer, crate: Path, directory: Path, jobs: int, compilers: Compilers) -> Path:
    """Build one peer into its final place, or raise and leave the old one removed."""
    final = directory / f"lib{peer.name}.so"
    work = directory / "work" / peer.name
    log = directory / "log" / f"{peer.name}.log"
    final.unlink(missing_ok=True)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    output = work / final.name
    peer.build(Job(crate, work, output, log, compilers, jobs))
    check_library(output, peer.environment)
    output.replace(final)
    shutil.rmtree(work)
    return final


def load_manifest(directory: Path) -> dict[str, dict]:
    path = directory / "peers.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def store_manifest(directory: Path, manifest: dict[str, dict]) -> None:
    ordered = {peer.name: manifest[peer.name] for peer in PEERS if peer.name in manifest}
    temporary = directory / "peers.json.new"
    temporary.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")
    temporary.replace(directory / "peers.json")


def is_current(directory: Path, entry: dict | None, key: str) -> bool:
    if entry is None or entry["key"] != key:
        return False
    path = directory / entry["file"]
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]


def build_all(names: list[str], directory: Path, jobs: int) -> list[str]:
    """Build what is out of date; returns one line for each peer that failed."""
    compilers = find_compilers()
    crates = locked_crates()
    sources = vendor(directory)
    manifest = load_manifest(directory)
    failures = []
    if compilers.clang is None:
        print(f"peers: no clang >= {CLANG_OLDEST}: tcmalloc and snmalloc are built with gcc, "
              "which is a few percent slower", file=sys.stderr)
    for peer in PEERS:
        key = cache_key(peer, crates, compilers)
        if peer.name not in names or is_current(directory, manifest.get(peer.name), key):
            continue
        manifest.pop(peer.name, None)
        store_manifest(directory, manifest)
        started = time.monotonic()
        try:
            path = build_peer(peer, sources / peer.crate, directory, jobs, compilers)
        except (BuildError, OSError) as error:
            failures.append(f"peers: {peer.name} left out: {error}")
            print(failures[-1], file=sys.stderr, flush=True)
            continue
        print(f"peers: built {peer.name} in {time.monotonic() - started:.0f} s",
              file=sys.stderr, flush=True)
        manifest[peer.name] = {
            "version": peer.version,
            "crate": f"{peer.crate} {crates[peer.crate]['version']}",
            "compiler": compiler_of(peer, compilers),
            "file": path.name,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "environment": peer.environment,
            "key": key,
        }
        store_manifest(directory, manifest)
    return failures


def print_table(directory: Path) -> None:
    rows = [("peer", "version", "sha256", "path", "compiler")]
    for name, entry in load_manifest(directory).items():
        path = directory / entry["file"]
        rows.append((name, entry["version"], entry["sha256"][:16], str(path), entry["compiler"]))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + "  " + row[4])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="peers to build (default: all)")
    parser.add_argument("--dir", type=Path, default=ROOT / "build" / "peers",
                        help="where sources and libraries go (default: build/peers)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="print what is built and stop")
    arguments = parser.parse_args()
    known = {peer.name for peer in PEERS}
    for name in arguments.names:
        if name not in known:
            parser.error(f"no peer is called '{name}'; there are {', '.join(sorted(known))}")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    directory = arguments.dir.resolve()
    names = arguments.names or [peer.name for peer in PEERS]
    failures = []
    if not arguments.list:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            failures = build_all(names, directory, arguments.jobs)
        except (BuildError, OSError) as error:
            print(f"peers: {error}", file=sys.stderr)
            return 1
    print_table(directory)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
