#!/usr/bin/env python3
# timeout: 120
"""The parts of tools/dist: packages.py LIBRARY

Archives do not depend on who packs them when; a wheel and Debian packages hold what they say; the Python package works with the
library; and the mark of elf_initfirst.py is the one that the linker sets.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "tools")]

import archives  # noqa: E402
import debian  # noqa: E402
import elf_initfirst  # noqa: E402
import wheel  # noqa: E402

EPOCH = 1_700_000_000


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_archives_depend_on_names_contents_and_the_epoch_only(self) -> None:
        packed = []
        for number, mode in enumerate((0o600, 0o666)):
            folder = self.folder / str(number)
            folder.mkdir()
            for name in ("b", "a") if number else ("a", "b"):
                (folder / name).write_text(name)
                (folder / name).chmod(mode)
                os.utime(folder / name, (number, number))
            files = archives.tree(folder)
            packed.append((archives.tarball(files, EPOCH), archives.zipped(files, EPOCH)))
        self.assertEqual(packed[0], packed[1])

    def test_links_stay_links(self) -> None:
        (self.folder / "link").symlink_to("file")
        (self.folder / "file").write_text("text")
        data = archives.tarball(archives.tree(self.folder), EPOCH)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            self.assertEqual(archive.getmember("link").linkname, "file")

    def test_a_wheel_records_what_it_holds(self) -> None:
        path = wheel.write(ROOT, LIBRARY, "1.0.0", "manylinux_2_17_x86_64", EPOCH, self.folder)
        with zipfile.ZipFile(path) as archive:
            lines = archive.read("hakmem-1.0.0.dist-info/RECORD").decode().splitlines()
            self.assertEqual({line.split(",")[0] for line in lines}, set(archive.namelist()))
            for name, digest, _ in (line.split(",") for line in lines if not line.endswith(",,")):
                found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=")
                self.assertEqual(digest, f"sha256={found.decode()}")

    def test_debian_packages_divide_the_files(self) -> None:
        if shutil.which("dpkg-deb") is None:
            self.skipTest("no dpkg-deb")
        installed = {"lib/libhakmem.so.1.0.0": LIBRARY, "include/hakmem/hakmem.h": b"//\n", "lib/libhakmem.a": b"!"}
        paths = debian.write(ROOT, installed, "1.0.0", ("amd64", "x86_64-linux-gnu"), EPOCH, self.folder)
        listed = [subprocess.check_output(["dpkg-deb", "-c", str(path)], text=True) for path in paths]
        self.assertIn("./usr/lib/x86_64-linux-gnu/libhakmem.so.1.0.0", listed[0])
        self.assertNotIn("hakmem.h", listed[0])
        self.assertIn("./usr/include/hakmem/hakmem.h", listed[1])

    def test_python_sees_the_library_under_run_only(self) -> None:
        package = shutil.copytree(ROOT / "packaging/python/hakmem", self.folder / "hakmem")
        shutil.copy(LIBRARY, package / "libhakmem.so.1")
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}

        def says(*words: str) -> str:
            command = [sys.executable, *words]
            return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

        self.assertEqual(says("-c", "import hakmem; print(hakmem.is_active())"), "False")
        self.assertTrue(says("-m", "hakmem", "verify").startswith("hakmem 1."))
        text = "import hakmem; print(hakmem.is_active(), hakmem.stats()['live_bytes'] > 0, hakmem.trim() >= 0)"
        self.assertEqual(says("-m", "hakmem", "run", "--", sys.executable, "-c", text), "True True True")

    def test_the_mark_is_the_linkers(self) -> None:
        linked = LIBRARY.read_bytes()
        self.assertEqual(elf_initfirst.marked(linked), linked)
        with self.assertRaises(ValueError):
            elf_initfirst.marked(b"text")


if __name__ == "__main__":
    unittest.main()
