"""The npm package: the files of packaging/node/, the command line and the libraries, laid out as when installed. npm links the
command into its folder of commands, without a script in between.
"""

from __future__ import annotations

import json
from pathlib import Path

from archives import Entries, tarball
from wheel import INSTALLED

PROCESSORS = {"x86_64": "x64", "aarch64": "arm64"}


def _about(version: str, machine: str, libc: str) -> bytes:
    about = {
        "name": "hakmem",
        "version": version,
        "description": "A memory allocator for Linux: the library, and a command line that runs, checks, profiles and compares programs",
        "license": "MIT",
        "main": "index.js",
        "bin": {"hakmem": "bin/hakmem"},
        "os": ["linux"],
        "cpu": [PROCESSORS[machine]],
        "libc": [libc],
    }
    return (json.dumps(about, indent=2) + "\n").encode()


def write(root: Path, installed: Entries, version: str, target: str, epoch: int, out: Path) -> Path:
    """`installed`: names below usr/. `target`: processor and C library, such as x86_64-glibc."""
    content: Entries = {path.name: path for path in (root / "packaging/node").iterdir()}
    for name in INSTALLED:
        if name in installed:
            file = installed[name]
            content[name] = file.resolve() if isinstance(file, Path) else file  # npm leaves links out
    content["LICENSE"] = root / "LICENSE"
    content["package.json"] = _about(version, *target.split("-"))
    path = out / f"hakmem-npm-{version}-{target}.tgz"
    path.write_bytes(tarball(content, epoch, "package/"))
    return path
