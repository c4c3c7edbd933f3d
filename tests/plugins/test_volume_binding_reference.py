"""VolumeBinding and NodeVolumeLimits against a plain reference: node by node, volume by volume."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.node import Node
from bayplan.api.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.framework import SUCCESS, CycleState
from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.table import ALL
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.storage import (
    claim_volume,
    make_attachment,
    make_claim,
    make_csi_node,
    make_storage_class,
    make_volume,
)
from tests.rig.random_examples import examples

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NODES = [make_node(f"n{i}", zone=f"z{i % 3}" if i < 5 else None) for i in range(6)]
SIZES = ["1Gi", "2Gi", "3Gi"]
few = st.integers(0, 3)


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any] | None:
    """A required node selector of any form, or none."""

    def condition() -> dict[str, Any]:
        key = draw(st.sampled_from([HOST, ZONE]))
        operator = draw(st.sampled_from(["In", "In", "In", "NotIn", "Exists"]))
        known = [node.name for node in NODES] if key == HOST else ["z0", "z1", "z2", "z9"]
        values = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True))
        return {
            "key": key,
            "operator": operator,
            "values": [] if operator == "Exists" else values,
        }

    if draw(st.integers(0, 2)) == 0:
        return None
    terms = [
        {"matchExpressions": [condition() for _ in range(draw(st.integers(1, 2)))]}
        for _ in range(draw(st.integers(1, 2)))
    ]
    return {"nodeSelectorTerms": terms}


@st.composite
def volumes(draw: st.DrawFn, number: int) -> PersistentVolume:
    claim_ref = None
    if draw(st.integers(0, 7)) == 0:
        name = draw(st.sampled_from(["c0", "c1", "other"]))
        claim_ref = {"namespace": "default", "name": name}
    return make_volume(
        f"v{number}",
        size=draw(st.sampled_from(SIZES)),
        class_name=draw(st.sampled_from(["late"] * 4 + ["later"])),
        affinity=draw(affinities()),
        claim_ref=claim_ref,
        phase=draw(st.sampled_from(["Available"] * 7 + ["Released"])),
        access_modes=draw(st.sampled_from([["ReadWriteOnce"]] * 4 + [["ReadOnlyMany"]])),
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[PersistentVolume], list[PersistentVolumeClaim]]:
    found = [draw(volumes(number)) for number in range(draw(st.integers(0, 8)))]
    claims = [
        make_claim(
            f"c{number}",
            size=draw(st.sampled_from(SIZES)),
            class_name=draw(st.sampled_from(["late"] * 3 + ["later"])),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    return found, claims


def reaches(volume: PersistentVolume, node: Node) -> bool:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    return required is None or required.matches(node.labels, "")


def match(
    claim: PersistentVolumeClaim, listed: list[PersistentVolume], node: Node, taken: set[str]
) -> PersistentVolume | None:
    best: PersistentVolume | None = None
    for volume in listed:
        if volume.storage_class_name != claim.storage_class_name or volume.name in taken:
            continue
        mine = volume.is_bound_to(claim)
        if volume.spec.claim_ref is not None and not mine:
            continue
        if volume.capacity_bytes < claim.requested_bytes:
            continue
        if mine:
            return volume if reaches(volume, node) else None
        modes = set(claim.spec.access_modes or ())
        if (
            volume.status.phase == "Available"
            and reaches(volume, node)
            and modes <= set(volume.spec.access_modes or ())
            and (best is None or best.capacity_bytes > volume.capacity_bytes)
        ):
            best = volume
    return best


def expected_on(
    node: Node, listed: list[PersistentVolume], claims: list[PersistentVolumeClaim]
) -> dict[str, str] | None:
    """The volume of each claim on the node; None where some claim has none."""
    taken: dict[str, str] = {}
    for claim in sorted(claims, key=lambda c: c.requested_bytes):
        found = match(claim, listed, node, set(taken.values()))
        if found is None:
            return None
        taken[claim.name] = found.name
    return taken


@settings(max_examples=examples(50))
@given(clusters())
def test_every_node_gets_the_volumes_it_would_get_alone(
    cluster: tuple[list[PersistentVolume], list[PersistentVolumeClaim]],
) -> None:
    listed, claims = cluster
    table = make_table(*NODES)
    classes = [make_storage_class("late"), make_storage_class("later")]
    pod = make_pod("p", spec={"volumes": [claim_volume(claim.name) for claim in claims]})

    for node in NODES:
        plugin = VolumeBinding.from_args(None, make_handle(table, [*listed, *claims, *classes]))
        state = CycleState()
        assert plugin.pre_filter(state, pod, table) == SUCCESS
        verdict = plugin.filter_rows(state, pod, table, ALL)
        wanted = expected_on(node, listed, claims)
        assert verdict.feasible[table.row_of[node.name]] == (wanted is not None)
        if wanted is not None:
            assert plugin.reserve(state, pod, node.name) == SUCCESS
            given_volumes = state.read("VolumeBinding").given
            assert {c.name: v.name for v, c in given_volumes.bindings} == wanted


# NodeVolumeLimits: counting step by step equals counting anew

CSI = "csi.example.com"
LIMIT = 2
steps = st.lists(
    st.tuples(
        st.sampled_from(["pod", "pod", "bind", "volume", "attach", "look", "node"]),
        few,
        few,
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=examples(50))
@given(steps)
def test_counting_step_by_step_is_counting_anew(taken: list[tuple[str, int, int, bool]]) -> None:
    table = make_table(make_node("a0"), make_node("a1"))
    objects = [make_csi_node(f"a{i}", {CSI: LIMIT}) for i in range(4)]
    handle = make_handle(table, [*objects, make_storage_class(provisioner=CSI)])
    lister: Any = handle.lister
    for number in range(4):
        lister.add(make_claim(f"c{number}"))
    plugin, writer = NodeVolumeLimits.from_args(None, handle), TableWriter(table)
    on_nodes: dict[tuple[int, int], Any] = {}
    nodes = {"a0", "a1"}

    def judge(by: NodeVolumeLimits) -> list[list[bool]]:
        """The live rows that accept a pod with each of the claims."""
        rows = table.numbers(table.live_rows)
        pods = [make_pod("new", spec={"volumes": [claim_volume(f"c{i}")]}) for i in range(4)]
        verdicts = [by.filter_rows(CycleState(), pod, table, rows) for pod in pods]
        return [[bool(f) for f in verdict.feasible] for verdict in verdicts]

    for what, first, second, flag in taken:
        if what == "pod" and (first, second) in on_nodes:
            writer.remove_pod(on_nodes.pop((first, second)))
        elif what == "pod":
            pod = make_pod(
                f"p{first}{second}",
                node_name=f"a{second}",
                spec={"volumes": [claim_volume(f"c{first}"), claim_volume(f"c{second}")]},
            )
            writer.add_pod(pod)
            on_nodes[first, second] = pod
        elif what == "bind":
            lister.add(make_claim(f"c{first}", volume=f"v{second}" if flag else ""))
        elif what == "volume" and flag:
            lister.add(make_volume(f"v{first}", driver=CSI))
        elif what == "volume":
            lister.remove(make_volume(f"v{first}"))
        elif what == "attach" and flag:
            lister.add(make_attachment(f"va{first}", f"v{first}", f"a{second}", CSI))
        elif what == "attach" and lister.get("VolumeAttachment", "", f"va{first}"):
            lister.remove(make_attachment(f"va{first}", "", "", ""))
        elif what == "node" and flag:
            writer.set_node(make_node(f"a{first}"))
            nodes.add(f"a{first}")
        elif what == "node" and f"a{first}" in nodes:
            writer.remove_node(f"a{first}")
            nodes.discard(f"a{first}")
        elif what == "look":
            judge(plugin)

    assert judge(plugin) == judge(NodeVolumeLimits.from_args(None, handle))
