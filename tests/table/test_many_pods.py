"""Many pods at once: the table is the same as if they were added one by one, cell by cell."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.api.selectors import LabelSelector
from bayplan.table import NodeTable, PodTerm
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod
from tests.rig.random_examples import examples

NODES = ("a", "b", "c", "not-there-yet")
APPS = ("web", "db")
TERMS = [PodTerm(frozenset({"default"}), LabelSelector(match_labels={"app": app})) for app in APPS]

INFEASIBLE = {"type": "PodResizePending", "reason": "Infeasible"}


def granted(cpu: str, *conditions: dict[str, str]) -> dict[str, Any]:
    """A status as kubelets write it from v1.33 on, with the resources of the container."""
    resources = {"requests": {"cpu": cpu, "memory": "1Mi"}}
    container = {
        "name": "container-0",
        "resources": resources,
        "allocatedResources": resources["requests"],
    }
    return {"phase": "Running", "containerStatuses": [container], "conditions": list(conditions)}


KINDS: list[dict[str, Any]] = [
    {"cpu": "100m", "memory": "1Mi", "labels": {"app": "web"}},
    {"cpu": "100m", "memory": "1Mi", "labels": {"app": "db"}},
    {"labels": {"app": "web"}},
    {"cpu": "2", "priority": 7},
    {"cpu": "1", "host_ports": [80]},
    {"cpu": "100m", "memory": "1Mi", "labels": {"app": "web"}, "terminating": True},
    {"requests": {"example.com/gpu": str(2**55)}},
    {"cpu": "100m", "memory": "1Mi", "labels": {"app": "web"}, "status": granted("100m")},
    {"cpu": "100m", "memory": "1Mi", "labels": {"app": "web"}, "status": granted("300m")},
    {"cpu": "500m", "status": granted("300m")},
    {"cpu": "500m", "status": granted("300m", INFEASIBLE)},
]


@st.composite
def pods(draw: st.DrawFn) -> list[Pod]:
    kinds = draw(st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=3))
    each = st.tuples(st.sampled_from(kinds), st.integers(0, 3))
    drawn = draw(st.lists(each, max_size=60))
    return [
        make_pod(f"p{i}", node_name=NODES[node], **KINDS[kind])
        for i, (kind, node) in enumerate(drawn)
    ]


def make_table(is_counted_before: bool) -> NodeTable:
    table = NodeTable()
    writer = TableWriter(table)
    for name in NODES[:3]:
        writer.set_node(make_node(name, labels={"zone": name}))
    if is_counted_before:
        for term in TERMS:
            table.terms.count(term)
    return table


def cells(table: NodeTable) -> dict[str, Any]:
    """Everything that is counted, by name of the column."""
    found: dict[str, Any] = {"pods": [list(of_row) for of_row in table.pods]}
    for name in ("requested", "scoring_usage"):
        columns = getattr(table, name)
        for resource in sorted(columns):
            found[f"{name} {resource}"] = columns[resource].tolist()
    found["pod count"] = table.pod_count.tolist()
    for row in range(len(table)):
        counts = table.priorities.counts_at(row)
        found[f"host ports {row}"] = len(table.ports.taken_at(row))
        found[f"priorities {row}"] = {k: v for k, v in counts.items() if v}
    zone = table.labels.column("zone")
    for app, term in zip(APPS, TERMS, strict=True):
        counted = table.terms.count(term)
        found[f"{app} per row"] = counted.column.view.tolist()
        found[f"{app} per zone"] = counted.per_domain(zone).tolist()
    return found


@settings(max_examples=examples(60), deadline=None)
@given(pods(), st.booleans())
def test_the_table_is_the_same(pods: list[Pod], is_counted_before: bool) -> None:
    one_by_one, together = make_table(is_counted_before), make_table(is_counted_before)
    versions = together.row_changes.version

    writer = TableWriter(one_by_one)
    for pod in pods:
        writer.add_pod(pod)
    TableWriter(together).add_pods(pods)

    assert cells(together) == cells(one_by_one)
    changed = set(np.asarray(together.row_changes.rows_since(versions)).tolist())
    assert {together.row_of[pod.node_name] for pod in pods} <= changed


def test_pods_of_all_kinds_count_as_one_by_one() -> None:
    mixed = [
        make_pod(f"p{i}-{kind}", node_name=NODES[i % 3], **KINDS[kind])
        for i in range(30)
        for kind in range(len(KINDS))
    ]
    one_by_one, together = make_table(True), make_table(True)
    writer = TableWriter(one_by_one)
    for pod in mixed:
        writer.add_pod(pod)
    TableWriter(together).add_pods(mixed)

    assert cells(together) == cells(one_by_one)


def test_pods_that_are_being_deleted_are_counted_apart() -> None:
    table, live_only = (
        make_table(is_counted_before=False),
        PodTerm(
            frozenset({"default"}), LabelSelector(match_labels={"app": "web"}), terminating=False
        ),
    )
    pods = [make_pod(f"p{i}", node_name="a", **KINDS[5 if i % 2 else 0]) for i in range(30)]

    TableWriter(table).add_pods(pods)

    assert table.terms.count(live_only).column.view.tolist() == [15, 0, 0]


def test_rows_of_pods_that_are_counted_together_are_logged() -> None:
    table = make_table(is_counted_before=False)
    version = table.row_changes.version

    TableWriter(table).add_pods([make_pod(f"p{i}", node_name="b", cpu="1") for i in range(20)])

    assert np.asarray(table.row_changes.rows_since(version)).tolist() == [table.row_of["b"]]


def test_pods_that_are_taken_off_again_leave_nothing() -> None:
    table = make_table(is_counted_before=True)
    before = cells(table)
    writer = TableWriter(table)
    pods = [make_pod(f"p{i}", node_name="a", **KINDS[i % 3]) for i in range(60)]

    writer.add_pods(pods)
    for pod in pods:
        writer.remove_pod(pod)

    after = cells(table)
    assert {name: after[name] for name in before} == before
