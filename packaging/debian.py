"""Debian packages out of an installed tree: libhakmem1 has what programs need, libhakmem-dev what compilers need."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from pathlib import Path

from archives import Entries, tarball

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hakmem

Files: *
Copyright: {holder}
License: Expat
"""

SHARED = {
    "section": "libs",
    "depends": "libc6 (>= 2.17)",
    "summary": "memory allocator that replaces malloc",
    "text": "hakmem replaces malloc, free and their family in any program, when it is\n"
    " preloaded or linked. This package has the shared library.",
}
DEVELOPMENT = {
    "section": "libdevel",
    "depends": "libhakmem1 (= {version})",
    "summary": "memory allocator that replaces malloc (development files)",
    "text": "hakmem replaces malloc, free and their family in any program, when it is\n"
    " preloaded or linked. This package has the header, the archive, a\n"
    " pkg-config file, a CMake package and the manual pages of its C API.",
}


def _maintainer() -> str:
    """Who publishes says so, by the variables that Debian's own tools read."""
    return f"{os.environ.get('DEBFULLNAME', 'hakmem')} <{os.environ.get('DEBEMAIL', 'hakmem@localhost')}>"


def _ar(members: dict[str, bytes], epoch: int) -> bytes:
    archive = b"!<arch>\n"
    for name, data in members.items():
        head = f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n"
        archive += head.encode() + data + b"\n" * (len(data) % 2)
    return archive


def _copyright(licence: str) -> bytes:
    holder = next(line for line in licence.splitlines() if line.startswith("Copyright"))
    holder = holder.replace("Copyright (c) ", "")
    text = licence[licence.index("Permission") :].rstrip()
    body = "\n".join(f" {line}" if line else " ." for line in text.splitlines())
    return (COPYRIGHT.format(holder=holder) + body + "\n").encode()


def _compressed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _documents(package: str, root: Path, version: str, epoch: int) -> Entries:
    day = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch))
    changes = f"hakmem ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {_maintainer()}  {day}\n"
    return {
        f"usr/share/doc/{package}/copyright": _copyright((root / "LICENSE").read_text()),
        f"usr/share/doc/{package}/changelog.gz": _compressed(changes.encode()),
    }


def _package(name: str, about: dict[str, str], files: Entries, more: Entries, about_build: tuple) -> bytes:
    version, machine, epoch = about_build
    sizes = [len(data) if isinstance(data, bytes) else data.stat().st_size for data in files.values()]
    control = (
        f"Package: {name}\nVersion: {version}\nArchitecture: {machine}\n"
        f"Maintainer: {_maintainer()}\n"
        f"Installed-Size: {sum(sizes) // 1024 + 1}\nDepends: {about['depends'].format(version=version)}\n"
        f"Section: {about['section']}\nPriority: optional\nMulti-Arch: same\nSource: hakmem\n"
        f"Description: {about['summary']}\n {about['text']}\n"
    )
    sums = ""
    for path, data in sorted(files.items()):
        if isinstance(data, bytes) or not data.is_symlink():
            content = data if isinstance(data, bytes) else data.read_bytes()
            sums += f"{hashlib.md5(content).hexdigest()}  {path}\n"
    parts: Entries = {"control": control.encode(), "md5sums": sums.encode()} | more
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tarball(parts, epoch, "./"),
        "data.tar.gz": tarball(files, epoch, "./", with_folders=True),
    }
    return _ar(members, epoch)


def write(root: Path, installed: Entries, version: str, machine: tuple[str, str], epoch: int, out: Path) -> list[Path]:
    """`installed`: names below usr/. `machine`: Debian's name, and that of the folder of its libraries."""
    debian, triplet = machine
    shared: Entries = _documents("libhakmem1", root, version, epoch)
    development: Entries = _documents("libhakmem-dev", root, version, epoch)
    for name, content in installed.items():
        path = "usr/" + name.replace("lib/", f"lib/{triplet}/", 1) if name.startswith("lib/") else f"usr/{name}"
        if name.startswith("lib/libhakmem.so.1"):
            shared[path] = content
        elif name.startswith(("lib/", "include/")):
            development[path] = content
        elif name.startswith("share/man/man3/"):
            development[f"{path}.gz"] = _compressed(content if isinstance(content, bytes) else content.read_bytes())
    more: Entries = {
        "shlibs": b"libhakmem 1 libhakmem1\n",
        "triggers": b"activate-noawait ldconfig\n",
    }
    build = (version, debian, epoch)
    written = []
    for package, data in {
        "libhakmem1": _package("libhakmem1", SHARED, shared, more, build),
        "libhakmem-dev": _package("libhakmem-dev", DEVELOPMENT, development, {}, build),
    }.items():
        path = out / f"{package}_{version}_{debian}.deb"
        path.write_bytes(data)
        written.append(path)
    return written
