"""Release changes: pods and members of pod groups are judged by both releases, and each change has a cause."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bayplan.answers.release_changes import SEVERAL, ReleaseChanges, find_release_changes
from bayplan.api.pod import Pod
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.sim import read_manifests
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_gang, make_node, make_pod

GANG = Path(__file__).parents[2] / "examples" / "gang"
GROUPS = {"GenericWorkload": True}
GANGS = {**GROUPS, "GangScheduling": True}


def find(
    objects: Sequence[Any],
    before: str,
    after: str,
    gates: dict[str, bool] | None = None,
    gates_after: dict[str, bool] | None = None,
) -> ReleaseChanges:
    first = FeatureGates(gates or {}, release=find_release(before))
    second = FeatureGates(gates_after or {}, release=find_release(after))
    return find_release_changes(
        objects, Settings(None, first, (), 0), Settings(None, second, (), 0)
    )


def make_resized(name: str, node_name: str) -> Pod:
    """A running pod of which one container grows while another one shrinks: 5 CPUs up to v1.36, 4 from v1.37 on."""

    def amounts(cpu: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}}

    def given(container: str) -> dict[str, Any]:
        return {"name": container, "allocatedResources": {"cpu": "2"}, **amounts("2")}

    containers = [
        {"name": "x", "image": "i", **amounts("1")},
        {"name": "y", "image": "i", **amounts("3")},
    ]
    return make_pod(
        name,
        node_name=node_name,
        spec={"containers": containers},
        status={"phase": "Running", "containerStatuses": [given("x"), given("y")]},
    )


def test_devices_that_one_release_alone_gives_are_a_change_with_a_cause() -> None:
    manifests = read_manifests([Path(__file__).parents[2] / "examples" / "dra"])

    found = find(manifests.objects, "1.33", "1.34")

    assert {each.kind for each in found.changed} == {"devices"}
    assert found.pods == len(found.changed) == 7
    assert all("DynamicResourceAllocation" in each.causes for each in found.changed)


# Pod groups


def test_members_of_groups_are_judged_together() -> None:
    objects = read_manifests([GANG / "cluster.yaml", GANG / "gangs.yaml"]).objects
    topology = {"TopologyAwareWorkloadScheduling": True}

    found = find(objects, "1.36", "1.37", GANGS | topology, GROUPS | topology)

    assert (found.pods, found.left_out) == (27, 0)
    assert found.counts() == {"message": 15}
    assert found.causes() == {"groups_are_entries": 15, "tells_claims_kept": 11}


def test_a_member_that_moves_has_a_cause_and_a_score() -> None:
    nodes = [make_node("a", cpu="8"), make_node("b", cpu="8")]
    running = [make_resized("resized", "b"), make_pod("other", cpu="4500m", node_name="a")]

    found = find([*nodes, *running, *make_gang("red", 1, cpu="1")], "1.36", "1.37", GANGS, GROUPS)

    (moved,) = found.changed
    assert (moved.kind, moved.before, moved.after) == ("node", "a", "b")
    assert moved.causes == ("requests_by_pod",)
    assert moved.plugin == "NodeResourcesFit"


def test_a_group_changes_nothing_against_its_own_release() -> None:
    objects = read_manifests([GANG / "cluster.yaml", GANG / "gangs.yaml"]).objects

    found = find(objects, "1.36", "1.36", GANGS, GANGS)

    assert (found.pods, found.changed) == (27, [])


@pytest.mark.parametrize(
    ("before", "after", "alone"),
    [
        pytest.param({}, GROUPS, "v1.37.0-rc.1", id="groups after the upgrade"),
        pytest.param(GANGS, {}, "v1.36.4", id="groups before the upgrade"),
    ],
)
def test_members_are_left_out_if_one_release_alone_has_groups(
    before: dict[str, bool], after: dict[str, bool], alone: str
) -> None:
    objects = [make_node("a"), *make_gang("red", 2, cpu="1"), make_pod("single", cpu="1")]

    found = find(objects, "1.36", "1.37", before, after)

    assert (found.pods, found.left_out) == (1, 2)
    assert found.to_dict()["leftOut"] == 2
    assert f"members of pod groups, 2 pods, which only {alone} places together" in found.notes[-1]


# The cluster as each release reads it


def test_pods_on_nodes_count_as_the_release_counts_them() -> None:
    objects = [make_node("a", cpu="8"), make_resized("resized", "a"), make_pod("new", cpu="4")]

    found = find(objects, "1.36", "1.37")

    (changed,) = found.changed
    assert (changed.kind, changed.after, changed.causes) == (
        "schedulable",
        "a",
        ("requests_by_pod",),
    )


def test_fields_that_only_the_second_release_reads_count() -> None:
    wants = {"resources": {"requests": {"cpu": "16"}}}
    objects = [make_node("a", cpu="8"), make_pod("large", spec=wants)]

    found = find(objects, "1.33", "1.34")

    (changed,) = found.changed
    assert (changed.kind, changed.before) == ("pending", "a")
    assert "PodLevelResources" in changed.causes
    assert SEVERAL not in changed.causes
