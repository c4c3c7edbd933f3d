"""What-ifs edit a one-row copy; the table does not change."""

from typing import Any

import numpy as np

from bayplan.api.selectors import LabelSelector
from bayplan.table import ALL, FIRST_ROW, NodeTable, PodTerm
from bayplan.table.what_if import WhatIf, bare_node
from bayplan.testing.builders import make_node, make_pod, make_table

ANYONE = PodTerm(None, LabelSelector())
PORT = make_pod(host_ports=[80]).spec.host_ports
AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {}}
        ]
    }
}
THERE = make_pod("there", node_name="b", cpu="1", memory="1Gi", priority=5)


def make_cluster() -> NodeTable:
    nodes = [make_node(name, labels={"zone": name}, images={"i:1": 90}) for name in "abc"]
    return make_table(*nodes, pods=[THERE])


def facts(table: NodeTable) -> dict[str, Any]:
    """Everything that a plugin can read."""
    return {
        "pods": [sorted(pods) for pods in table.pods],
        "requested": {name: table.requested[name].tolist() for name in table.requested},
        "usage": {name: table.scoring_usage[name].tolist() for name in table.scoring_usage},
        "allocatable": {name: table.allocatable[name].tolist() for name in table.allocatable},
        "pod_count": table.pod_count.tolist(),
        "ports": table.ports.conflicts(PORT, ALL).tolist(),
        "priorities": table.priorities.below(100).tolist(),
        "terms": table.terms.count(ANYONE).per_row.tolist(),
        "carried": len(table.carried.matching(THERE, {})),
        "zone": table.labels.codes("zone").tolist(),
        "version": (table.row_changes.version, table.node_changes.version),
    }


def test_editing_a_what_if_leaves_the_table_alone() -> None:
    table = make_cluster()
    before = repr(facts(table))
    what_if = WhatIf(table, 1)
    added = make_pod("added", cpu="2", host_ports=[80], affinity=AFFINITY, priority=1)

    what_if.add_pod(added)
    what_if.remove_pod(THERE)

    assert repr(facts(table)) == before
    node = what_if.node
    assert node.requested == {"cpu": 2000}
    assert [pod.key for pod in node.pods] == ["default/added"]
    assert node.pods[0].node_name == "b"
    assert node.table.pod_count.tolist() == [1]
    assert node.table.ports.conflicts(PORT, ALL).tolist() == [True]
    assert node.table.priorities.below(5).tolist() == [1]


def test_a_what_if_put_back_is_as_before() -> None:
    table = make_cluster()
    what_if = WhatIf(table, 1)
    untouched = {k: v for k, v in facts(WhatIf(table, 1).node.table).items() if k != "version"}

    what_if.remove_pod(THERE)
    what_if.add_pod(THERE)

    again = {k: v for k, v in facts(what_if.node.table).items() if k != "version"}
    assert again | {"terms": 0} == untouched | {"terms": 0}


def test_a_fork_shows_its_row_and_the_size_of_the_cluster() -> None:
    table = make_cluster()

    fork = table.fork_row(1)

    assert len(fork) == 1
    assert fork.names == ["b"]
    assert fork.node_count == 3
    assert fork.live.tolist() == [True]
    assert fork.labels.equal("zone", "b", FIRST_ROW).tolist() == [True]
    assert fork.labels.codes("zone").tolist() == [1]
    assert fork.images.total(["i:1"], fork.node_count).tolist() == [90]
    assert fork.allocatable["cpu"].tolist() == [4000]
    assert fork.requested["cpu"].tolist() == [1000]
    assert fork.max_pods.tolist() == [110]


def test_a_node_of_a_one_row_table_is_that_table() -> None:
    table = make_cluster()
    fork = table.node_at(2).as_table()

    assert fork.names == ["c"]
    assert fork.node_at(0).as_table() is fork


def test_two_what_ifs_do_not_know_of_each_other() -> None:
    table = make_cluster()
    one, two = WhatIf(table, 0), WhatIf(table, 0)

    one.add_pod(make_pod("p", cpu="3"))

    assert two.node.requested == {}
    assert np.array_equal(two.node.table.requested["cpu"], [0])


def test_a_bare_node_is_what_its_object_says() -> None:
    table = make_table(
        make_node("a", labels={"zone": "x"}, images={"i:1": 90}),
        pods=[make_pod("p", cpu="1", node_name="a", host_ports=[80])],
    )

    bare = bare_node(table, 0)

    assert (bare.name, bare.labels["zone"]) == ("a", "x")
    assert (bare.pods, bare.requested) == ([], {})
    assert bare.table.pod_count.tolist() == [0]
    assert bare.table.images.total(["i:1"], 1).tolist() == [0]
    assert table.node_at(0).requested == {"cpu": 1000}
    assert table.images.total(["i:1"], 1).tolist() == [90]
