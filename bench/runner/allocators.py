"""allocators -- what can be preloaded, from where, and under which settings.

A name on the command line is one of
    hakmem                      build/libhakmem.so
    glibc                       no preload
    mimalloc3, jemalloc, …      a peer that bench/peers/build.py has built
    NAME=PATH                   any shared library
each with settings after it, to compare settings of one allocator:
    hakmem+HAKMEM_MODE=minimal
"""

from __future__ import annotations

import ctypes.util
import hashlib
import json
import re
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

from .paths import BUILD, PEERS, UsageError

OURS = "hakmem"
BASELINE = "glibc"
# The peers that the goals name for memory.
MEMORY_PEERS = ("mimalloc3", "jemalloc", "snmalloc")


@dataclass
class Allocator:
    """One column of the table."""

    name: str
    library: Path | None  # None: glibc, nothing preloaded
    version: str
    compiler: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    sha256: str = ""

    @property
    def is_ours(self) -> bool:
        return self.name == OURS or self.name.startswith(f"{OURS}+")

    @property
    def public_library(self) -> Path | None:
        """The path that a reader of the results can use: not that of our copy."""
        return BUILD / "libhakmem.so" if self.is_ours else self.library

    def owns(self, path: str) -> bool:
        """Whether a file that defines malloc is this allocator."""
        if self.library is None:
            return re.fullmatch(r".*/libc\.so\.6", path) is not None
        return Path(path) == self.library

    def current_sha256(self) -> str:
        return file_sha256(self.library) if self.library else ""


def file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def libc_path() -> Path:
    """The file of the libc that programs run with: preloading it gives a program with
    a bundled allocator libc's malloc back."""
    listing = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=False)
    found = re.search(r"libc\.so\.6 => (\S+)", listing.stdout)
    if not found:
        raise UsageError("cannot find libc.so.6 with ldd /bin/sh")
    return Path(found.group(1))


def glibc_version() -> str:
    libc = ctypes.CDLL(ctypes.util.find_library("c") or "libc.so.6")
    libc.gnu_get_libc_version.restype = ctypes.c_char_p
    return libc.gnu_get_libc_version().decode()


def load_peers() -> dict[str, Allocator]:
    manifest = PEERS / "peers.json"
    if not manifest.is_file():
        return {}
    peers = {}
    for name, entry in json.loads(manifest.read_text(encoding="utf-8")).items():
        library = (PEERS / entry["file"]).resolve()
        if not library.is_file():
            continue
        peers[name] = Allocator(name, library, entry["version"], entry["compiler"],
                                dict(entry["environment"]), entry["sha256"])
    return peers


def snapshot_path(sha256: str) -> Path:
    return BUILD / "bench" / "snapshot" / f"libhakmem-{sha256[:16]}.so"


def load_ours(commit: str) -> Allocator | None:
    """A copy of the library as it is now: a build meanwhile must not change the run."""
    library = BUILD / "libhakmem.so"
    if not library.exists():
        return None
    content = library.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    copy = snapshot_path(sha256)
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not copy.is_file() or file_sha256(copy) != sha256:
        copy.write_bytes(content)
        copy.chmod(0o755)
    return Allocator(OURS, copy, commit, sha256=sha256)


def as_recorded(allocator: Allocator, sha256: str) -> Allocator:
    """For going on with a campaign: the copy of our library that it began with."""
    copy = snapshot_path(sha256)
    if allocator.is_ours and allocator.sha256 != sha256 and copy.is_file():
        return replace(allocator, library=copy, sha256=sha256)
    return allocator


def known(commit: str) -> dict[str, Allocator]:
    """All that are built, in the order of the table's columns."""
    found = {}
    ours = load_ours(commit)
    if ours is not None:
        found[OURS] = ours
    found.update(load_peers())
    found[BASELINE] = Allocator(BASELINE, None, glibc_version())
    return found


def with_settings(base: Allocator, settings: list[str]) -> Allocator:
    environment = dict(base.environment)
    for setting in settings:
        name, separator, value = setting.partition("=")
        if not separator:
            raise UsageError(f"'{setting}' after '+' is not NAME=VALUE")
        environment[name] = value
    name = "+".join([base.name, *settings])
    return Allocator(name, base.library, base.version, base.compiler, environment, base.sha256)


def choose(names: list[str], commit: str) -> list[Allocator]:
    """The allocators with these names; all that are known when there are none."""
    available = known(commit)
    if not names:
        return list(available.values())
    chosen = []
    for text in names:
        name, *settings = text.split("+")
        given, separator, path = name.partition("=")
        if separator:
            library = Path(path).resolve()
            if not library.is_file():
                raise UsageError(f"{path}: no such library")
            base = Allocator(given, library, "given", sha256=file_sha256(library))
        elif name in available:
            base = available[name]
        else:
            raise UsageError(f"no allocator '{name}'; there are {', '.join(available)} "
                             "(peers are built by bench/peers/build.py)")
        chosen.append(with_settings(base, settings) if settings else base)
    return chosen
