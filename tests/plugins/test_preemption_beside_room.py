"""DefaultPreemption: where other filters do not depend on the pods in question, sums give the result of what-ifs."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.cache import Cache
from bayplan.config.defaults import default_config
from bayplan.framework import CycleState, Handle
from bayplan.framework.diagnosis import Diagnosis
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.plugins.in_tree import IN_TREE
from bayplan.queue.nominator import PodNominator
from bayplan.runtime import ProfileRuntime, Registry
from bayplan.table import ALL
from bayplan.testing.builders import (
    ObjectLister,
    RecordingClient,
    make_node,
    make_object,
    make_pod,
)
from tests.rig.random_examples import examples

(PROFILE,) = default_config().profiles
REGISTRY = Registry(IN_TREE)
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def near(app: str, key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def apart(app: str, key: str = HOST) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [near(app, key)]}}}


THERE: list[dict[str, Any]] = [
    {"cpu": "1"},
    {"cpu": "2", "memory": "2Gi"},
    {"cpu": "1", "labels": {"app": "web"}},
    {"cpu": "2", "labels": {"app": "db"}, "host_ports": [80]},
    {"cpu": "1", "host_ports": [81]},
    {"cpu": "1", "labels": {"app": "db"}, **apart("web")},
    {"cpu": "1", "labels": {"app": "web"}, "terminating": True},
]
EVEN = {**near("web", ZONE), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
WANTED: list[dict[str, Any]] = [
    {"cpu": "3", "host_ports": [80]},
    {"cpu": "2", "labels": {"app": "web"}, **apart("web")},
    {"cpu": "2", "labels": {"app": "web"}, **apart("db", ZONE)},
    {"cpu": "3", "labels": {"app": "web"}, "spread": [EVEN]},
    {
        "cpu": "3",
        "labels": {"app": "web"},
        "affinity": {"podAffinity": {REQUIRED: [near("web", ZONE)]}},
    },
    {"cpu": "9", "host_ports": [80]},
]
PRIORITIES = st.sampled_from([0, 0, 10, 50])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Cache, PodNominator, ObjectLister, Pod]:
    """A small crowded cluster with nominated pods and a budget, and an important pod that more than room matters to."""
    cache, nominator, lister = Cache(), PodNominator(), ObjectLister()
    for number in range(draw(st.integers(1, 5))):
        pods = draw(st.sampled_from([3, 110]))
        zone = draw(st.sampled_from(["z1", "z2"]))
        cache.set_node(make_node(f"n{number}", cpu="4", memory="8Gi", zone=zone, pods=pods))
        for place in range(draw(st.integers(0, 4))):
            fields = draw(st.sampled_from(THERE))
            name = f"p{number}-{place}"
            cache.add_pod(
                make_pod(name, node_name=f"n{number}", priority=draw(PRIORITIES), **fields)
            )
    for number in draw(st.sets(st.integers(0, 4), max_size=3)):
        fields = draw(st.sampled_from([*THERE[:-1], *WANTED]))
        nominator.add(make_pod(f"rival-{number}", priority=100, **fields), f"n{number}")
    if draw(st.booleans()):
        lister.add(
            make_object(
                "PodDisruptionBudget",
                "web",
                spec={"selector": {"matchLabels": {"app": "web"}}},
                status={"disruptionsAllowed": draw(st.integers(0, 1))},
            )
        )
    wanted = make_pod("wanted", priority=100, **draw(st.sampled_from(WANTED)))
    return cache, nominator, lister, wanted


def preempt(world: tuple[Cache, PodNominator, ObjectLister, Pod], by_what_ifs: bool) -> Any:
    """The decision, without its effects; None when the pod fits somewhere."""
    cache, nominator, lister, pod = world
    table = cache.table
    handle = Handle(table, lister=lister, client=RecordingClient(), nominator=nominator)
    runtime = ProfileRuntime(PROFILE, REGISTRY, handle)
    filtering, plugin = runtime.filtering, runtime.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    plugin._min_percentage = 100
    ask = (lambda *_: None) if by_what_ifs else filtering.beside_room
    with patch.object(filtering, "beside_room", ask), patch.object(plugin._evictions, "evict"):
        state, diagnosis = CycleState(), Diagnosis(table, node_count=table.node_count)
        if not filtering.run_pre_filters(state, pod, table).status.is_success:
            return None
        filtering.diagnose(state, pod, table, ALL, diagnosis)
        said = [diagnosis.status_of(row) for row in range(len(table))]
        if any(status.is_success for status in said):
            return None
        result, status = plugin.post_filter(state, pod, diagnosis)
    account = result.preemption
    assert account is not None
    candidates = {
        name: ([pod.name for pod in victims.pods], victims.pdb_violations)
        for name, victims in account.candidates.items()
    }
    chosen = account.chosen.node_name if account.chosen is not None else None
    return said, status, account.reasons, account.rejected, candidates, chosen


@settings(max_examples=examples(70), deadline=None)
@given(worlds())
def test_beside_room_and_by_what_ifs_decide_alike(
    world: tuple[Cache, PodNominator, ObjectLister, Pod],
) -> None:
    assert preempt(world, by_what_ifs=False) == preempt(world, by_what_ifs=True)


def test_the_search_needs_no_what_if_where_filters_depend_on_no_pod() -> None:
    cache = Cache()
    cache.set_node(make_node("n0", cpu="4"))
    cache.add_pod(make_pod("plain", node_name="n0", cpu="3"))
    cache.add_pod(make_pod("port", node_name="n0", cpu="1", host_ports=[81]))
    world = (cache, PodNominator(), ObjectLister(), make_pod(priority=9, cpu="3", host_ports=[80]))

    with patch(
        "bayplan.plugins.default_preemption.node_victims.OneByOne._select_victims",
        side_effect=AssertionError,
    ):
        decided = preempt(world, by_what_ifs=False)

    assert decided[-2:] == ({"n0": (["plain"], 0)}, "n0")
