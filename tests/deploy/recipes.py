#!/usr/bin/env python3
"""The recipes of docs/deploy.md, exactly as written: recipes.py LIBRARY

Each is a fenced block below a heading. The program that reads it is asked whether it is right, and where it can be run here, a program
started by it must have hakmem in it. A test is skipped if the recipe's program is not installed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(sys.argv.pop(1)).resolve()
GUIDE = (ROOT / "docs" / "deploy.md").read_text()

# The recipes have the library's bare name; here it is in a folder of the build.
FOUND = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARY.parent)}
TELLS = "grep -c libhakmem /proc/self/maps"


def recipe(heading: str, number: int = 0) -> str:
    below = GUIDE.partition(f"\n## {heading}\n")[2]
    return re.findall(r"^```\w+\n(.*?)^```$", below, re.M | re.S)[number]


def need(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise unittest.SkipTest(f"{program} is not installed")
    return path


def output(*command: str, **rest: object) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, **rest).stdout


class Recipes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def is_in_it(self, told: str) -> None:
        self.assertGreaterEqual(int(told.strip() or 0), 1, told)

    def drop_in_is_understood(self, text: str) -> None:
        drop_in = self.folder / "app.service.d" / "hakmem.conf"
        drop_in.parent.mkdir()
        drop_in.write_text(text)
        unit = self.folder / "app.service"
        unit.write_text("[Service]\nExecStart=/bin/true\n")
        said = subprocess.run([need("systemd-analyze"), "verify", "--man=no", unit], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "SYSTEMD_UNIT_PATH": f"{self.folder}:"})
        self.assertEqual([line for line in said.stderr.splitlines() if "app.service" in line], [])

    def test_systemd(self) -> None:
        self.drop_in_is_understood(recipe("systemd"))
        settings = dict(re.findall(r"^Environment=(\w+)=(\S+)$", recipe("systemd"), re.M))
        self.assertIn("LD_PRELOAD", settings)
        self.is_in_it(output("sh", "-c", TELLS, env={**FOUND, **settings}))

    def test_systemd_and_memory_pressure(self) -> None:
        version = int(re.search(r"\d+", output(need("systemd-analyze"), "--version"))[0])
        if version < 254:
            self.skipTest(f"systemd {version} does not know these settings")
        self.drop_in_is_understood(recipe("systemd", 1))

    def test_supervisord(self) -> None:
        supervisord = need("supervisord")
        told = self.folder / "told"
        text = re.sub(r"^command=.*$", f"command=/bin/sh -c '{TELLS} >{told}.new; mv {told}.new {told}; sleep 60'",
                      recipe("supervisord"), flags=re.M)
        settings = self.folder / "settings"
        settings.write_text("[supervisord]\nnodaemon=true\n" + text)
        with subprocess.Popen([supervisord, "-c", settings, "-l", self.folder / "log", "-j", self.folder / "pid"],
                              cwd=self.folder, env=FOUND, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                end = time.monotonic() + 60
                while not told.exists() and time.monotonic() < end:
                    time.sleep(0.1)
            finally:
                server.terminate()
        self.is_in_it(told.read_text())

    def test_cron(self) -> None:
        """Lines `name = value` are the environment of the lines below them; the rest of a line is for /bin/sh."""
        first, job = recipe("cron").strip().splitlines()
        name, _, value = first.partition("=")
        fields = job.split(None, 5)
        self.assertEqual(len(fields), 6)
        self.is_in_it(output("/bin/sh", "-c", TELLS, env={**FOUND, name.strip(): value.strip()}))

    def test_kubernetes(self) -> None:
        validate = ROOT / ".venv" / "bin" / "kubernetes-validate"
        if not validate.exists():
            self.skipTest("kubernetes-validate is not installed")
        manifest = self.folder / "app.yaml"
        manifest.write_text(recipe("Kubernetes"))
        said = subprocess.run([validate, "--strict", manifest], capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_container_images(self) -> None:
        """No image is built here; the recipes copy what tools/dist makes, and each line is an instruction."""
        for heading, artefact in (("Debian and Ubuntu images", "libhakmem1_1.0.0_amd64.deb"),
                                  ("Alpine images", "hakmem-1.0.0-x86_64-musl.tar.gz")):
            lines = recipe(heading).strip().splitlines()
            self.assertTrue(all(line.split()[0] in ("FROM", "COPY", "ADD", "RUN", "ENV") for line in lines), lines)
            self.assertTrue(any(f"dist/{artefact}" in line for line in lines), heading)
            for line in lines:
                if line.startswith("RUN "):
                    output("sh", "-n", "-c", line.removeprefix("RUN "))
            variables = dict(one.split("=", 1) for one in shlex.split(lines[-1].removeprefix("ENV ")))
            self.assertTrue(variables["LD_PRELOAD"].endswith("libhakmem.so.1"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
