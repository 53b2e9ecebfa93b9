"""campaign -- all variants under all allocators, interleaved, kept as they come.

For each variant: one unrecorded run of each allocator, then rounds of one run each.
The order turns by one place a round, so that no allocator always follows the same
neighbour. The result file is rewritten after each round: whatever stops a campaign,
what is finished stays, and `--resume` goes on from there.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from . import machine
from .allocators import BASELINE, Allocator
from .paths import relative
from .sample import Refused, shown_command, take_sample
from .variants import Variant

FORMAT = 1


def describe_allocator(allocator: Allocator) -> dict[str, Any]:
    return {
        "library": relative(str(allocator.public_library)) if allocator.library else None,
        "version": allocator.version,
        "compiler": allocator.compiler,
        "sha256": allocator.sha256,
        "environment": allocator.environment,
    }


def describe_variant(variant: Variant, allocators: list[Allocator]) -> dict[str, Any]:
    return {
        "about": variant.about,
        "group": variant.group,
        "threads": variant.threads,
        "program": relative(variant.program),
        "args": [relative(word) for word in variant.args],
        "answer": variant.answer,
        "environment": {name: relative(value) for name, value in variant.environment.items()},
        "commands": {one.name: shown_command(variant, one) for one in allocators},
        "drive": [[relative(word) for word in command] for command in variant.drive],
    }


def new_document(label: str, settings: dict[str, Any], variants: list[Variant],
                 allocators: list[Allocator]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "label": label,
        "commit": machine.commit(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "settings": settings,
        "machine": machine.describe(),
        "allocators": {one.name: describe_allocator(one) for one in allocators},
        "variants": {one.name: describe_variant(one, allocators) for one in variants},
        "samples": [],
        "refused": [],
    }


def store(document: dict[str, Any], path: Path) -> None:
    """One sample a line: small enough to commit, and to compare by eye."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {name: value for name, value in document.items() if name not in ("samples", "refused")}
    text = json.dumps(head, indent=1)[:-2]
    for name in ("samples", "refused"):
        lines = ",\n  ".join(json.dumps(entry) for entry in document[name])
        text += f',\n "{name}": [\n  {lines}\n ]'
    temporary = path.with_suffix(".new")
    temporary.write_text(text + "\n}\n", encoding="utf-8")
    temporary.replace(path)


class Campaign:
    """Runs what is missing in a document, and keeps it on disk."""

    def __init__(self, document: dict[str, Any], path: Path, variants: list[Variant],
                 allocators: list[Allocator]) -> None:
        self.document = document
        self.path = path
        self.variants = variants
        self.allocators = allocators
        self.runs: int = document["settings"]["runs"]
        self.limit_s: int = document["settings"]["timeout_s"]
        self.peak_kib: dict[str, int] = {}  # of each variant, under the hungriest allocator so far
        for sample in document["samples"]:
            self.note_peak(sample["variant"], sample)

    def done(self, variant: Variant, allocator: Allocator) -> set[int]:
        return {
            sample["round"] for sample in self.document["samples"]
            if sample["variant"] == variant.name and sample["allocator"] == allocator.name
        }

    def refuse(self, variant: Variant, allocator: Allocator, round_number: int,
               reason: str) -> None:
        """From here on this allocator has no result on this variant."""
        print(f"refused: {variant.name} under {allocator.name}: {reason}", file=sys.stderr)
        entry = {"variant": variant.name, "allocator": allocator.name, "round": round_number,
                 "reason": reason}
        self.document["refused"].append(entry)
        self.document["samples"] = [
            sample for sample in self.document["samples"]
            if (sample["variant"], sample["allocator"]) != (variant.name, allocator.name)
        ]

    def is_refused(self, variant: Variant, allocator: Allocator) -> bool:
        return any((entry["variant"], entry["allocator"]) == (variant.name, allocator.name)
                   for entry in self.document["refused"])

    def attempt(self, variant: Variant, allocator: Allocator, round_number: int,
                expected: str | None) -> dict[str, Any] | None:
        """One run; None, and refused from now on, when it cannot be trusted."""
        try:
            sample = take_sample(variant, allocator, self.limit_s, self.warm_mib(variant))
            if expected is not None and sample["answer"] != expected:
                raise Refused(f"its output differs from that without preload: "
                              f"{sample['answer']} instead of {expected}")
        except Refused as error:
            self.refuse(variant, allocator, round_number, str(error))
            return None
        self.note_peak(variant.name, sample)
        return sample

    def note_peak(self, name: str, sample: dict[str, Any]) -> None:
        self.peak_kib[name] = max(self.peak_kib.get(name, 0), sample["tree_peak_kib"])

    def warm_mib(self, variant: Variant) -> int:
        """Memory to touch before a run: what it will need, and a quarter more. The same for all."""
        return self.peak_kib.get(variant.name, 0) * 5 // 4 // 1024 + 1

    def reference(self, variant: Variant) -> str | None:
        """What a real program puts out without any preload."""
        if not variant.is_real:
            return None
        plain = Allocator(BASELINE, None, "")
        return take_sample(variant, plain, self.limit_s)["answer"]

    def run_variant(self, variant: Variant) -> None:
        wanted = set(range(1, self.runs + 1))
        open_allocators = [one for one in self.allocators if not self.is_refused(variant, one)]
        if all(self.done(variant, one) >= wanted for one in open_allocators):
            return
        try:
            expected = self.reference(variant)
        except Refused as error:
            for one in open_allocators:
                self.refuse(variant, one, 0, f"without preload: {error}")
            return
        for one in open_allocators:  # warm-up: files into the page cache, failures found early
            self.attempt(variant, one, 0, expected)
        for round_number in sorted(wanted):
            turn = round_number % len(self.allocators)
            for one in self.allocators[turn:] + self.allocators[:turn]:
                if self.is_refused(variant, one) or round_number in self.done(variant, one):
                    continue
                sample = self.attempt(variant, one, round_number, expected)
                if sample is not None:
                    self.document["samples"].append(
                        {"variant": variant.name, "allocator": one.name, "round": round_number,
                         **sample})
            store(self.document, self.path)

    def check_libraries(self) -> None:
        """A library that was rebuilt meanwhile would mix two allocators in one column."""
        for one in self.allocators:
            if one.current_sha256() != self.document["allocators"][one.name]["sha256"]:
                raise Refused(f"{one.name}'s library has changed since the campaign began; "
                              "its results are not one allocator's")

    def run(self) -> None:
        """All that is missing; what is there when it is stopped is on disk."""
        try:
            self.run_all()
        finally:
            store(self.document, self.path)

    def run_all(self) -> None:
        for number, variant in enumerate(self.variants, 1):
            print(f"[{number}/{len(self.variants)}] {variant.name}", file=sys.stderr, flush=True)
            self.check_libraries()
            self.run_variant(variant)
        self.check_libraries()
        self.document["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
