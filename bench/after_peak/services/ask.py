"""Ask a service of this folder: ask.py SOCKET COMMAND [WORD]… It exits with 1 if the answer is not `done`."""

from __future__ import annotations

import socket
import sys


def main() -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(sys.argv[1])
        link.sendall((" ".join(sys.argv[2:]) + "\n").encode())
        answer = link.makefile().readline().strip()
    if answer != "done":
        sys.exit(f"{' '.join(sys.argv[2:])}: answered {answer!r}")


main()
