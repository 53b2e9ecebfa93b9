#!/usr/bin/env python3
"""Measure hakmem and its peers, interleaved, and prove what was measured.

    bench/run.py                                 all workloads, all allocators
    bench/run.py --real                          real programs instead
    bench/run.py -w 'larson*' -a hakmem,glibc -n 15
    bench/run.py -a hakmem,hakmem+HAKMEM_MODE=minimal
    bench/run.py --quick                         seconds; shows that it works, measures nothing
    bench/run.py --resume FILE                   go on after Ctrl-C
    bench/run.py --report FILE [--markdown]      the table of an earlier run

Results go to bench/results/MACHINE/DATE-COMMIT[-LABEL].json; docs/measuring.md says
what is checked. Exit code: 0 ok, 1 a run was refused or stopped, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from runner import machine, report
from runner.allocators import Allocator, as_recorded, choose
from runner.campaign import FORMAT, Campaign, new_document
from runner.paths import BUILD, MEASURE, REAL_INPUTS, RESULTS, UsageError
from runner.sample import Refused
from runner.variants import Variant, load

RUNS = 10
QUICK_RUNS = 3
TIMEOUT_S = 180


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-a", "--allocators", default="", metavar="NAME,…",
                        help="hakmem, glibc, a peer, NAME=PATH; each with +SETTING=VALUE")
    parser.add_argument("-w", "--workloads", action="append", default=[], metavar="GLOB",
                        help="name, program or group; may be repeated")
    parser.add_argument("-n", "--runs", type=int, help=f"runs of each (default: {RUNS})")
    parser.add_argument("--real", action="store_true", help="real programs (bench/real)")
    parser.add_argument("--quick", action="store_true", help="small inputs, few runs")
    parser.add_argument("--timeout", type=int, default=TIMEOUT_S, metavar="SECONDS")
    parser.add_argument("--label", default="", help="goes into the result file's name")
    parser.add_argument("--json-out", type=Path, metavar="FILE", help="instead of bench/results")
    parser.add_argument("--resume", type=Path, metavar="FILE")
    parser.add_argument("--report", type=Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument("--list", action="store_true", help="print what would be run")
    arguments = parser.parse_args()
    if arguments.runs is not None and arguments.runs < 1:
        parser.error("--runs must be at least 1")
    return arguments


def read_document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    if document.get("format") != FORMAT:
        raise UsageError(f"{path} is not a result file of format {FORMAT}")
    return document


def default_path(label: str, quick: bool) -> Path:
    """Quick runs are no results: they stay out of the committed folder."""
    folder = BUILD / "bench" / "quick" if quick else RESULTS / machine.folder_name()
    name = f"{time.strftime('%Y-%m-%d')}-{machine.commit()}{'-' + label if label else ''}"
    path = folder / f"{name}.json"
    number = 2
    while path.exists() and not quick:
        path = folder / f"{name}.{number}.json"
        number += 1
    return path


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "runs": arguments.runs or (QUICK_RUNS if arguments.quick else RUNS),
        "quick": arguments.quick,
        "real": arguments.real,
        "timeout_s": arguments.timeout,
        "allocators": [name for name in arguments.allocators.split(",") if name],
        "workloads": arguments.workloads,
    }


def check_built(settings: dict[str, Any], variants: list[Variant]) -> None:
    if not MEASURE.is_file():
        raise UsageError("build/bench/measure is missing: run make")
    if settings["real"]:
        if not (REAL_INPUTS / "inputs.json").is_file():
            raise UsageError("the inputs are missing: run bench/real/make_inputs.py")
        return
    missing = sorted({Path(one.program).name for one in variants
                      if not Path(one.program).is_file()})
    if missing:
        raise UsageError(f"build/bench/ lacks {', '.join(missing)}: run make")


def prepare(arguments: argparse.Namespace) -> tuple[Campaign, Path]:
    """A new campaign, or the rest of one that was stopped."""
    document = read_document(arguments.resume) if arguments.resume else None
    settings = document["settings"] if document else settings_of(arguments)
    variants = load(settings["real"], settings["quick"], settings["workloads"])
    allocators = choose(settings["allocators"], machine.commit())
    check_built(settings, variants)
    if document is None:
        document = new_document(arguments.label, settings, variants, allocators)
        path = arguments.json_out or default_path(arguments.label, arguments.quick)
    else:
        path = arguments.resume
        check_same(document, variants, allocators)
        allocators = [as_recorded(one, document["allocators"][one.name]["sha256"])
                      for one in allocators]
    return Campaign(document, path, variants, allocators), path


def check_same(document: dict[str, Any], variants: list[Variant],
               allocators: list[Allocator]) -> None:
    if [one.name for one in variants] != list(document["variants"]) or \
            [one.name for one in allocators] != list(document["allocators"]):
        raise UsageError("the workloads or allocators are no longer those of the file")


def print_plan(campaign: Campaign) -> None:
    print("allocators: " + ", ".join(one.name for one in campaign.allocators))
    for variant in campaign.variants:
        print(f"{variant.name:<28} {variant.group:<14} {variant.about}")


def measure(arguments: argparse.Namespace) -> int:
    campaign, path = prepare(arguments)
    if arguments.list:
        print_plan(campaign)
        return 0
    stopped = ""
    try:
        campaign.run()
    except KeyboardInterrupt:
        stopped = f"stopped; go on with: bench/run.py --resume {path}"
    except Refused as error:
        stopped = f"stopped: {error}"
    print(report.render(campaign.document, arguments.markdown))
    print(f"raw data: {path}")
    if stopped:
        print(f"run.py: {stopped}", file=sys.stderr)
    return 1 if stopped or campaign.document["refused"] else 0


def main() -> int:
    arguments = parse_arguments()
    try:
        if arguments.report:
            print(report.render(read_document(arguments.report), arguments.markdown), end="")
            return 0
        return measure(arguments)
    except UsageError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 1


if __name__ == "__main__":
    sys.exit(main())
