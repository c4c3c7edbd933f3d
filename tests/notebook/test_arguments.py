"""Arguments of the wrong type, and names that do not exist."""

from collections.abc import Callable
from operator import add
from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan import (
    Add,
    AddNodes,
    AddTaint,
    Cluster,
    Delete,
    Drain,
    Patch,
    Resize,
    Scale,
    capacity,
    compare,
    explain,
    plot,
    rebalance,
    simulate,
    what_if,
)
from bayplan.answers.what_if import ClusterChange
from bayplan.errors import InputError

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "gpu-a0"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


SMALL = Cluster.of(NODE)


def called(make: Callable[..., Any], *given: Any, **named: Any) -> Callable[[], Any]:
    """A call with arguments of any type, also wrong ones."""
    return lambda: make(*given, **named)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(called(Drain, "gpu-a0"), "drain gpu-a0", id="one name is one node"),
        pytest.param(called(Drain, ["a", "b"]), "drain a b", id="a list of names"),
        pytest.param(
            called(AddTaint, "a", "x:NoSchedule"), "add-taint a x:NoSchedule", id="one taint"
        ),
    ],
)
def test_a_text_is_a_list_of_one(make: Callable[[], ClusterChange], text: str) -> None:
    assert make().text == text


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(called(Drain, 5), "Drain: nodes: expected a name, or a list", id="a number"),
        pytest.param(called(Drain, ["a", 5]), "a list of names; got 5", id="a number in a list"),
        pytest.param(called(Delete, None), "Delete: objects: expected a name", id="nothing"),
        pytest.param(called(Scale, "web", "3"), "replicas: expected a whole number", id="text"),
        pytest.param(called(Scale, "web", True), "replicas: expected a whole number", id="a bool"),
        pytest.param(called(AddNodes, "a", 3), "number: expected a whole number", id="swapped"),
        pytest.param(called(AddTaint, ["a"], "x"), "node: expected a name", id="a list of nodes"),
        pytest.param(called(Resize, 5, {"cpu": "8"}), "Resize: target: expected a node", id="5"),
        pytest.param(called(Resize, "a", "cpu=8"), "amounts: expected amounts by res", id="cpu=8"),
        pytest.param(called(Resize, "a", {"cpu": None}), "got 'cpu': None", id="no amount"),
        pytest.param(
            called(Resize, "a", {8: "cpu"}), "got 8: 'cpu'", id="amount and resource swapped"
        ),
        pytest.param(called(Add, "pod/web"), "Add: objects: expected an object, or", id="a name"),
        pytest.param(called(Add, [NODE, 5]), "Add: objects: expected an object, or", id="5 added"),
        pytest.param(
            called(Patch, "pod/web"), "Patch: change: expected an object", id="patch text"
        ),
        pytest.param(called(simulate, NODE), r"simulate: cluster: expected a Cluster", id="a dict"),
        pytest.param(called(simulate, SMALL, until=[]), "until: expected a duration", id="until"),
        pytest.param(called(simulate, SMALL, seed="1"), "seed: expected a whole num", id="a seed"),
        pytest.param(called(simulate, SMALL, config=5), "config: expected a file, plain", id="5!"),
        pytest.param(
            called(simulate, SMALL, plugins=5), "plugins: expected plugin cl", id="plugin"
        ),
        pytest.param(
            called(simulate, SMALL, feature_gates=["A"]), "feature_gates: exp", id="gates"
        ),
        pytest.param(called(explain, SMALL, 7), "explain: pod: expected a name such", id="a pod"),
        pytest.param(called(compare, SMALL, ["a.yaml"]), "schedulers: expected config", id="list"),
        pytest.param(called(compare, SMALL, {"a": None}, seeds="3"), "seeds: expected", id="seeds"),
        pytest.param(called(capacity, SMALL, 5), "capacity: pods: expected files, or", id="a file"),
        pytest.param(called(capacity, SMALL, {}, limit=1.5), "limit: expected a whole", id="limit"),
        pytest.param(
            called(capacity, SMALL, {}, nodes=5), "nodes: expected names or la", id="node"
        ),
        pytest.param(called(rebalance, SMALL, 5), "objective: expected spread,", id="aim"),
        pytest.param(
            called(rebalance, SMALL, max_moves="3"), "max_moves: expected a wh", id="moves"
        ),
        pytest.param(
            called(plot, "a picture"), "plot: expected the answer to a qu", id="a picture"
        ),
        pytest.param(called(Cluster.read, 5), "Cluster.read: paths: expected files", id="a path"),
        pytest.param(
            called(Cluster.of, "x.yaml"), "Cluster.of: objects: expected obj", id="of text"
        ),
        pytest.param(called(add, SMALL, 5), "unsupported operand", id="a cluster plus a number"),
        pytest.param(
            called(what_if, Cluster.of(NODE), "drain gpu-a0"),
            r'what_if: expected changes such as Drain\("node-3"\)',
            id="text in place of a change",
        ),
    ],
)
def test_wrong_types_are_a_type_error_with_a_sentence(
    make: Callable[[], Any], expected: str
) -> None:
    with pytest.raises(TypeError, match=expected):
        make()


def test_every_change_is_a_name_of_the_package() -> None:
    for name in bayplan.__all__:
        assert getattr(bayplan, name) is not None


def test_a_frame_that_does_not_exist_is_an_error() -> None:
    cluster = Cluster.of(NODE)

    with pytest.raises(InputError, match='to_frame: expected nodes or pods; got "foo"'):
        cluster.to_frame("foo")
    with pytest.raises(InputError, match="to_frame: expected pods or nodes or measures or"):
        simulate(cluster).to_frame("foo")


def test_objects_and_patches_are_plain_data() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    patch = {"kind": "Node", "metadata": {"name": "gpu-a0"}, "spec": {"unschedulable": True}}

    answer = what_if(SMALL, called(Patch, patch)(), called(Add, pod)())

    assert answer.changes == ["patch node/gpu-a0", "add pod/default/p"]
    assert [change.now.state for change in answer.pods] == ["pending"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(called(Add, {"kind": "Rumour"}), "Add: objects[0]", id="an unknown kind"),
        pytest.param(called(Patch, {"kind": "Pod"}), "Patch: change.metadata.name", id="no name"),
        pytest.param(called(Resize, "a", {"cpu": "lots"}), "expected resource=quantity", id="lots"),
    ],
)
def test_data_with_faults_is_an_input_error(make: Callable[[], Any], expected: str) -> None:
    with pytest.raises(InputError) as raised:
        make()

    assert expected in str(raised.value)


def test_one_plugin_file_is_a_list_of_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from bayplan.framework import FilterPlugin, unschedulable\n"
        "class Mine(FilterPlugin):\n    name = 'Mine'\n"
        "    def filter_node(self, state, pod, node): return unschedulable('mine')\n"
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}

    report = simulate(SMALL + Cluster.of(pod), plugins=str(file))

    assert list(report.pending_groups[0].refusals) == ["mine"]
