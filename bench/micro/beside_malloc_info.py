#!/usr/bin/env python3
"""Compare the doctor with what real programs report about themselves: beside_malloc_info.py COMMAND [PROGRAM …]

COMMAND is build/hakmem. Each program does some work and then is quiet. `hakmem doctor` reads it from outside; right after, gdb makes
the process itself call malloc_info, which writes to the process's own stderr and allocates nothing. redis has its own jemalloc: it
is asked by INFO. A program that cannot run here is named.

In use is what the program has not freed, plus the threads' caches and the allocator's own memory, as malloc_info counts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

PYTHON = """
import sys, time
kept = [dict(number=i, text="x" * (i % 3000)) for i in range(120000)]
del kept[::2], kept[100::3]
print("ready", flush=True)
time.sleep(1000)
"""
NODE = """
let kept = [];
for (let i = 0; i < 20000; i++) kept.push(Buffer.allocUnsafeSlow(10 + i % 900));
kept = kept.filter((_, i) => i % 3);
console.log("ready");
setInterval(() => {}, 100000);
"""
JAVA = """
public class Waits {
    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 300; i++) java.nio.ByteBuffer.allocateDirect(1000 + i);
        System.out.println("ready");
        Thread.sleep(1000000);
    }
}
"""
THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_barrier_t all_have;
static void *fill(void *seed)
{
    static __thread void *blocks[20000];
    for (size_t i = 0; i < 20000; i++) {
        const size_t bytes = 16 + (i * 7919 + (size_t)seed * 31) % 700;
        blocks[i] = memset(malloc(bytes), 1, bytes);
    }
    for (size_t i = 0; i < 20000; i++) {
        if (i % 3 != 0) {
            free(blocks[i]);
        }
    }
    pthread_barrier_wait(&all_have);
    pause();
    return NULL;
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&all_have, NULL, 65);
    for (size_t i = 0; i < 64; i++) {
        pthread_create(&thread, NULL, fill, (void *)i);
    }
    memset(malloc(3000000), 1, 3000000);
    pthread_barrier_wait(&all_have);
    puts("ready");
    fflush(stdout);
    pause();
}
"""
KEYS = """
for i = 1, 300000 do redis.call('set', 'key:' .. i, string.rep('x', i % 300)) end
for i = 1, 300000, 3 do redis.call('del', 'key:' .. i) end
"""


class Missing(Exception):
    pass


class Bench:
    """A folder, and the processes started in it."""

    def __init__(self, command: Path, folder: Path) -> None:
        self.command, self.folder = command.resolve(), folder
        self.errors = folder / "errors"
        self.processes: list[subprocess.Popen[str]] = []

    def tool(self, name: str) -> str:
        folders = [os.environ["PATH"], "/usr/sbin", *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
        found = shutil.which(name, path=":".join(folders))
        if found is None:
            raise Missing(f"no {name}")
        return found

    def start(self, *words: str, waits: bool = True) -> int:
        with self.errors.open("w") as errors:
            process = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.processes.append(process)
        if waits and process.stdout.readline() != "ready\n":
            raise Missing(f"{words[0]} did not start: {self.errors.read_text()[:200]}")
        return process.pid

    def end(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
            process.wait()
        self.processes.clear()

    def doctor(self, pid: int) -> dict:
        return json.loads(subprocess.check_output([self.command, "doctor", "--json", str(pid)], text=True))

    def asked_itself(self, pid: int) -> tuple[int, int, int]:
        """In use, free, and in mappings of their own, by malloc_info."""
        before = self.errors.stat().st_size
        call = "call ((int(*)(int, void*))malloc_info)(0, *(void**)&stderr)"
        subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", call], capture_output=True, timeout=120)
        with self.errors.open() as errors:
            errors.seek(before)
            text = errors.read()
        found = re.search(r"<malloc version.*</malloc>", text, re.S)
        if found is None:
            raise Missing("gdb could not call malloc_info")
        whole = ElementTree.fromstring(found[0])
        sums = {one.get("type"): int(one.get("size")) for one in whole.findall("total") + whole.findall("system")}
        free = sums["fast"] + sums["rest"]
        return sums["current"] - free, free, sums["mmap"]


def wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise Missing("it does not listen")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def child_of(pid: int, name: str) -> int:
    for _ in range(100):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if name in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
        time.sleep(0.1)
    raise Missing(f"no child {name}")


def python3(bench: Bench) -> int:
    return bench.start("/usr/bin/python3", "-c", PYTHON)


def node(bench: Bench) -> int:
    return bench.start(bench.tool("node"), "-e", NODE)


def java(bench: Bench) -> int:
    (bench.folder / "Waits.java").write_text(JAVA)
    subprocess.run([bench.tool("javac"), "Waits.java"], cwd=bench.folder, check=True)
    return bench.start(bench.tool("java"), "-Xmx64m", "-cp", ".", "Waits")


def nginx(bench: Bench) -> int:
    port = free_port()
    text = f"daemon off; worker_processes 1; error_log stderr; pid {bench.folder}/pid; events {{}} http {{ access_log off;\n"
    text += "".join(f"map $uri $m{i} {{ default {i}; ~^/{i}/(.*)$ $1; }}\n" for i in range(300))
    (bench.folder / "nginx.conf").write_text(text + f"server {{ listen 127.0.0.1:{port}; return 200 $uri; }} }}\n")
    pid = bench.start(bench.tool("nginx"), "-c", str(bench.folder / "nginx.conf"), waits=False)
    wait_for(port)
    return child_of(pid, "worker")


def postgres(bench: Bench) -> int:
    port, data = free_port(), bench.folder / "data"
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    if user:
        shutil.chown(bench.folder, "postgres", "postgres")
        os.chmod(bench.folder, 0o755)
    made = [*user, bench.tool("initdb"), "--no-sync", "-A", "trust", "-U", "postgres", "-D", str(data)]
    subprocess.run(made, check=True, capture_output=True)
    words = [*user, bench.tool("postgres"), "-D", str(data), "-p", str(port), "-k", str(bench.folder), "-c", "fsync=off"]
    pid = bench.start(*words, waits=False)
    wait_for(port)
    client = subprocess.Popen(
        [bench.tool("psql"), "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-qAt"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    bench.processes.insert(0, client)
    client.stdin.write("create table t as select i, md5(i::text) m from generate_series(1, 50000) i;\n")
    client.stdin.write("prepare one as select m, count(*) from t group by m order by m limit 1; execute one;\n")
    client.stdin.flush()
    client.stdout.readline()
    time.sleep(1)
    return child_of(pid, "postgres: postgres postgres")


def threads(bench: Bench) -> int:
    program = bench.folder / "threads"
    words = [bench.tool("cc"), "-O1", "-fno-builtin", "-w", "-pthread", "-xc", "-", "-o", str(program)]
    subprocess.run(words, input=THREADS, check=True, text=True)
    return bench.start(str(program))


def redis(bench: Bench) -> None:
    port = free_port()
    pid = bench.start(bench.tool("redis-server"), "--port", str(port), "--save", "", waits=False)
    wait_for(port)
    ask = [bench.tool("redis-cli"), "-p", str(port)]
    subprocess.run([*ask, "eval", KEYS, "0"], check=True, capture_output=True)
    time.sleep(2)
    found = bench.doctor(pid)
    info = subprocess.check_output([*ask, "info", "memory"], text=True)
    heap = next(one for one in found["others"] if one["allocator"] == "jemalloc")
    print_row("redis-server (its jemalloc)", int(re.search(r"allocator_allocated:(\d+)", info)[1]), heap["live_bytes"])


def print_row(name: str, *figures: int) -> None:
    cells = [f"{figure:,}" for figure in figures]
    if len(figures) == 2:
        cells += ["", "", "", ""]
    off = (figures[1] - figures[0]) / figures[0]
    print(f"| {name} | {' | '.join(cells)} | {off:+.2%} |", flush=True)


PROGRAMS: dict[str, Callable[[Bench], int | None]] = {
    "python3": python3, "node": node, "java": java, "nginx": nginx, "postgres": postgres, "threads": threads, "redis": redis,
}  # fmt: skip


def main() -> None:
    command, names = Path(sys.argv[1]), sys.argv[2:] or list(PROGRAMS)
    print("| program | in use: itself | doctor | free: itself | doctor | large: itself | doctor | in use, off |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(command, Path(folder))
            try:
                pid = PROGRAMS[name](bench)
                if pid is None:
                    continue
                time.sleep(2)
                found = bench.doctor(pid)["glibc"]
                total = found["total"]
                used = total["live_bytes"] + total["cached_bytes"] + total["own_bytes"]
                free = total["free_bytes"] + total["fast_bytes"] + total["top_bytes"]
                told = bench.asked_itself(pid)
                print_row(name, told[0], used, told[1], free, told[2], found["mapped"]["bytes"])
            except Missing as missing:
                print(f"{name}: left out: {missing}", file=sys.stderr)
            finally:
                bench.end()


if __name__ == "__main__":
    main()
