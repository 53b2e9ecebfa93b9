"""Archives that are the same, bit for bit, whoever makes them at whatever time: tarballs, zip files, and Debian's.

Names are in order, times are `epoch`, owners are root, and modes are 755 or 644.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import zipfile
from pathlib import Path

Entries = dict[str, Path | bytes]  # name in the archive -> file, link, or content


def tree(folder: Path, prefix: str = "") -> Entries:
    """All files and links below a folder."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return {f"{prefix}{path.relative_to(folder)}": path for path in sorted(found)}


def _is_program(content: Path | bytes) -> bool:
    return isinstance(content, Path) and os.access(content, os.X_OK)


def _folders(names: list[str]) -> list[str]:
    above = {str(parent) for name in names for parent in Path(name).parents}
    return sorted(above - {"."})


def tarball(entries: Entries, epoch: int, root: str = "", with_folders: bool = False) -> bytes:
    """A tar.gz. `root` is put before each name."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in _folders(list(entries)) if with_folders else []:
            member = tarfile.TarInfo(f"{root}{name}")
            member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o755, epoch
            member.uname = member.gname = "root"
            archive.addfile(member)
        for name, content in sorted(entries.items()):
            member = tarfile.TarInfo(f"{root}{name}")
            member.mtime, member.uname, member.gname = epoch, "root", "root"
            member.mode = 0o755 if _is_program(content) else 0o644
            if isinstance(content, Path) and content.is_symlink():
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, os.readlink(content), 0o777
                archive.addfile(member)
                continue
            data = content if isinstance(content, bytes) else content.read_bytes()
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)


def zipped(entries: Entries, epoch: int) -> bytes:
    """A zip file; links become the files that they lead to. In the order of the names, but a wheel's metadata comes last."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(entries.items(), key=lambda entry: (".dist-info/" in entry[0], entry[0])):
            member = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o100755 if _is_program(content) else 0o100644) << 16
            archive.writestr(member, content if isinstance(content, bytes) else content.read_bytes())
    return packed.getvalue()
