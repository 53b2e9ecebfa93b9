#!/usr/bin/env python3
"""Programs that docs/deploy.md names, run under hakmem as it says: programs.py LIBRARY COMMAND [NAME…] [--measure]

Each is started without hakmem and with LD_PRELOAD, works, and must give the same answers; `hakmem verify` (COMMAND) must find
hakmem in each of its processes, and `hakmem profile` the functions of a program whose language it knows. With --measure it prints a
table: MiB of memory (proportional set size) of all processes of the program two seconds after its work, and their seconds of processor
time from their start on; each without hakmem, with it, and the ratio. Medians of three runs in turn. With
--peers it prints a table of MiB and one of seconds, six seconds after the work: without any, with hakmem, and with each allocator that
`hakmem peers install` has built.

Exit code: 0 all hold, 1 one does not, 77 none of them is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PEERS = ROOT / "build/peers"
REQUESTS = 30
IDLE_S = 2
RUNS = 3
PEERS_IDLE_S = 6


class Broken(Exception):
    """A check that failed, in one line."""


class Run(NamedTuple):
    """A started program: the folder of its files, how to reach it, its first process."""

    work: Path
    port: int
    process: subprocess.Popen


class Program(NamedTuple):
    command: Callable[[Path, int], list[str]]
    ask: Callable[[Run], str]
    prepare: Callable[[Path], None] = lambda work: None
    user: str = ""
    settings: dict[str, str] = {}
    look: Callable[[Run, Path], None] = lambda run, command: None  # while it runs under hakmem


class Missing(Exception):
    """A program that is not installed."""


def tool(*names: str) -> str:
    """The first of the programs that exists: in PATH, in .venv, or where Debian hides it."""
    for name in names:
        for found in (shutil.which(name), ROOT / ".venv" / "bin" / name, *Path("/usr/sbin").glob(name),
                      *sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))):
            if found and Path(found).exists():
                return str(found)
    raise Missing(names[0])


def made(*command: str, **rest: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **rest)
    if done.returncode != 0:
        raise Broken(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def until(true: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise Broken(what)
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers_on(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_for_answer(run: Run) -> None:
    def answers() -> bool:
        if run.process.poll() is not None:
            raise Broken(f"the server has ended with {run.process.returncode}")
        return answers_on(run.port)

    until(answers, "the server does not answer")


def over_http(run: Run) -> str:
    wait_for_answer(run)
    answers = []
    for number in range(1, REQUESTS + 1):
        with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/?{number}", timeout=60) as reply:
            answers.append(reply.read().decode())
    return "\n".join(answers)


def first_line(run: Run) -> str:
    """Of a program that works at once, and then waits until its input ends."""
    return run.process.stdout.readline()


# redis: keys of many sizes, half of them deleted, then a digest of the rest.
def ask_redis(run: Run) -> str:
    wait_for_answer(run)
    with socket.create_connection(("127.0.0.1", run.port), 60) as line, line.makefile("rb") as replies:
        for n in range(0, 60000, 1000):
            line.sendall(b"".join(b"SET key:%d %s\r\n" % (i, b"x" * (50 + i * 7 % 1500)) for i in range(n, n + 1000)))
            for _ in range(1000):
                replies.readline()
        line.sendall(b"".join(b"DEL key:%d\r\n" % n for n in range(0, 60000, 2)))
        for _ in range(30000):
            replies.readline()
        line.sendall(b"DBSIZE\r\n")
        return replies.readline().decode()


def redis(work: Path, port: int) -> list[str]:
    return [tool("valkey-server", "redis-server"), "--port", str(port), "--save", "", "--dir", str(work)]


# PostgreSQL: a table is filled, sorted and hashed by one session that stays.
SQL = """create table t as select n, repeat(md5(n::text), 5) s from generate_series(1, 60000) n;
set work_mem = '64MB';
select md5(string_agg(s, '' order by s desc)) from t;
select count(*) from (select s, count(*) from t group by s) x;
"""


def as_user(user: str) -> list[str]:
    if not user or os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]


def prepare_postgresql(work: Path) -> None:
    if os.getuid() == 0:
        shutil.chown(work, "postgres", "postgres")
    made(*as_user("postgres"), tool("initdb"), "--no-sync", "-A", "trust", "-U", "postgres", "-D", str(work / "data"),
         cwd=work, env={**os.environ, "LC_ALL": "C"})


def postgresql(work: Path, port: int) -> list[str]:
    return [tool("postgres"), "-D", str(work / "data"), "-p", str(port), "-k", str(work), "-c", "fsync=off"]


def ask_postgresql(run: Run) -> str:
    wait_for_answer(run)
    client = subprocess.Popen([tool("psql"), "-h", "127.0.0.1", "-p", str(run.port), "-U", "postgres", "-qAt"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client.stdin.write(SQL)
    client.stdin.flush()
    answer = client.stdout.readline() + client.stdout.readline()
    return answer  # the session stays as long as the client's input is open


# nginx: two workers compress what they serve.
def prepare_nginx(work: Path) -> None:
    (work / "text").write_text("\n".join(str(n) for n in range(20000)))


def nginx(work: Path, port: int) -> list[str]:
    temporary = "".join(f"{kind}_temp_path {work}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""
    (work / "settings").write_text(
        f"daemon off; worker_processes 2; pid {work}/pid; error_log {work}/errors; {user} events {{}}"
        f"http {{ access_log off; gzip on; gzip_types *; {temporary} server {{ listen 127.0.0.1:{port}; root {work}; }} }}")
    return [tool("nginx"), "-p", str(work), "-c", str(work / "settings")]


def ask_nginx(run: Run) -> str:
    wait_for_answer(run)
    wanted = urllib.request.Request(f"http://127.0.0.1:{run.port}/text", headers={"Accept-Encoding": "gzip"})
    sizes = set()
    for _ in range(10 * REQUESTS):
        with urllib.request.urlopen(wanted, timeout=60) as reply:
            sizes.add(len(reply.read()))
    return str(sizes)


# php-fpm: requests by the protocol FastCGI, version 1.
def php_fpm(work: Path, port: int) -> list[str]:
    (work / "settings").write_text(
        f"[global]\nerror_log = {work}/errors\n[www]\nlisten = 127.0.0.1:{port}\npm = static\npm.max_children = 2\n"
        "clear_env = no\n" + ("user = root\n" if os.getuid() == 0 else ""))
    return [tool("php-fpm", "php-fpm[0-9]*"), "--nodaemonize", "--allow-to-run-as-root", "-y", str(work / "settings")]


def fastcgi(port: int, query: str) -> str:
    def record(kind: int, content: bytes) -> bytes:
        return bytes([1, kind, 0, 1, len(content) >> 8, len(content) & 255, 0, 0]) + content

    fields = {"SCRIPT_FILENAME": str(HERE / "app.php"), "QUERY_STRING": query, "REQUEST_METHOD": "GET"}
    pairs = b"".join(bytes([len(name), len(value)]) + name.encode() + value.encode() for name, value in fields.items())
    with socket.create_connection(("127.0.0.1", port), 60) as line:
        line.sendall(record(1, bytes([0, 1, 0, 0, 0, 0, 0, 0])) + record(4, pairs) + record(4, b"") + record(5, b""))
        reply = b"".join(iter(lambda: line.recv(65536), b""))
    return reply.partition(b"\r\n\r\n")[2][:32].decode()


def ask_php(run: Run) -> str:
    wait_for_answer(run)
    return "\n".join(fastcgi(run.port, str(n)) for n in range(1, REQUESTS + 1))


# gunicorn and celery: two workers each.
def gunicorn(work: Path, port: int) -> list[str]:
    return [tool("gunicorn"), "--bind", f"127.0.0.1:{port}", "--workers", "2", "--chdir", str(HERE), "app:application"]


def line_of(source: str, text: str) -> int:
    """The number of the line with this text in a file beside this one."""
    lines = (HERE / source).read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if text in line)


def profile_workers(run: Run, command: Path) -> None:
    """Profiles of its workers, taken while requests come, have the application's functions with their lines."""
    _, *workers = children_of(run.process.pid)
    looks = [
        subprocess.Popen([command, "profile", str(worker), "--seconds", "1", "--every", "65536", "--json"], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for worker in workers
    ]
    while any(look.poll() is None for look in looks):
        over_http(run)
    said = "".join(look.communicate()[0] for look in looks)
    for function, text in (("work", "made = ["), ("application", "return [work(")):
        place = f"{function} ({HERE}/app.py:{line_of('app.py', text)})"
        if place not in said:
            raise Broken(f"no profile of {workers} has {place}: {said[-2000:]}")


def prepare_celery(work: Path) -> None:
    (work / "queue").mkdir()


def celery(work: Path, port: int) -> list[str]:
    return [tool("celery"), "-A", "tasks", "--workdir", str(HERE), "worker", "--concurrency", "2", "--loglevel", "ERROR"]


def ask_celery(run: Run) -> str:
    asked = ("import tasks; sent = [tasks.work.delay(n) for n in range(1, 31)];"
             "print('\\n'.join(one.get(timeout=100) for one in sent))")
    python = Path(tool("celery")).resolve().parent / "python3"
    return made(str(python), "-c", asked, cwd=HERE, env={**os.environ, "WORK": str(run.work)})


def puma(work: Path, port: int) -> list[str]:
    return [tool("puma"), "--bind", f"tcp://127.0.0.1:{port}", "--threads", "4:4", "--workers", "2", str(HERE / "app.ru")]


def compiled(*command: str) -> Callable[[Path], None]:
    """Makes `app` in the folder of the run."""
    def prepare(work: Path) -> None:
        made(tool(command[0]), *command[1:], cwd=work, env={**os.environ, "GOFLAGS": "-mod=mod"})
    return prepare


PROGRAMS = {
    "redis": Program(redis, ask_redis),
    "postgresql": Program(postgresql, ask_postgresql, prepare_postgresql, "postgres"),
    "nginx": Program(nginx, ask_nginx, prepare_nginx),
    "php-fpm": Program(php_fpm, ask_php, settings={"USE_ZEND_ALLOC": "0"}),
    "gunicorn": Program(gunicorn, over_http, look=profile_workers),
    "celery": Program(celery, ask_celery, prepare_celery),
    "puma": Program(puma, over_http),
    "node": Program(lambda work, port: [tool("node"), str(HERE / "app.js")], first_line),
    "java": Program(lambda work, port: [tool("java"), "-cp", str(work), "App"], first_line,
                    compiled("javac", "-d", ".", str(HERE / "App.java"))),
    "rust": Program(lambda work, port: [str(work / "app")], first_line, compiled("rustc", "-O", "-o", "app", str(HERE / "app.rs"))),
    "go": Program(lambda work, port: [str(work / "app")], first_line, compiled("go", "build", "-o", "app", str(HERE / "app.go"))),
}


def children_of(process: int) -> Iterator[int]:
    """The process and all its descendants."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                yield from children_of(int(child))


def memory_kib(process: int) -> int:
    rows = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))


def processor_s(process: int) -> float:
    """Of the process, and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def started(program: Program, settings: dict[str, str]) -> Iterator[Run]:
    """The program at work in its own folder and on its own port. Afterwards nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="hakmem_deploy.", ignore_cleanup_errors=True) as folder:
        work, port = Path(folder), free_port()
        program.prepare(work)
        command = as_user(program.user) + ["env", *(f"{name}={value}" for name, value in settings.items())]
        with (work / "log").open("w") as log:
            process = subprocess.Popen([*command, *program.command(work, port)], cwd=work, start_new_session=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                       env={**os.environ, "WORK": folder, "LC_ALL": "C.UTF-8"})
        try:
            yield Run(work, port, process)
        except (Broken, OSError, subprocess.TimeoutExpired) as error:
            raise Broken(f"{error}; its log ends: {(work / 'log').read_text()[-300:]}") from error
        finally:
            process.stdin.close()
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Taken(NamedTuple):
    mib: float
    seconds: float


def measured(program: Program, settings: dict[str, str], command: Path, is_ours: bool, idle_s: int) -> tuple[str, Taken]:
    """The program's answer, and the memory and time that it took."""
    with started(program, settings) as run:
        answer = program.ask(run)
        time.sleep(idle_s)
        processes = list(children_of(run.process.pid))
        taken = Taken(sum(map(memory_kib, processes)) / 1024, sum(map(processor_s, processes)))
        for process in processes:
            if settings.get("LD_PRELOAD", "") not in Path(f"/proc/{process}/maps").read_text():
                raise Broken(f"process {process} is without {settings['LD_PRELOAD']}")
        for process in processes if is_ours else ():
            made(str(command), "verify", str(process))
        if is_ours and idle_s == 0:
            program.look(run, command)
        return answer, taken


def tried(name: str, library: Path, command: Path, runs: int, idle_s: int) -> tuple[Taken, Taken]:
    """Without hakmem and with it."""
    program = PROGRAMS[name]
    preload = {**program.settings, "LD_PRELOAD": str(library)}
    without, under = [], []
    for _ in range(runs):
        answer, taken = measured(program, program.settings, command, False, idle_s)
        without.append(taken)
        again, taken = measured(program, preload, command, True, idle_s)
        under.append(taken)
        if answer != again or not answer.strip():
            raise Broken(f"answers {answer[:100]!r} without hakmem, and {again[:100]!r} with it")
    return middle(without), middle(under)


def middle(runs: list[Taken]) -> Taken:
    return Taken(*map(statistics.median, zip(*runs)))


def row(name: str, before: Taken, after: Taken) -> str:
    """A row of the table in docs/deploy.md."""
    return (f"| {name} | {before.mib:.1f} | {after.mib:.1f} | {after.mib / before.mib:.2f}"
            f" | {before.seconds:.2f} | {after.seconds:.2f} | {after.seconds / before.seconds:.2f} |")


def peers() -> dict[str, dict[str, str]]:
    """The environment of each peer that is built."""
    built = json.loads((PEERS / "peers.json").read_text())
    return {name: {**peer.get("environment", {}), "LD_PRELOAD": str(PEERS / peer["file"])} for name, peer in built.items()}


def print_beside_peers(names: list[str], library: Path, command: Path) -> None:
    allocators = {"without": {}, "hakmem": {"LD_PRELOAD": str(library)}, **peers()}
    print(f"| program | {' | '.join(allocators)} |")
    for name in names:
        taken = {allocator: [] for allocator in allocators}
        for _ in range(RUNS):
            for allocator, settings in allocators.items():
                taken[allocator].append(under_peer(PROGRAMS[name], settings, command, allocator))
        print(f"| {name} | {' | '.join(map(cell, taken.values()))} |", flush=True)


def under_peer(program: Program, settings: dict[str, str], command: Path, allocator: str) -> Taken | None:
    """None if the program does not work with it, which is reported."""
    try:
        return measured(program, {**program.settings, **settings}, command, allocator == "hakmem", PEERS_IDLE_S)[1]
    except Broken as broken:
        print(f"{allocator}: {broken}", file=sys.stderr)
        return None


def cell(runs: list[Taken | None]) -> str:
    if None in runs:
        return "fails"
    mib, seconds = middle(runs)
    return f"{mib:.1f} ({seconds:.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("command", type=Path, help="build/hakmem")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--peers", action="store_true")
    arguments = parser.parse_args()
    names = arguments.names or list(PROGRAMS)
    if arguments.peers:
        print_beside_peers(names, arguments.library.resolve(), arguments.command.resolve())
        return 0
    results = []
    for name in names:
        try:
            how = (RUNS, IDLE_S) if arguments.measure else (1, 0)
            taken = tried(name, arguments.library.resolve(), arguments.command.resolve(), *how)
        except Missing as missing:
            print(f"{name}: {missing} is not installed")
            continue
        except Broken as broken:
            print(f"{name}: broken: {broken}", file=sys.stderr)
            results.append(False)
            continue
        results.append(True)
        print(row(name, *taken) if arguments.measure else f"{name}: ok", flush=True)
    return 77 if not results else 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
