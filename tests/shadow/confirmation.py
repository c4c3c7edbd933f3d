"""Confirmation: the totals of sampled decisions, repeated with `explain` on the evidence.

`python -m tests.shadow.confirmation run.jsonl.gz` judges the decisions of a recording, writes the objects of every
sampled one, and explains its pod in them. `--part 2/3` does the second of every three.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bayplan import Cluster, explain
from bayplan.answers.judged_decision import JudgedDecision
from bayplan.config.releases import recorded_version
from bayplan.shadow import evidence
from bayplan.shadow.evidence import INDEX, EvidenceFolder
from bayplan.shadow.shadow_run import ShadowRun, shadow_recording
from bayplan.sim.recording_file import read_recording
from bayplan.sim.settings import Settings
from bayplan.trials import TrialCluster


def confirmed(folder: Path) -> dict[str, int]:
    """The number of decisions in a folder of evidence whose totals `explain` gives, too, and of others."""
    found: Counter[str] = Counter()
    for line in map(json.loads, (folder / INDEX).read_text().splitlines()):
        confirm(folder, line, found)
    return dict(found)


def confirm(folder: Path, line: dict[str, Any], found: Counter[str]) -> None:
    """Explain the pod of one line, and count the result."""
    if line["result"] != "sampled" or " points, best " not in line["reason"]:
        found["no totals"] += 1  # a difference, or a preemption on another part of the nodes
        return
    cluster = Cluster.read(folder / line["file"])
    totals = {one.name: one.total for one in explain(cluster, line["pod"], as_is=True).scores}
    told = f"{totals[line['node']]:,} points, best {max(totals.values()):,}, "
    is_same = line["reason"].startswith(told)
    found["confirmed" if is_same else "other"] += 1
    if not is_same:
        print(f"{line['pod']}: {line['reason']} != {told}", file=sys.stderr)


class ConfirmedEvidence(EvidenceFolder):
    """Confirms each file after it was written, and removes it."""

    def __init__(self, folder: Path, settings: Settings, version: str, part: str) -> None:
        super().__init__(folder, settings, version, takes_sampled=True)
        self.found: Counter[str] = Counter()
        self._place = folder
        self._chosen, self._parts = map(int, part.split("/"))
        self._number = 0

    def keep(self, decision: JudgedDecision, view: TrialCluster, time: str) -> str:
        """Write, confirm and remove the evidence of a decision."""
        self._number += 1
        if self._number % self._parts != self._chosen % self._parts:
            return ""
        name = super().keep(decision, view, time)
        confirm(self._place, json.loads((self._place / INDEX).read_text()), self.found)
        self.remove(name)
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--part", default="1/1")
    arguments = parser.parse_args()
    evidence.MOST_SAMPLED = sys.maxsize
    recorded = read_recording(arguments.recording, partial=True)
    version = recorded_version(recorded.objects)
    with tempfile.TemporaryDirectory() as place:
        kept = ConfirmedEvidence(Path(place), Settings(), version, arguments.part)
        run = ShadowRun(recorded.objects, Settings(), evidence=kept)
        shadow_recording(recorded, run)
    print(json.dumps({"schedulers": {n: s.agreements for n, s in run.account.schedulers.items()}}))
    print(json.dumps(dict(kept.found)))
    sys.exit(1 if kept.found["other"] else 0)


if __name__ == "__main__":
    main()
