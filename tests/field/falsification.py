"""Falsification: decisions of a recording, moved to a node that the scheduler would not have taken, one at a time.

`python -m tests.field.falsification FILE...` counts the moved decisions that are still explained: false agreements.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bayplan.answers.decision_judge import DecisionJudge
from bayplan.answers.decisions import DecisionFollower
from bayplan.answers.judged_decision import JudgedDecision
from bayplan.answers.judged_replay import judge_recording
from bayplan.api.pod import Pod
from bayplan.scheduler.assessment import Assessment, assess
from bayplan.sim.recording_file import DELETED, Recording, read_recording
from bayplan.sim.replay_report import EXPLAINED
from bayplan.sim.settings import Settings
from bayplan.trials import TrialCluster

KINDS = ("second best", "lower", "infeasible")
MOST = 60
"""Decisions of each recording that are moved."""


class Moved(NamedTuple):
    """A decision that was moved, and how it is judged now."""

    kind: str
    decision: JudgedDecision
    points: int | None
    """Points that the node is behind in the recorded state; None for an infeasible one."""

    @property
    def passes(self) -> bool:
        """Whether it is still called an agreement."""
        return self.decision.verdict in EXPLAINED


class _OneJudge(DecisionJudge):
    """Judges the decision about one pod only."""

    uid = ""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.found: dict[str, Assessment] = {}

    def judge(self, decision: JudgedDecision) -> bool:
        if decision.pod.uid != self.uid:
            return True
        if not self.found:
            names = self._view.table.row_of
            self.found = {
                name: assess(self.ask(decision.pod), name, in_full=False) for name in names
            }
        return super().judge(decision)


class _OneDecision(DecisionFollower):
    """Follows the decision about one pod only."""

    make_judge = _OneJudge
    _judge: _OneJudge

    def __init__(self, view: TrialCluster, uid: str) -> None:
        super().__init__(view)
        self._judge.uid = uid

    @property
    def found(self) -> dict[str, Assessment]:
        """Every node in the state of the decision."""
        return self._judge.found


def move(recording: Recording, uid: str, node_name: str = "") -> _OneDecision:
    """Follows a recording in which the pod went to the node; unchanged without one."""
    follower = _OneDecision(TrialCluster(recording.objects, Settings()), uid)
    for event in recording.events:
        obj: Any = event.obj
        if node_name and isinstance(obj, Pod) and obj.uid == uid and obj.node_name:
            obj = obj.replace(node_name=node_name)
        follower.take(event.at_s, obj, is_deleted=event.type == DELETED)
    follower.finish(recording.duration_s)
    return follower


def other_nodes(found: dict[str, Assessment], draw: random.Random) -> Iterator[tuple[str, str]]:
    """Kinds of wrong nodes, with a node of each."""
    lower = sorted(
        (one for one in found.values() if one.fits and not one.is_best),
        key=lambda one: (-(one.total or 0), one.node_name),
    )
    if lower:
        yield KINDS[0], lower[0].node_name
        yield KINDS[1], draw.choice(lower).node_name
    if infeasible := sorted(name for name, one in found.items() if not one.fits):
        yield KINDS[2], draw.choice(infeasible)


def falsify(recording: Recording, most: int = MOST) -> Iterator[Moved]:
    """Moves up to `most` decisions that the recorded state explains, each to a node of every kind."""
    draw = random.Random(0)
    judged = judge_recording(recording, Settings()).decisions
    clear = [
        one
        for one in judged
        if one.node_name and one.verdict in EXPLAINED and one.state and one.state.is_present
    ]
    for one in draw.sample(clear, min(most, len(clear))):
        found = move(recording, one.pod.uid).found
        for kind, node_name in other_nodes(found, draw):
            decisions = move(recording, one.pod.uid, node_name).decisions
            these = [d for d in decisions if d.pod.uid == one.pod.uid and d.node_name]
            if len(these) != 1:  # its node was announced before the binding
                continue
            there = found[node_name]
            points = None if there.total is None else (there.best_total or 0) - there.total
            yield Moved(kind, these[0], points)


def main() -> None:
    for file in sys.argv[1:]:
        moved = list(falsify(read_recording(Path(file))))
        for kind in KINDS:
            these = [one for one in moved if one.kind == kind]
            passed = [one for one in these if one.passes]
            print(f"{file}: {kind}: {len(passed)} of {len(these)} still agree")
            for one in passed:
                state = one.decision.state
                size = (len(state.left_out), len(state.anticipated)) if state else None
                print(
                    f"    {one.decision.pod.key}: {one.points} points, {one.decision.verdict}, {size}"
                )


if __name__ == "__main__":
    main()
