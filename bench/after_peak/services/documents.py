"""A service that keeps JSON documents, made by four threads: documents.py SOCKET.

fill N: N documents are parsed and kept; keep N: one in N stays, at random; clear: none stays.
"""

from __future__ import annotations

import json
import socket
import sys
import threading

THREADS = 4
kept: list[list[object]] = [[] for _ in range(THREADS)]


def document(number: int) -> object:
    numbers = [number * 7919 % (at * 31 + 17) for at in range(number % 40)]
    text = "x" * (20 + number * 104729 % 600)
    made = {"id": number, "title": text, "tags": [f"tag {one}" for one in numbers], "numbers": numbers}
    return json.loads(json.dumps(made))


def fill(count: int) -> None:
    def work(thread: int) -> None:
        kept[thread].extend(document(number) for number in range(thread, count, THREADS))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def stays(number: int, every: int) -> bool:
    """Primes that turn numbers into seemingly random ones."""
    return number * 611953 % 1000003 % every == 0


def obey(command: str, *numbers: int) -> str:
    if command == "fill":
        fill(*numbers)
    elif command == "keep":
        for thread in range(THREADS):
            kept[thread][:] = [one for at, one in enumerate(kept[thread]) if stays(at, *numbers)]
    elif command == "clear":
        for documents in kept:
            documents.clear()
    else:
        return "unknown"
    return "done"


def main() -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        command = ""
        while command != "end":
            link, _ = listener.accept()
            with link, link.makefile("rw") as stream:
                command, *words = stream.readline().split()
                answer = "done" if command == "end" else obey(command, *map(int, words))
                stream.write(answer + "\n")


main()
