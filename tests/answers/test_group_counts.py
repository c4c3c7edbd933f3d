"""Pod groups in what-if, capacity and compare; and notes on groups that the gates leave without effect."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.answers.capacity import find_capacity
from bayplan.answers.compare import compare
from bayplan.answers.pod_kinds import PodKind, on_nodes
from bayplan.answers.what_if import AddNodes, ask_what_if, fit_with_nodes
from bayplan.config.load import parse_config
from bayplan.errors import InputError
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.sim import Simulation
from bayplan.sim.measures.run_measures import domain_fragmentation
from bayplan.sim.settings import Settings, ignored_groups
from bayplan.testing.builders import make_gang, make_node, make_pod
from tests.rig.groups import ALL_GROUP_GATES, TWO_ZONES

SETTINGS = Settings(feature_gates=ALL_GROUP_GATES, seed=0)
ZONE = "topology.kubernetes.io/zone"


def gang_kind(size: int, **fields: Any) -> PodKind:
    group, first, *others = make_gang("red", size, **fields)
    return PodKind("red.yaml", first, 1, group, tuple(others))


# what-if


def test_a_new_node_lets_a_group_start() -> None:
    objects = [*TWO_ZONES, *make_gang("red", 3, topology_key=ZONE, cpu="2")]

    answer = ask_what_if(objects, [AddNodes(1, ("a",))], SETTINGS)

    (change,) = answer.groups
    assert (str(change.was), str(change.now), change.why) == (
        "waiting",
        "3 of 3 in one",
        "fits now",
    )
    assert answer.groups_started == (0, 1)
    assert answer.to_dict()["summary"]["podGroupsStartedAfter"] == 1


def test_an_unchanged_group_is_not_listed() -> None:
    answer = ask_what_if([*TWO_ZONES, *make_gang("red", 2)], [AddNodes(1, ("a",))], SETTINGS)

    assert (answer.groups, answer.groups_started) == ([], (1, 1))


def test_nodes_are_added_until_a_gang_fits() -> None:
    answer = fit_with_nodes([*TWO_ZONES, *make_gang("red", 5, cpu="4")], "a", SETTINGS)

    assert answer.search is not None
    assert answer.search.nodes == 3


# capacity


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        pytest.param({"cpu": "1"}, 2, id="eight pods, in threes"),
        pytest.param({"cpu": "1", "topology_key": ZONE}, 2, id="one gang in each zone"),
        pytest.param({"cpu": "2", "topology_key": ZONE}, 0, id="no zone is large enough"),
        pytest.param({"cpu": "2"}, 1, id="over both zones"),
    ],
)
def test_how_many_gangs_fit(fields: dict[str, Any], fits: int) -> None:
    answer = find_capacity(TWO_ZONES, [gang_kind(3, **fields)], SETTINGS)

    (kind,) = answer.kinds
    assert (kind.fits, kind.members, answer.rounds) == (fits, 3, fits)
    assert (answer.fits, sum(kind.nodes.values())) == (3 * fits, 3 * fits)
    assert answer.bottleneck == "cpu"
    assert "lack" in kind.message
    assert not kind.fits_alone


def test_a_gang_is_restricted_to_nodes() -> None:
    kind = on_nodes(gang_kind(2, cpu="2"), ["a"])

    (found,) = find_capacity(TWO_ZONES, [kind], SETTINGS).kinds

    assert (found.fits, set(found.nodes)) == (1, {"a"})


def test_gangs_of_a_mix_do_not_preempt() -> None:
    low = [make_pod(f"low-{name}", cpu="3", node_name=name) for name in ("a", "b")]
    kind = gang_kind(2, cpu="2", priority=1000)

    answer = find_capacity([*TWO_ZONES, *low], [kind], SETTINGS)

    assert answer.fits == 0


def test_a_taint_is_named_where_the_nodes_that_a_group_requests_have_it() -> None:
    tainted = make_node("g", cpu="8", taints=["gpu:NoSchedule"])

    answer = find_capacity([*TWO_ZONES, tainted], [gang_kind(2, cpu="6")], SETTINGS)

    assert (answer.fits, answer.bottleneck) == (0, "")
    assert answer.obstacle == "1 node that has what it requests: node(s) had untolerated taint(s)"


def test_an_amount_runs_out_for_a_group_whose_members_fit_alone() -> None:
    tainted = make_node("g", cpu="8", taints=["gpu:NoSchedule"])

    answer = find_capacity([*TWO_ZONES, tainted], [gang_kind(3, cpu="3")], SETTINGS)

    assert (answer.fits, answer.bottleneck, answer.obstacle) == (0, "cpu", "")


def test_gangs_need_the_gates() -> None:
    with pytest.raises(InputError, match="together without --feature-gates=GenericWorkload=true"):
        find_capacity(TWO_ZONES, [gang_kind(2)], Settings())


# compare


def test_groups_are_compared() -> None:
    busy = make_pod("busy", cpu="4", annotations={"bayplan.dev/duration": "60s"})
    gang = make_gang("red", 2, cpu="4")
    objects = [*TWO_ZONES, busy, *gang, *make_gang("blue", 9, cpu="4")]

    answer = compare(objects, [("one", SETTINGS), ("two", replace(SETTINGS, seed=1))])

    metrics = answer.contenders[0].metrics
    assert metrics["podGroupsStarted"].mean == 1
    assert metrics["podGroupsWaiting"].mean == 1
    assert 60 <= metrics["podGroupMeanLatency"].mean <= 72


def test_groups_are_no_metrics_of_a_workload_without_them() -> None:
    answer = compare([*TWO_ZONES, make_pod("p")], [("one", SETTINGS)])

    assert "podGroupsStarted" not in answer.contenders[0].metrics


def test_free_room_in_two_domains_is_fragmented() -> None:
    simulation = Simulation(
        [*TWO_ZONES, *make_gang("red", 3, topology_key=ZONE, cpu="2")],
        feature_gates=ALL_GROUP_GATES,
    )
    report = simulation.run()

    # Four such pods fit, two per zone: room for a gang of three, but in no zone.
    assert domain_fragmentation(report.nodes, report.groups, {"cpu": 2000}) == 1
    assert domain_fragmentation(report.nodes, report.groups, {"cpu": 1000}) == 0


# Gates


@pytest.mark.parametrize(
    ("objects", "gates", "note"),
    [
        pytest.param(
            make_gang("red", 2),
            {},
            "PodGroup objects are ignored without "
            "--feature-gates=GenericWorkload=true,GangScheduling=true",
            id="no gate",
        ),
        pytest.param(
            make_gang("red", 2),
            {"GenericWorkload": True},
            "gang policies of PodGroup objects are ignored without "
            "--feature-gates=GangScheduling=true",
            id="no gangs",
        ),
        pytest.param(
            make_gang("red", 2, topology_key=ZONE),
            {"GenericWorkload": True, "GangScheduling": True},
            "scheduling constraints of PodGroup objects are ignored without "
            "--feature-gates=TopologyAwareWorkloadScheduling=true",
            id="no topology",
        ),
        pytest.param(make_gang("red", 2, topology_key=ZONE), ALL_GROUP_GATES, "", id="all gates"),
        pytest.param([make_pod("p")], {}, "", id="no group"),
    ],
)
def test_groups_without_effect_are_named(
    objects: list[Any], gates: dict[str, bool], note: str
) -> None:
    assert ignored_groups(objects, Settings(feature_gates=gates)) == note


@pytest.mark.parametrize(
    ("version", "note"),
    [
        pytest.param(
            "1.37", "without --feature-gates=GenericWorkload=true", id="one gate for both"
        ),
        pytest.param("1.35", "in v1.35", id="groups of the release are not implemented"),
        pytest.param("1.34", "in v1.34", id="no groups"),
    ],
)
def test_gates_are_named_as_the_release_has_them(version: str, note: str) -> None:
    settings = Settings(feature_gates=FeatureGates(release=find_release(version)))

    assert ignored_groups(make_gang("red", 2), settings) == f"PodGroup objects are ignored {note}"


def test_a_profile_with_the_plugin_uses_groups_without_the_gates() -> None:
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }

    assert ignored_groups(make_gang("red", 2), Settings(parse_config(document))) == ""
