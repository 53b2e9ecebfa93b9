"""Budgets for the memory of tests, for pytest, which finds this through the package's entry point:

    @pytest.mark.hakmem_budget(peak="64MiB", live="1MiB")
    def test_export(): ...

docs/budgets.md says what is measured, and how exactly.
"""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest

import hakmem

MARKER = "hakmem_budget"
MEASURES = {
    "peak": "more of its memory was resident than at its beginning",
    "live": "more was live at its end than at its beginning",
}
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
UNCHECKED = "hakmem_unchecked"  # a property of a test: why its budget was not checked


def amount(value: object) -> int:
    """Bytes, from "64MiB", "1.5 GiB" or a number."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if found is None or found[2] not in UNITS:
        raise ValueError(f"{value!r} is no amount of memory: those are as '64MiB', '1.5 GiB', 4096")
    return int(float(found[1]) * UNITS[found[2]])


def shown(count: float) -> str:
    for unit in ("GiB", "MiB", "KiB"):
        if count >= UNITS[unit]:
            return f"{count / UNITS[unit]:.1f} {unit}"
    return f"{count:.0f} bytes"


def budget_of(item: pytest.Item) -> dict[str, int]:
    """What the nearest marker allows; empty if there is none."""
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return {}
    wrong = f"{item.nodeid}: {MARKER}"
    if marker.args or not marker.kwargs or not set(marker.kwargs) <= set(MEASURES):
        raise pytest.UsageError(f"{wrong}: it takes {' and '.join(f'{name}=' for name in MEASURES)}, one of them at least")
    try:
        return {name: amount(value) for name, value in marker.kwargs.items()}
    except ValueError as error:
        raise pytest.UsageError(f"{wrong}: {error}") from None


def resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    raise OSError(f"the kernel does not tell {field}")


class Watch:
    """The memory that the process uses from now on."""

    def __init__(self, budget: dict[str, int]) -> None:
        self.budget = budget
        gc.collect()
        self.live = hakmem.stats()["live_bytes"]
        if "peak" in budget:
            hakmem.trim()  # free memory would be used again without becoming resident
            Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again
            self.resident = resident("VmRSS")

    def used(self) -> dict[str, int]:
        used = {}
        if "peak" in self.budget:
            used["peak"] = max(0, resident("VmHWM") - self.resident)
        if "live" in self.budget:
            gc.collect()
            used["live"] = max(0, hakmem.stats()["live_bytes"] - self.live)
        return used


class Begins:
    """Before the test function, after its fixtures. A test that does not finish is not judged."""

    def __init__(self, must_check: bool) -> None:
        self.must_check = must_check
        self.watch: Watch | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.watch = None
        budget = budget_of(item)
        if not budget:
            return
        why = ""
        try:
            self.watch = Watch(budget)
        except (hakmem.NotActive, OSError) as error:
            why = str(error)
        if why and self.must_check:
            pytest.fail(f"its memory cannot be measured: {why}", pytrace=False)
        elif why:
            item.user_properties.append((UNCHECKED, why))


class Ends:
    """After the test function, if it has passed."""

    def __init__(self, begins: Begins) -> None:
        self.begins = begins

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        watch = self.begins.watch
        if watch is None:
            return
        used = watch.used()
        item.user_properties += [(f"hakmem_{name}_bytes", count) for name, count in used.items()]
        lines = [
            f"  {name}: {shown(count)} {MEASURES[name]}; its budget is {shown(watch.budget[name])}"
            for name, count in used.items()
            if count > watch.budget[name]
        ]
        if lines:
            pytest.fail("\n".join([f"{item.name} used more memory than its budget:", *lines]), pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hakmem")
    group.addoption(
        "--require-hakmem",
        action="store_true",
        help="a test that has a memory budget fails if that cannot be checked, as in a process without hakmem",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f'{MARKER}(peak="64MiB", live="1MiB"): what memory the test may use, in a process that uses hakmem'
    )
    begins = Begins(config.getoption("--require-hakmem"))
    config.pluginmanager.register(begins)
    config.pluginmanager.register(Ends(begins))


def pytest_collection_finish(session: pytest.Session) -> None:
    for item in session.items:
        budget_of(item)  # a wrong marker is reported before the first test runs


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for of_kind in terminalreporter.stats.values() for report in of_kind]
    tests = (dict(report.user_properties) for report in reports if getattr(report, "when", None) == "call")
    reasons = [properties[UNCHECKED] for properties in tests if UNCHECKED in properties]
    for why in sorted(set(reasons)):
        terminalreporter.write_line(f"hakmem: {reasons.count(why)} memory budgets were not checked: {why}")
