"""Fill a Redis server, or delete from it: redis_client.py SOCKET fill|keep N.

fill N: N keys of 20 to 620 bytes; keep N: all keys but one in N are deleted, at random and in another order.
"""

from __future__ import annotations

import itertools
import socket
import sys
from collections.abc import Iterator

BATCH = 1000
STEP, MODULUS = 611953, 1000003  # primes: they turn numbers into seemingly random ones


def request(*words: bytes) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def key(number: int) -> bytes:
    return b"key:%d" % number


def fill(count: int) -> Iterator[bytes]:
    return (request(b"SET", key(at), b"x" * (20 + at * 104729 % 601)) for at in range(count))


def keep(count: int, every: int) -> Iterator[bytes]:
    order = (at * STEP % count for at in range(count))
    return (request(b"DEL", key(number)) for number in order if number * STEP % MODULUS % every)


def main() -> None:
    path, what, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        answers = link.makefile("rb")

        def ask(requests: list[bytes]) -> list[bytes]:
            link.sendall(b"".join(requests))
            return [answers.readline().strip() for _ in requests]

        (size,) = ask([request(b"DBSIZE")])
        requests = fill(number) if what == "fill" else keep(int(size[1:]), number)
        expected = b"+OK" if what == "fill" else b":1"
        while batch := list(itertools.islice(requests, BATCH)):
            wrong = set(ask(batch)) - {expected}
            if wrong:
                sys.exit(f"{what}: answered {wrong.pop()!r}")


main()
