#!/usr/bin/env python3
"""Check the runner: its arithmetic, and that what must be refused is refused.

    bench/runner/check.py [build/bench/measure]

With measure, also small programs are run for real. Exit code 0 passed, 1 failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runner import report, sample, summary  # noqa: E402  (the path comes first)
from runner.allocators import Allocator  # noqa: E402
from runner.campaign import Campaign, new_document, store  # noqa: E402
from runner.variants import Variant  # noqa: E402

GLIBC = Allocator("glibc", None, "test")
SLOWER, FASTER = 2.0, 1.0


def a_sample(variant: str, allocator: str, number: int, seconds: float) -> dict:
    return {"variant": variant, "allocator": allocator, "round": number, "wall_s": seconds,
            "cpu_s": seconds, "peak_kib": 1024 * seconds, "other_cpu_s": 0.0, "reported": {}}


def a_document() -> dict:
    """Two workloads; on the first ours takes half the time, on the second twice."""
    variants = [Variant("first", "one", "single-thread", 1, "p", [], "x"),
                Variant("second", "two", "single-thread", 1, "p", [], "x")]
    document = new_document("", {"runs": 3, "quick": False}, variants,
                            [replace(GLIBC, name="hakmem"), replace(GLIBC, name="peer")])
    document["samples"] = [
        a_sample(variant, allocator, number, seconds)
        for variant, times in (("first", (FASTER, SLOWER)), ("second", (SLOWER, FASTER)))
        for allocator, seconds in zip(("hakmem", "peer"), times) for number in (1, 2, 3)
    ]
    return document


class Arithmetic(unittest.TestCase):
    def test_the_geometric_mean_of_opposite_ratios_is_one(self) -> None:
        values = summary.values_of(a_document(), "wall_s")
        ratio = summary.mean_ratio(values, "hakmem", "peer")
        self.assertAlmostEqual(ratio.value, 1.0)

    def test_means_are_against_the_best_of_each_workload(self) -> None:
        means = summary.means_against_best(summary.values_of(a_document(), "wall_s"))
        self.assertAlmostEqual(means["hakmem"][0], 2 ** 0.5)
        self.assertEqual(means["hakmem"][1], 2)

    def test_our_own_settings_are_no_peers(self) -> None:
        self.assertEqual(summary.best_peer({"hakmem": 1, "hakmem+A=1": 2, "peer": 3}), "peer")

    def test_the_interval_holds_the_ratio_and_repeats(self) -> None:
        ours, theirs = [1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.6]
        ratio = summary.ratio(ours, theirs, "seed")
        self.assertLess(ratio.low, ratio.value)
        self.assertGreater(ratio.high, ratio.value)
        self.assertEqual(ratio, summary.ratio(ours, theirs, "seed"))

    def test_spread_is_the_distance_of_the_quartiles(self) -> None:
        self.assertAlmostEqual(summary.spread([1, 2, 3, 4, 5]), 2 / 3)
        self.assertEqual(summary.spread([3, 3, 3]), 0)

    def test_latency_stays_out_of_the_means(self) -> None:
        document = a_document()
        document["variants"]["second"]["group"] = "latency"
        values = summary.in_means(document, summary.values_of(document, "wall_s"))
        self.assertEqual(list(values), ["first"])

    def test_a_refused_allocator_shows_as_refused(self) -> None:
        document = a_document()
        document["samples"] = [one for one in document["samples"]
                               if (one["variant"], one["allocator"]) != ("first", "peer")]
        document["refused"] = [{"variant": "first", "allocator": "peer", "round": 0,
                                "reason": "wrong answer"}]
        text = report.render(document)
        self.assertIn("refused: first under peer: wrong answer", text)

    def test_a_result_file_holds_what_was_stored(self) -> None:
        document = a_document()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            store(document, path)
            self.assertEqual(json.loads(path.read_text()), document)
            document["samples"] = []
            store(document, path)
            self.assertEqual(json.loads(path.read_text()), document)


def a_report(**process: object) -> dict:
    proof = {"error": None, "private_malloc": False, "owners": ["/lib/libpeer.so"],
             "importers": ["/bin/program"]}
    entry = {"program": "/bin/program", "peak_kib": 1, "hidden_children": False, "proof": proof}
    entry.update({key: value for key, value in process.items() if key in entry})
    proof.update({key: value for key, value in process.items() if key in proof})
    return {"processes": [entry]}


class Proof(unittest.TestCase):
    peer = Allocator("peer", Path("/lib/libpeer.so"), "test")

    def refusal(self, **process: object) -> str:
        with self.assertRaises(sample.Refused) as caught:
            sample.check_proof(a_report(**process), self.peer)
        return str(caught.exception)

    def test_the_right_owner_passes(self) -> None:
        sample.check_proof(a_report(), self.peer)

    def test_another_owner_is_refused(self) -> None:
        self.assertIn("libc.so.6", self.refusal(owners=["/lib/libc.so.6"]))

    def test_a_second_owner_is_refused(self) -> None:
        self.assertIn("/bin/own", self.refusal(owners=["/lib/libpeer.so", "/bin/own"]))

    def test_no_owner_is_refused(self) -> None:
        self.refusal(owners=[])

    def test_a_private_malloc_is_refused(self) -> None:
        self.refusal(private_malloc=True)

    def test_a_program_that_never_calls_is_refused(self) -> None:
        self.assertIn("does not call", self.refusal(importers=["/lib/libc.so.6"]))

    def test_unseen_children_are_refused(self) -> None:
        self.refusal(hidden_children=True)

    def test_an_unreadable_process_is_refused(self) -> None:
        self.refusal(error="the program is static: nothing can be preloaded")


class RealRuns(unittest.TestCase):
    """Needs measure: small programs, run to the end."""

    measure: Path | None = None

    def setUp(self) -> None:
        if self.measure is None:
            self.skipTest("no measure given")
        sample.MEASURE = self.measure
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def variant(self, script: str, answer: str) -> Variant:
        return Variant("v", "about", "single-thread", 1, "/bin/sh", ["-c", script], answer)

    def campaign(self, variant: Variant, allocators: list[Allocator]) -> Campaign:
        document = new_document("", {"runs": 2, "quick": True, "timeout_s": 3}, [variant],
                                allocators)
        return Campaign(document, Path(self.folder.name) / "r.json", [variant], allocators)

    def reasons(self, campaign: Campaign) -> list[str]:
        campaign.run()
        return [one["reason"] for one in campaign.document["refused"]]

    def test_a_right_run_is_kept_once_a_round(self) -> None:
        campaign = self.campaign(self.variant("echo 'answer: 7'; echo 'ops/s: 5'", "7"), [GLIBC])
        self.assertEqual(self.reasons(campaign), [])
        kept = campaign.document["samples"]
        self.assertEqual([one["round"] for one in kept], [1, 2])
        self.assertEqual(kept[0]["reported"], {"ops/s": 5})
        campaign.run()
        self.assertEqual(len(campaign.document["samples"]), 2)

    def test_a_wrong_answer_is_refused(self) -> None:
        campaign = self.campaign(self.variant("echo answer: 8", "7"), [GLIBC])
        self.assertIn("wrong answer", self.reasons(campaign)[0])
        self.assertEqual(campaign.document["samples"], [])

    def test_a_failing_command_is_refused(self) -> None:
        campaign = self.campaign(self.variant("echo answer: 7; exit 3", "7"), [GLIBC])
        self.assertIn("exit code 3", self.reasons(campaign)[0])

    def test_a_command_that_hangs_is_refused(self) -> None:
        campaign = self.campaign(self.variant("exec sleep 20", "7"), [GLIBC])
        self.assertIn("not finished", self.reasons(campaign)[0])

    def test_a_library_that_the_linker_ignores_is_refused(self) -> None:
        library = Path(self.folder.name) / "libnone.so"
        library.write_text("not a library")
        absent = Allocator("absent", library, "test")
        absent.sha256 = absent.current_sha256()
        campaign = self.campaign(self.variant("echo answer: 7", "7"), [absent])
        self.assertIn("instead of absent", self.reasons(campaign)[0])

    def test_a_library_that_does_not_define_malloc_is_refused(self) -> None:
        library = Path(self.folder.name) / "libempty.so"
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
        empty = Allocator("empty", library, "test")
        empty.sha256 = empty.current_sha256()
        campaign = self.campaign(self.variant("echo answer: 7", "7"), [empty])
        self.assertIn("instead of empty", self.reasons(campaign)[0])

    def test_a_library_that_changes_meanwhile_stops_the_campaign(self) -> None:
        library = Path(self.folder.name) / "libchanges.so"
        library.write_text("before")
        changes = Allocator("changes", library, "test")
        changes.sha256 = changes.current_sha256()
        campaign = self.campaign(self.variant("echo answer: 7", "7"), [changes])
        library.write_text("after")
        with self.assertRaises(sample.Refused):
            campaign.run()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        RealRuns.measure = Path(sys.argv.pop(1)).resolve()
    unittest.main()
