"""variants -- what is run: the declarations of bench/workloads and bench/real.

bench/workloads/README.md and bench/real/README.md say what a declaration holds.
"""

from __future__ import annotations

import fnmatch
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .paths import BUILD, REAL, REAL_INPUTS, ROOT, SCRATCH, WORKLOADS, UsageError

# Workloads whose result is a latency, not a time; they stay out of the means.
LATENCY_GROUP = "latency"


@dataclass
class Variant:
    """One row of the table."""

    name: str
    about: str
    group: str
    threads: int
    program: str
    args: list[str]
    answer: str | None  # None: compared with a run without preload
    environment: dict[str, str] = field(default_factory=dict)
    stdin: str | None = None
    prepare: list[list[str]] = field(default_factory=list)  # before each run, not measured
    drive: list[list[str]] = field(default_factory=list)  # clients of a server; their time counts
    ask: list[list[str]] = field(default_factory=list)  # of the server; its answers are compared
    stop: list[list[str]] = field(default_factory=list)  # ends the server
    verify: list[list[str]] = field(default_factory=list)  # after each run; output is compared
    outputs: list[str] = field(default_factory=list)  # files that are compared
    socket: str | None = None  # a server is ready when this exists
    trace_threads: bool = False
    bundles_malloc: bool = False  # libc has to be preloaded for the baseline

    @property
    def is_real(self) -> bool:
        return self.answer is None

    @property
    def is_latency(self) -> bool:
        return self.group == LATENCY_GROUP


def places(text: str) -> str:
    """Fill in the places that a declaration of a real program may name."""
    return (text.replace("{real}", str(REAL)).replace("{inputs}", str(REAL_INPUTS))
            .replace("{scratch}", str(SCRATCH)))


def filled(commands: list[list[str]]) -> list[list[str]]:
    return [[places(word) for word in command] for command in commands]


def workload_variant(program: str, entry: dict[str, Any], quick: bool) -> Variant:
    prefix = "quick_" if quick else ""
    return Variant(
        entry["name"], entry["about"], entry["group"], entry["threads"],
        str(BUILD / "bench" / program), list(entry[f"{prefix}args"]), entry[f"{prefix}answer"],
    )


def real_variant(program: str, entry: dict[str, Any], quick: bool) -> Variant:
    def given(name: str, default: Any) -> Any:
        """The field, or its small form in a quick run when there is one."""
        return entry.get(f"quick_{name}" if quick else name, entry.get(name, default))

    stdin = given("stdin", "")
    return Variant(
        entry["name"], entry["about"], "real", entry["threads"], program,
        [places(word) for word in given("args", [])], None,
        environment={key: places(value) for key, value in entry.get("environment", {}).items()},
        stdin=places(stdin) if stdin else None,
        prepare=filled(given("prepare", [])),
        drive=filled(given("drive", [])),
        ask=filled(entry.get("ask", [])),
        stop=filled(entry.get("stop", [])),
        verify=filled(entry.get("verify", [])),
        outputs=[places(path) for path in entry.get("outputs", [])],
        socket=places(entry["socket"]) if "socket" in entry else None,
        trace_threads=entry.get("trace_threads", False),
        bundles_malloc=entry.get("bundles_malloc", False),
    )


def read_folder(folder: Path, real: bool, quick: bool) -> list[Variant]:
    variants = []
    for path in sorted(folder.glob("*.toml")):
        try:
            declaration = tomllib.loads(path.read_text(encoding="utf-8"))
            make = real_variant if real else workload_variant
            variants += [make(declaration["program"], entry, quick)
                         for entry in declaration["variant"]]
        except (tomllib.TOMLDecodeError, KeyError) as error:
            raise UsageError(f"{path.relative_to(ROOT)}: {error}") from error
    return variants


def load(real: bool, quick: bool, patterns: list[str]) -> list[Variant]:
    """The variants whose name, program or group matches one of the patterns."""
    found = read_folder(REAL if real else WORKLOADS, real, quick)
    chosen = [
        variant for variant in found
        if not patterns or any(
            fnmatch.fnmatch(text, pattern)
            for pattern in patterns
            for text in (variant.name, Path(variant.program).name, variant.group)
        )
    ]
    if not chosen:
        raise UsageError(f"no workload matches {' '.join(patterns)}" if patterns
                         else "no workload is declared")
    return chosen
