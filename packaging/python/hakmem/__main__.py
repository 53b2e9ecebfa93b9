"""The command line, and `hakmem library`: also python -m hakmem …"""

from __future__ import annotations

import os
import sys

import hakmem


def main() -> int:
    if sys.argv[1:] == ["library"]:  # for LD_PRELOAD
        print(hakmem.library())
        return 0
    program = str(hakmem.command())
    try:
        os.execv(program, ["hakmem", *sys.argv[1:]])
    except OSError as error:
        sys.stderr.write(
            f"hakmem: {program}: {error.strerror}; install the wheel whose name has this machine's processor and C library "
            "(manylinux: glibc, musllinux: musl)\n"
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
