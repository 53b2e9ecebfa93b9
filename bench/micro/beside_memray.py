#!/usr/bin/env python3
"""Compare memray and hakmem on the same Python service: which functions allocate, and what looking costs.

    beside_memray.py COMMAND [--python PYTHON] [--requests N] [--rounds N]

COMMAND is build/hakmem. The service is a gunicorn worker that answers with orders as JSON. It gets requests without a tool, under
memray, under hakmem, and under hakmem while `hakmem profile` looks; each of these has the worker's least processor time for a
request among some rounds, taken in turn. Gunicorn and memray are installed into a virtual environment that is removed at the end.

Shares are of all bytes requested from malloc, by the innermost Python function, as both report them. What memray has seen of mmap is
left out: the interpreter maps memory for small objects itself.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

SERVICE = """
import json
ORDERS = [{"id": i, "name": f"order {i}", "lines": list(range(i % 40))} for i in range(300)]
def rows(orders):
    return [dict(order, total=sum(order["lines"]), note="n" * 700) for order in orders]
def table(orders):
    return "\\n".join(f"{order['id']},{order['name']},{order['lines']}" + " " * 600 for order in orders)
def export():
    return json.dumps(rows(ORDERS)).encode()
def answer(environ, start_response):
    body = export() if environ["PATH_INFO"] == "/export" else table(ORDERS).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
# What is taken from a recording, as JSON: bytes by function and file. It runs in the interpreter that has memray.
TELL = """
import collections, json, sys
import memray
sums = collections.Counter()
kinds = {memray.AllocatorType[name] for name in ("MALLOC", "CALLOC", "REALLOC", "POSIX_MEMALIGN", "ALIGNED_ALLOC", "MEMALIGN")}
with memray.FileReader(sys.argv[1]) as reader:
    for record in reader.get_allocation_records():
        if record.allocator in kinds:
            stack = record.stack_trace(max_stacks=1)
            name, file = stack[0][:2] if stack else ("", "")
            sums[f"{name} {file}"] += record.size
print(json.dumps(sums))
"""
WAYS = ("as it is", "memray", "hakmem", "hakmem, profiled")
PYTHON_FRAME = re.compile(r"(.*) \((.*\.py|<.*>):\d+\)")
TICK = os.sysconf("SC_CLK_TCK")


def short(name: str, file: str) -> str:
    """One form for both, which write qualified names and paths in different ways."""
    return f"{name.rsplit('.', 1)[-1]} ({file.rsplit('/', 1)[-1]})"


def processor_time(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICK


class Service:
    def __init__(self, folder: Path, prefix: list[str], python: Path, options: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = [*prefix, python, *options, "-m", "gunicorn", "-w", "1", "-b", f"127.0.0.1:{self.port}", "views:answer"]
        self.process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                self.ask("/export")
                break
            except OSError:
                time.sleep(0.1)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.worker = int(children[0])

    def ask(self, path: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        connection.getresponse().read()
        connection.close()

    def work(self, requests: int) -> float:
        """Processor time of a request, in ms."""
        before = processor_time(self.worker)
        for number in range(requests):
            self.ask("/table" if number % 3 else "/export")
        return (processor_time(self.worker) - before) * 1e3 / requests

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def by_memray(python: Path, file: Path) -> collections.Counter[str]:
    told = json.loads(subprocess.run([python, "-c", TELL, file], check=True, capture_output=True, text=True).stdout)
    sums: collections.Counter[str] = collections.Counter()
    for place, count in told.items():
        sums[short(*place.split(" ", 1))] += count
    return sums


def by_hakmem(text: str) -> collections.Counter[str]:
    sums: collections.Counter[str] = collections.Counter()
    for site in json.loads(text)["sites"]:
        frames = (PYTHON_FRAME.fullmatch(frame) for frame in site["frames"])
        innermost = next((frame for frame in frames if frame), None)
        sums[short(*innermost.groups()) if innermost else "no function"] += site["allocated"]["bytes"]
    return sums


def run(way: str, arguments: argparse.Namespace, folder: Path, python: Path) -> tuple[float, collections.Counter[str]]:
    if way == "memray":
        file = folder / "memray.bin"
        for old in folder.glob("memray.bin*"):
            old.unlink()
        with Service(folder, [], python, ["-m", "memray", "run", "--quiet", "--follow-fork", "-o", str(file)]) as service:
            spent = service.work(arguments.requests)
        return spent, by_memray(python, file.with_name(f"{file.name}.{service.worker}"))
    prefix = [] if way == "as it is" else [str(arguments.command.resolve()), "run", "--"]
    with Service(folder, prefix, python, []) as service:
        if way != "hakmem, profiled":
            return service.work(arguments.requests), collections.Counter()
        words = [arguments.command, "profile", str(service.worker), "--seconds", "3600", "--json"]
        profile = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(1)  # until the command has switched sampling on
        spent = service.work(arguments.requests)
        profile.send_signal(signal.SIGINT)
        return spent, by_hakmem(profile.communicate()[0])


def print_tables(least: dict[str, float], sums: dict[str, collections.Counter[str]], rows: int) -> None:
    shares = [{name: count / sums[way].total() for name, count in sums[way].items()} for way in ("memray", "hakmem, profiled")]
    print("| function | memray | hakmem |")
    print("|---|---:|---:|")
    for name, _ in sums["memray"].most_common(rows):
        print(f"| `{name}` | {shares[0][name]:.1%} | {shares[1].get(name, 0):.1%} |")
    print()
    print("| | processor time of a request, ms | |")
    print("|---|---:|---:|")
    for way in WAYS:
        print(f"| {way} | {least[way]:.2f} | {least[way] / least['as it is']:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", type=Path)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=6)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "views.py").write_text(SERVICE)
        subprocess.run([arguments.python, "-m", "venv", folder / "venv"], check=True)
        python = folder / "venv/bin/python"
        subprocess.run([python, "-m", "pip", "-q", "--disable-pip-version-check", "install", "gunicorn", "memray"], check=True)
        least: dict[str, float] = {}
        sums: dict[str, collections.Counter[str]] = {}
        for _ in range(arguments.rounds):
            for way in WAYS:
                spent, sums[way] = run(way, arguments, folder, python)
                least[way] = min(spent, least.get(way, spent))
        print_tables(least, sums, arguments.rows)


if __name__ == "__main__":
    main()
