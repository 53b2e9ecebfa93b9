"""The command: hakmem run|verify|library, or python -m hakmem …"""

from __future__ import annotations

import os
import sys

import hakmem

USAGE = """\
usage: hakmem run [--] PROGRAM [ARGUMENT…]   run a program with hakmem
       hakmem verify                         does hakmem work here? one line
       hakmem library                        the path for LD_PRELOAD
"""


def preloaded() -> dict[str, str]:
    """The environment, with the library before what is preloaded anyway."""
    environment = dict(os.environ)
    before = environment.get("LD_PRELOAD")
    environment["LD_PRELOAD"] = f"{hakmem.library()}:{before}" if before else str(hakmem.library())
    return environment


def run(command: list[str]) -> int:
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        sys.stderr.write(USAGE)
        return 2
    try:
        os.execvpe(command[0], command, preloaded())
    except OSError as error:
        sys.stderr.write(f"hakmem: {command[0]}: {error.strerror}\n")
        return 127


def verify() -> int:
    if not hakmem.is_active():
        if os.environ.get("PYTHON_HAKMEM_VERIFIES"):
            sys.stderr.write(
                f"hakmem: {hakmem.library()} is not loaded: made for another C library or processor? "
                "`pip install --force-reinstall hakmem` takes the right one\n"
            )
            return 1
        environment = preloaded() | {"PYTHON_HAKMEM_VERIFIES": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "hakmem", "verify"], environment)
    own = str(hakmem.library())
    others = {name: path for name, path in hakmem.verify().items() if path != own}
    for name, path in others.items():
        sys.stderr.write(f"hakmem: {name} comes from {path}\n")
    if not others:
        print(f"hakmem {hakmem.version()} serves {', '.join(hakmem.verify())}")
    return 1 if others else 0


def main() -> int:
    command, *arguments = sys.argv[1:] or [""]
    if command == "run":
        return run(arguments)
    if command == "verify" and not arguments:
        return verify()
    if command == "library" and not arguments:
        print(hakmem.library())
        return 0
    sys.stderr.write(USAGE)
    return 2


if __name__ == "__main__":
    sys.exit(main())
