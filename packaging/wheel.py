"""The Python wheel: the package of packaging/python/, with the command line and the libraries in it, laid out as when installed."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from archives import Entries, zipped

METADATA = """\
Metadata-Version: 2.1
Name: hakmem
Version: {version}
Summary: A memory allocator for Linux: the library, and a command line that runs, checks, profiles and compares programs with it
License: MIT
License-File: LICENSE
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Rust
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

{description}"""


def _record_line(name: str, content: Path | bytes) -> str:
    data = content if isinstance(content, bytes) else content.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


# What the package needs of an installed tree. The library has the one name that programs ask for: zip files have no links.
INSTALLED = ("bin/hakmem", "lib/libhakmem.so.1", "lib/libhakmem_record.so", "share/hakmem/report.html")


def entries(root: Path, installed: Entries, version: str, platform: str) -> Entries:
    """The content of the wheel. `installed`: names below usr/."""
    python = root / "packaging/python"
    info = f"hakmem-{version}.dist-info"
    description = (python / "README.md").read_text()
    content: Entries = {f"hakmem/{path.name}": path for path in (python / "hakmem").glob("*.py")}
    content.update({f"hakmem/{name}": installed[name] for name in INSTALLED if name in installed})
    content[f"{info}/LICENSE"] = root / "LICENSE"
    content[f"{info}/METADATA"] = METADATA.format(version=version, description=description).encode()
    content[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: hakmem\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
    ).encode()
    content[f"{info}/entry_points.txt"] = (
        b"[console_scripts]\nhakmem = hakmem.__main__:main\n\n[pytest11]\nhakmem = hakmem.pytest_plugin\n"
    )
    lines = "".join(_record_line(name, data) for name, data in sorted(content.items()))
    content[f"{info}/RECORD"] = f"{lines}{info}/RECORD,,\n".encode()
    return content


def write(root: Path, installed: Entries, version: str, platform: str, epoch: int, out: Path) -> Path:
    """`platform`: the tag, such as manylinux_2_17_x86_64."""
    path = out / f"hakmem-{version}-py3-none-{platform}.whl"
    path.write_bytes(zipped(entries(root, installed, version, platform), epoch))
    return path
