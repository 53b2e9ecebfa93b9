"""Debian packages from an installed tree: libhakmem1 has what programs need, libhakmem-dev what compilers need, and hakmem the
command line with its documents.
"""

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
    "more": "Multi-Arch: same\n",
    "depends": "libc6 (>= 2.17)",
    "summary": "memory allocator that replaces malloc",
    "text": "hakmem replaces malloc, free and their family in any program, when it is\n"
    " preloaded or linked. This package has the shared library.",
}
DEVELOPMENT = {
    "section": "libdevel",
    "more": "Multi-Arch: same\n",
    "depends": "libhakmem1 (= {version})",
    "summary": "memory allocator that replaces malloc (development files)",
    "text": "hakmem replaces malloc, free and their family in any program, when it is\n"
    " preloaded or linked. This package has the header, the archive, a\n"
    " pkg-config file, a CMake package and the manual pages of its C API.",
}


TOOLS = {
    "section": "utils",
    "depends": "libhakmem1 (= {version}), libc6 (>= 2.17), libgcc-s1",
    "summary": "run, check, profile and compare programs with the allocator hakmem",
    "text": "hakmem replaces malloc, free and their family in any program. This package\n"
    " has the command line, which runs programs with it, proves which allocator a\n"
    " process uses, shows what a heap is made of, who allocates and what leaks,\n"
    " and measures a program with several allocators side by side.",
}


def _maintainer() -> str:
    """The publisher, from the variables that Debian's own tools read."""
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


def _place(name: str, path: str, content: Path | bytes) -> tuple[str, str, Path | bytes] | None:
    """For a file below usr/: its package, its path, and its content, as Debian requires them."""
    if name.startswith("lib/libhakmem.so.1"):
        return "libhakmem1", path, content
    if name == "lib/libhakmem_record.so":  # what only one package loads has a folder of its own
        return "hakmem", path.replace("libhakmem_record", "hakmem/libhakmem_record"), content
    if name.startswith(("lib/", "include/")):
        return "libhakmem-dev", path, content
    if name.startswith("share/man/"):
        package = "libhakmem-dev" if "/man3/" in name else "hakmem"
        return package, f"{path}.gz", _compressed(content if isinstance(content, bytes) else content.read_bytes())
    if name.startswith("share/zsh/"):
        return "hakmem", path.replace("site-functions", "vendor-completions"), content
    if name in ("share/doc/hakmem/LICENSE", "share/doc/hakmem/CHANGELOG.md"):
        return None  # `copyright` and `changelog.gz`
    return "hakmem", path, content


def _package(name: str, about: dict[str, str], files: Entries, more: Entries, about_build: tuple) -> bytes:
    version, machine, epoch = about_build
    sizes = [len(data) if isinstance(data, bytes) else data.stat().st_size for data in files.values()]
    control = (
        f"Package: {name}\nVersion: {version}\nArchitecture: {machine}\n"
        f"Maintainer: {_maintainer()}\n"
        f"Installed-Size: {sum(sizes) // 1024 + 1}\nDepends: {about['depends'].format(version=version)}\n"
        f"Section: {about['section']}\nPriority: optional\n{about.get('more', '')}Source: hakmem\n"
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
    """`installed`: names below usr/. `machine`: Debian's name for it, and the name of its library folder."""
    debian, triplet = machine
    abouts = {"libhakmem1": SHARED, "libhakmem-dev": DEVELOPMENT, "hakmem": TOOLS}
    packages = {package: _documents(package, root, version, epoch) for package in abouts}
    for name, content in installed.items():
        path = "usr/" + name.replace("lib/", f"lib/{triplet}/", 1) if name.startswith("lib/") else f"usr/{name}"
        place = _place(name, path, content)
        if place is not None:
            package, path, content = place
            packages[package][path] = content
    more: dict[str, Entries] = {
        "libhakmem1": {"shlibs": b"libhakmem 1 libhakmem1\n", "triggers": b"activate-noawait ldconfig\n"}
    }
    written = []
    for package, about in abouts.items():
        path = out / f"{package}_{version}_{debian}.deb"
        build = (version, debian, epoch)
        path.write_bytes(_package(package, about, packages[package], more.get(package, {}), build))
        written.append(path)
    return written
