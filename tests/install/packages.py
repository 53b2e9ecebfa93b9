#!/usr/bin/env python3
# timeout: 120
"""The parts of tools/dist: packages.py LIBRARY COMMAND

Archives do not depend on who packs them and when; a wheel and Debian packages contain what they should; the Python package works with the
library; and the mark of elf_initfirst.py is the same as the linker's.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
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
COMMAND = Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "tools")]

import archives  # noqa: E402
import debian  # noqa: E402
import elf_initfirst  # noqa: E402
import npm  # noqa: E402
import wheel  # noqa: E402

EPOCH = 1_700_000_000

BUDGETS = """
import pytest
KEPT = []
@pytest.mark.hakmem_budget(peak="64MiB", live="1MiB")
def test_within():
    bytearray(b"x") * (40 << 20)
@pytest.mark.hakmem_budget(peak=16 << 20)
def test_peak():
    bytearray(b"x") * (40 << 20)
@pytest.mark.hakmem_budget(live="64KiB")
def test_live():
    KEPT.append(bytearray(1 << 20))
def test_without():
    KEPT.append(bytearray(1 << 20))
@pytest.mark.hakmem_budget(live="3 parsecs")
def test_wrong():
    pass
"""


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
        installed = {"lib/libhakmem.so.1": LIBRARY, "bin/hakmem": b"#!", "lib/libhakmem.a": b"!"}
        path = wheel.write(ROOT, installed, "1.0.0", "manylinux_2_17_x86_64", EPOCH, self.folder)
        with zipfile.ZipFile(path) as archive:
            lines = archive.read("hakmem-1.0.0.dist-info/RECORD").decode().splitlines()
            self.assertEqual({line.split(",")[0] for line in lines}, set(archive.namelist()))
            self.assertIn("hakmem/bin/hakmem", archive.namelist())
            points = archive.read("hakmem-1.0.0.dist-info/entry_points.txt").decode()
            self.assertIn("[pytest11]\nhakmem = hakmem.pytest_plugin\n", points)
            self.assertNotIn("hakmem/lib/libhakmem.a", archive.namelist())
            for name, digest, _ in (line.split(",") for line in lines if not line.endswith(",,")):
                found = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=")
                self.assertEqual(digest, f"sha256={found.decode()}")

    def test_an_npm_package_has_the_command_it_names(self) -> None:
        (self.folder / "link").symlink_to(LIBRARY)
        installed = {"lib/libhakmem.so.1": self.folder / "link", "bin/hakmem": LIBRARY, "lib/libhakmem.a": b"!"}
        path = npm.write(ROOT, installed, "1.0.0", "aarch64-musl", EPOCH, self.folder)
        with tarfile.open(path) as archive:
            about = json.load(archive.extractfile("package/package.json"))
            self.assertEqual((about["cpu"], about["libc"]), (["arm64"], ["musl"]))
            command = archive.getmember(f"package/{about['bin']['hakmem']}")
            self.assertEqual(command.mode, 0o755)
            self.assertTrue(archive.getmember("package/lib/libhakmem.so.1").isfile())
            self.assertIn("package/index.js", archive.getnames())
            self.assertNotIn("package/lib/libhakmem.a", archive.getnames())

    def test_debian_packages_divide_the_files(self) -> None:
        if shutil.which("dpkg-deb") is None:
            self.skipTest("no dpkg-deb")
        installed = {
            "bin/hakmem": b"",
            "include/hakmem/hakmem.h": b"//\n",
            "lib/libhakmem.a": b"!",
            "lib/libhakmem.so.1.0.0": LIBRARY,
            "lib/libhakmem_record.so": b"",
            "share/man/man1/hakmem.1": b"",
            "share/man/man3/hakmem.3": b"",
        }
        paths = debian.write(ROOT, installed, "1.0.0", ("amd64", "x86_64-linux-gnu"), EPOCH, self.folder)
        found = []
        for path in paths:
            lines = subprocess.check_output(["dpkg-deb", "-c", str(path)], text=True).splitlines()
            names = {line.split()[5].removeprefix("./usr/") for line in lines if not line.endswith("/")}
            found.append({name for name in names if "/doc/" not in name})
        folder = "lib/x86_64-linux-gnu"
        self.assertEqual(found[0], {f"{folder}/libhakmem.so.1.0.0"})
        self.assertEqual(found[1], {"include/hakmem/hakmem.h", f"{folder}/libhakmem.a", "share/man/man3/hakmem.3.gz"})
        self.assertEqual(
            found[2], {"bin/hakmem", f"{folder}/hakmem/libhakmem_record.so", "share/man/man1/hakmem.1.gz"}
        )

    def test_python_sees_the_library_under_run_only(self) -> None:
        if not COMMAND.exists():
            self.skipTest("no command line in this build")
        package = shutil.copytree(ROOT / "packaging/python/hakmem", self.folder / "hakmem")
        for file, place in ((LIBRARY, "lib/libhakmem.so.1"), (COMMAND, "bin/hakmem")):
            (package / place).parent.mkdir()
            shutil.copy(file, package / place)
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}

        def says(*words: str) -> str:
            command = [sys.executable, *words]
            return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

        self.assertEqual(says("-c", "import hakmem; print(hakmem.is_active())"), "False")
        self.assertTrue(says("-m", "hakmem", "--version").startswith("hakmem 1."))
        self.assertEqual(says("-m", "hakmem", "library"), str(package / "lib/libhakmem.so.1"))
        text = "import hakmem; print(hakmem.is_active(), hakmem.stats()['live_bytes'] > 0, hakmem.trim() >= 0)"
        self.assertEqual(says("-m", "hakmem", "run", "--", sys.executable, "-c", text), "True True True")

    def test_a_command_for_another_system_is_named_in_one_line(self) -> None:
        package = shutil.copytree(ROOT / "packaging/python/hakmem", self.folder / "hakmem")
        (package / "bin").mkdir()
        program = package / "bin/hakmem"
        shutil.copy(sys.executable, program)
        head = bytearray(program.read_bytes())
        head[18:20] = b"\xf3\0"  # the processor: RISC-V
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        for contents in (bytes(head), b"#!/lib/ld-of-another-libc.so.1\n"):
            program.write_bytes(contents)
            done = subprocess.run(
                [sys.executable, "-m", "hakmem", "run", "--", "true"], env=environment, capture_output=True, text=True, check=False
            )
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
            self.assertIn("install the wheel whose name has this machine's processor and C library", done.stderr)

    def test_pytest_keeps_tests_to_their_budgets(self) -> None:
        if not COMMAND.exists() or importlib.util.find_spec("pytest") is None:
            self.skipTest("no command line in this build, or no pytest")
        shutil.copytree(ROOT / "packaging/python/hakmem", self.folder / "hakmem")
        (self.folder / "test_memory.py").write_text(BUDGETS)
        environment = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"}

        def pytest(*words: str, library: str = str(LIBRARY)) -> str:
            command = [sys.executable, "-m", "pytest", "-p", "hakmem.pytest_plugin", "-p", "no:cacheprovider", *words]
            environment["LD_PRELOAD"] = library
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
            return done.stdout + done.stderr

        answer = pytest("-k", "not wrong")
        self.assertIn("2 failed, 2 passed", answer)
        # Some MiB that the test before has freed may still be resident.
        peak = r"peak: (3[5-9]|4\d)\.\d MiB more of its memory was resident"
        self.assertRegex(answer, rf"test_peak used more memory than its budget:\n  {peak}")
        self.assertRegex(answer, r"live: 1\.\d MiB more was live at its end than at its beginning; its budget is 64\.0 KiB")
        answer = pytest("-k", "not wrong", library="")
        self.assertIn("4 passed", answer)
        self.assertIn("3 memory budgets were not checked: this process does not use hakmem", answer)
        self.assertIn("3 failed, 1 passed", pytest("-k", "not wrong", "--require-hakmem", library=""))
        self.assertIn("test_wrong: hakmem_budget: '3 parsecs' is no amount of memory", pytest())

    def test_the_mark_is_the_linkers(self) -> None:
        linked = LIBRARY.read_bytes()
        self.assertEqual(elf_initfirst.marked(linked), linked)
        with self.assertRaises(ValueError):
            elf_initfirst.marked(b"text")


if __name__ == "__main__":
    unittest.main()
