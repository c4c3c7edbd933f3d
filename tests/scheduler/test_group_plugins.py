"""Plugins of users in the scheduling cycle of a pod group: their answers, and their faults."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.framework import (
    CycleState,
    PermitPlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupPostFilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    Status,
    unschedulable,
)
from bayplan.framework.placement import Placement, PodGroupAssignments, PodGroupInfo
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_node, make_pod
from tests.scheduler.test_pod_groups import PLACES, PREEMPTING, gang, member, places, scenario


class Halves(PlacementGeneratePlugin):
    """The nodes by the first letter of their names."""

    name = "Halves"

    def generate_placements(
        self, state: CycleState, group: PodGroupInfo, parent: Placement
    ) -> Sequence[Placement]:
        first = np.array([self.handle.table.names[row][0] for row in parent.rows])
        return [Placement(str(one), parent.rows[first == one]) for one in np.unique(first)]


class Alphabet(PlacementScorePlugin):
    """Later letters are better."""

    name = "Alphabet"

    def score_placement(
        self, state: CycleState, group: PodGroupInfo, assigned: PodGroupAssignments
    ) -> int:
        return ord(assigned.placement.name) - ord("a")


def test_plugins_of_users_generate_and_score_placements() -> None:
    cluster = scenario(
        *(make_node(name, cpu="4") for name in ("a0", "b0", "c0")),
        gang(2),
        gates=PLACES,
        without=["TopologyPlacementGenerator", "PodGroupPodsCount"],
        plugins=[Halves, Alphabet],
    )
    cluster.add(member("p0"), member("p1"))

    cluster.run()

    assert places(cluster, "p0", "p1") == ["c0", "c0"]


class Broken(PlacementGeneratePlugin):
    """Raises."""

    name = "Broken"

    def generate_placements(
        self, state: CycleState, group: PodGroupInfo, parent: Placement
    ) -> Sequence[Placement]:
        raise ValueError("no map of the racks")


def test_a_plugin_that_raises_fails_the_group_and_nothing_else() -> None:
    cluster = scenario(
        make_node("a"),
        gang(2),
        gates=PLACES,
        without=["TopologyPlacementGenerator"],
        plugins=[Broken],
    )
    cluster.add(member("p0"), member("p1"), make_pod("alone"))

    cluster.run()

    first = cluster.ended[0]
    assert first.outcome is Outcome.ERROR
    assert first.message.startswith('running PlacementGenerate plugin "Broken": tests/scheduler/')
    assert first.message.endswith("generate_placements: ValueError: no map of the racks")
    assert places(cluster, "alone") == ["a"]


class BrokenPreemption(PostFilterPlugin, PodGroupPostFilterPlugin):
    """Helps no pod, and raises for a group."""

    name = "BrokenPreemption"

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Any
    ) -> tuple[PostFilterResult, Status]:
        return PostFilterResult(), unschedulable("no help")

    def post_filter_group(self, *given: Any) -> tuple[Sequence[Pod], Status]:
        raise ValueError("no list of victims")


class SilentPreemption(BrokenPreemption):
    """Returns nothing for a group."""

    def post_filter_group(self, *given: Any) -> tuple[Sequence[Pod], Status]:
        return None  # type: ignore[return-value]  # as plugins without types do


@pytest.mark.parametrize(
    ("release", "gates"), [("1.36", PREEMPTING), ("1.37", {"GenericWorkload": True})]
)
@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        (BrokenPreemption, "ValueError: no list of victims"),
        (SilentPreemption, "expected a tuple of a list of Pods and a Status; got None"),
    ],
)
def test_a_fault_in_preemption_for_a_group_fails_the_group_and_nothing_else(
    plugin: type[BrokenPreemption], text: str, release: str, gates: dict[str, bool]
) -> None:
    cluster = scenario(
        make_node("a", cpu="2"),
        gang(2),
        gates=FeatureGates(gates, release=find_release(release)),
        plugins=[plugin],
        disabled=["DefaultPreemption"],
    )
    cluster.add(member("p0", cpu="2"), member("p1", cpu="2"), make_pod("alone"))

    cluster.run()

    first = cluster.ended[0]
    assert first.outcome is Outcome.ERROR
    assert first.message.startswith('running PodGroupPostFilter plugin "BrokenPreemption": tests/')
    assert first.message.endswith(f"post_filter_group: {text}")
    assert places(cluster, "p0", "p1", "alone") == ["", "", "a"]


class OddOnly(PermitPlugin):
    """Permits pods with an odd number."""

    name = "OddOnly"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        is_odd = int(pod.name[-1]) % 2
        return (Status(), 0.0) if is_odd else (unschedulable("it is even"), 0.0)


def test_permit_of_other_plugins_is_asked_about_members_on_trial() -> None:
    cluster = scenario(make_node("a", cpu="4"), gang(2), plugins=[OddOnly])
    cluster.add(member("p0"), member("p1"), member("p3"))

    cluster.run()

    assert places(cluster, "p0", "p1", "p3") == ["", "a", "a"]
    (refused,) = [a for a in cluster.ended if a.pod.name == "p0" and a.number == 1]
    assert refused.unschedulable_plugins == {"OddOnly"}
