"""sample -- run one variant under one allocator, once, and trust nothing.

A sample is only returned when the command ended well, its answer is right, and each
process of it is proved to have used the allocator that was asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .allocators import Allocator, libc_path
from .paths import MEASURE, ROOT, SCRATCH, relative
from .variants import Variant

# What libc itself asks malloc for proves nothing about the program.
NOT_A_CALLER = re.compile(r".*/(libc\.so\.6|ld-linux[^/]*|libpthread\.so\.0)")
SERVER_START_S = 10.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Refused(Exception):
    """The run proves nothing about this allocator; the message says why."""


def base_environment() -> dict[str, str]:
    """Nothing of the user's environment may change a result."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": str(SCRATCH),
            "TZ": "UTC"}


def added_environment(variant: Variant, allocator: Allocator) -> dict[str, str]:
    """What this run adds to the environment, and what the result file records."""
    added = {**variant.environment, **allocator.environment}
    if allocator.library is not None:
        added["LD_PRELOAD"] = str(allocator.library)
    elif variant.bundles_malloc:
        added["LD_PRELOAD"] = str(libc_path())
    return added


def measure_command(variant: Variant, allocator: Allocator, report: str, limit_s: int,
                    warm_mib: int) -> list[str]:
    command = [str(MEASURE), "--output", report, "--timeout", str(limit_s),
               "--warm-mib", str(warm_mib)]
    for name, value in added_environment(variant, allocator).items():
        command += ["--env", f"{name}={value}"]
    if variant.trace_threads:
        command.append("--trace-threads")
    return [*command, "--", variant.program, *variant.args]


def shown_command(variant: Variant, allocator: Allocator) -> str:
    """The run as a line for a shell, for whoever wants to repeat it."""
    added = added_environment(variant, allocator)
    if allocator.is_ours:
        added["LD_PRELOAD"] = str(allocator.public_library)
    words = [f"{name}={value}" for name, value in added.items()]
    words += [variant.program, *variant.args]
    redirect = f" < {variant.stdin}" if variant.stdin else ""
    return relative(" ".join(words) + redirect)


def busy_seconds() -> float:
    """CPU time that the whole machine has spent, the host's theft included."""
    with open("/proc/stat", encoding="ascii") as stream:
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, stream.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / CLOCK_TICKS


def check_proof(report: dict[str, Any], allocator: Allocator) -> None:
    """Every process must have had its memory from this allocator and no other."""
    for process in report["processes"]:
        proof = process["proof"]
        program = Path(process["program"]).name
        if proof["error"]:
            raise Refused(f"{program}: {proof['error']}")
        if proof["private_malloc"]:
            raise Refused(f"{program} has a malloc of its own that no library can replace")
        foreign = [path for path in proof["owners"] if not allocator.owns(path)]
        if foreign or not proof["owners"]:
            raise Refused(f"{program} used {relative(', '.join(foreign)) or 'nothing'} "
                          f"instead of {allocator.name}")
        if process["hidden_children"]:
            raise Refused(f"{program}: a thread started a process that was not seen; "
                          "the workload needs trace_threads")
    subject = max(report["processes"], key=lambda process: process["peak_kib"])
    callers = [path for path in subject["proof"]["importers"] if not NOT_A_CALLER.fullmatch(path)]
    if not callers and allocator.library is not None:
        raise Refused(f"{Path(subject['program']).name} does not call {allocator.name}")


def last_line(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return f": {relative(lines[-1])}" if lines else ""


def check_end(report: dict[str, Any], limit_s: int, errors: bytes) -> None:
    if report["timed_out"]:
        raise Refused(f"not finished after {limit_s} s")
    if report["signal"]:
        raise Refused(f"ended by signal {report['signal']}{last_line(errors)}")
    if report["exit_code"] != 0:
        raise Refused(f"exit code {report['exit_code']}{last_line(errors)}")
    if not report["examined"] or not report["processes"]:
        raise Refused("its end could not be examined")
    if report["left_running"]:
        raise Refused(f"left {report['left_running']} processes behind")


def run_quietly(commands: list[list[str]], what: str) -> bytes:
    """Run unmeasured commands without any preload; returns all that they print."""
    printed = b""
    for command in commands:
        done = subprocess.run(command, cwd=SCRATCH, env=base_environment(), capture_output=True,
                              check=False, timeout=120)
        if done.returncode != 0:
            reason = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
            raise Refused(f"{what} '{Path(command[0]).name}' failed: {reason}")
        printed += done.stdout
    return printed


def wait_for_server(process: subprocess.Popen[bytes], socket: str) -> None:
    deadline = time.monotonic() + SERVER_START_S
    while not Path(socket).exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Refused("the server did not start")
        time.sleep(0.005)


def drive_server(process: subprocess.Popen[bytes], variant: Variant) -> tuple[float, bytes]:
    """Run the clients against the measured server: their time, and its answers."""
    wait_for_server(process, variant.socket or "")
    started = time.monotonic()
    run_quietly(variant.drive, "client")
    driven_s = time.monotonic() - started
    answers = run_quietly(variant.ask, "client")
    run_quietly(variant.stop, "client")
    return driven_s, answers


@dataclass
class Ended:
    """What came out of one measured command, besides its report."""

    errors: bytes  # all of its standard error
    driven_s: float | None = None  # a server's clients' time
    answers: bytes = b""  # a server's answers


def run_measured(variant: Variant, command: list[str], stdout: Path) -> Ended:
    directory = SCRATCH if variant.is_real else ROOT
    with open(variant.stdin or os.devnull, "rb") as source, stdout.open("wb") as sink, \
            tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(command, cwd=directory, env=base_environment(), stdin=source,
                                   stdout=sink, stderr=complaints)
        ended = Ended(b"")
        try:
            if variant.drive:
                ended.driven_s, ended.answers = drive_server(process, variant)
            process.wait()
        except BaseException:
            process.terminate()  # measure's end is its command's end
            process.wait()
            raise
        complaints.seek(0)
        ended.errors = complaints.read()
    if process.returncode != 0:
        raise Refused(f"measure exited with {process.returncode}{last_line(ended.errors)}")
    return ended


def digest_of(variant: Variant, printed: bytes, stdout: Path) -> str:
    """One fingerprint of all that a real program put out."""
    digest = hashlib.sha256()
    if not variant.drive:  # a server's own log has times in it
        digest.update(stdout.read_bytes())
    for name in variant.outputs:
        path = Path(name)
        if not path.is_file():
            raise Refused(f"{path.name} was not written")
        digest.update(path.read_bytes())
    digest.update(printed)
    return digest.hexdigest()[:16]


def reported_numbers(stdout: Path) -> dict[str, float]:
    """The lines 'name: number' and 'name   number ns' that our own workloads print."""
    numbers = {}
    for line in stdout.read_text(encoding="utf-8", errors="replace").splitlines():
        found = re.fullmatch(r"(\w[\w /%.,-]*?)(?::|\s)\s*(-?\d+(?:\.\d+)?)( ns)?", line.strip())
        if found and found.group(1) != "answer":
            numbers[found.group(1) + (found.group(3) or "")] = float(found.group(2))
    return numbers


def answer_of(stdout: Path) -> str:
    found = re.search(r"^answer: (\S+)$", stdout.read_text(errors="replace"), re.MULTILINE)
    return found.group(1) if found else "none"


def fresh_scratch(variant: Variant) -> None:
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    run_quietly(variant.prepare, "preparation")


def take_sample(variant: Variant, allocator: Allocator, limit_s: int,
                warm_mib: int = 0) -> dict[str, Any]:
    """One run. The answer of a real program is for the caller to compare."""
    if variant.is_real:
        fresh_scratch(variant)
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as folder:
        stdout = Path(folder) / "stdout"
        report_path = Path(folder) / "report.json"
        command = measure_command(variant, allocator, str(report_path), limit_s, warm_mib)
        busy_before = busy_seconds()
        ended = run_measured(variant, command, stdout)
        busy_s = busy_seconds() - busy_before
        report = json.loads(report_path.read_text(encoding="utf-8"))
        check_end(report, limit_s, ended.errors)
        check_proof(report, allocator)
        if variant.is_real:
            printed = ended.answers + run_quietly(variant.verify, "verification")
            answer, numbers = digest_of(variant, printed, stdout), {}
        else:
            answer, numbers = answer_of(stdout), reported_numbers(stdout)
    if variant.answer is not None and answer != variant.answer:
        raise Refused(f"wrong answer: {answer} instead of {variant.answer}")
    return flatten(report, ended.driven_s, busy_s, answer, numbers)


def flatten(report: dict[str, Any], driven_s: float | None, busy_s: float, answer: str,
            numbers: dict[str, float]) -> dict[str, Any]:
    """What a result file keeps of one run."""
    cpu_s = report["user_s"] + report["sys_s"]
    owners = sorted({path for process in report["processes"]
                     for path in process["proof"]["owners"]})
    sample = {
        "wall_s": driven_s if driven_s is not None else report["wall_s"],
        "cpu_s": round(cpu_s, 6),
        "other_cpu_s": round(max(0.0, busy_s - cpu_s), 2),
        "owners": [relative(path) for path in owners],
        "process_count": len(report["processes"]),
        "answer": answer,
        "reported": numbers,
    }
    for name in ("user_s", "sys_s", "minor_faults", "major_faults", "voluntary_switches",
                 "involuntary_switches", "peak_kib", "tree_peak_kib"):
        sample[name] = report[name]
    return sample
