"""The Python wheel: the package of packaging/python/, and in it the shared library."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from archives import Entries, zipped

METADATA = """\
Metadata-Version: 2.1
Name: hakmem
Version: {version}
Summary: A memory allocator for Linux: the shared library, and a command that runs programs with it
License: MIT
License-File: LICENSE
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

{description}"""


def _record_line(name: str, content: Path | bytes) -> str:
    data = content if isinstance(content, bytes) else content.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def entries(root: Path, library: Path, version: str, platform: str) -> Entries:
    """What the wheel has in it."""
    python = root / "packaging/python"
    info = f"hakmem-{version}.dist-info"
    description = (python / "README.md").read_text()
    content: Entries = {f"hakmem/{path.name}": path for path in (python / "hakmem").glob("*.py")}
    content["hakmem/libhakmem.so.1"] = library
    content[f"{info}/LICENSE"] = root / "LICENSE"
    content[f"{info}/METADATA"] = METADATA.format(version=version, description=description).encode()
    content[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: hakmem\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
    ).encode()
    content[f"{info}/entry_points.txt"] = b"[console_scripts]\nhakmem = hakmem.__main__:main\n"
    lines = "".join(_record_line(name, data) for name, data in sorted(content.items()))
    content[f"{info}/RECORD"] = f"{lines}{info}/RECORD,,\n".encode()
    return content


def write(root: Path, library: Path, version: str, platform: str, epoch: int, out: Path) -> Path:
    """`platform`: the tag, as manylinux_2_17_x86_64."""
    path = out / f"hakmem-{version}-py3-none-{platform}.whl"
    path.write_bytes(zipped(entries(root, library, version, platform), epoch))
    return path
