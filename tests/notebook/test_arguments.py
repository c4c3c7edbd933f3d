"""Arguments of the wrong type, and names that do not exist."""

from collections.abc import Callable
from typing import Any

import pytest

import bayplan
from bayplan import AddNodes, AddTaint, Cluster, Delete, Drain, Scale, simulate, what_if
from bayplan.errors import InputError

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "gpu-a0"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def test_one_name_is_one_node() -> None:
    assert Drain("gpu-a0").nodes == ("gpu-a0",)
    assert Drain(["gpu-a0", "gpu-a1"]).text == "drain gpu-a0 gpu-a1"
    assert AddTaint("gpu-a0", "a=b:NoSchedule").taints == ("a=b:NoSchedule",)

    answer = what_if(Cluster.of(NODE), Drain("gpu-a0"))

    assert answer.to_dict()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: Drain(5), "Drain: nodes: expected a name, or a list", id="a number"),
        pytest.param(lambda: Drain(["a", 5]), r"got \['a', 5\]", id="a number in a list"),
        pytest.param(lambda: Delete(None), "Delete: objects: expected a name", id="nothing"),
        pytest.param(lambda: Scale("web", "3"), "replicas: expected a whole number", id="text"),
        pytest.param(lambda: Scale("web", True), "replicas: expected a whole number", id="a bool"),
        pytest.param(lambda: AddNodes("a", 3), "number: expected a whole number", id="swapped"),
        pytest.param(lambda: AddTaint(["a"], "x"), "node: expected a name", id="a list of nodes"),
        pytest.param(
            lambda: what_if(Cluster.of(NODE), "drain gpu-a0"),  # type: ignore[arg-type]
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
    with pytest.raises(InputError, match='to_frame: expected pods or nodes; got "foo"'):
        simulate(cluster).to_frame("foo")
