import pytest

from bayplan.api.pod import Pod
from bayplan.queue.nominator import PodNominator
from bayplan.testing.builders import make_pod


def uids(nominator: PodNominator) -> dict[str, list[str]]:
    return {node: [pod.uid for pod in pods] for node, pods in nominator.nominated().items()}


def nominee(uid: str = "p", node: str = "") -> Pod:
    return make_pod(uid, uid=uid, nominated_node_name=node)


@pytest.mark.parametrize(
    ("in_status", "given", "expected"),
    [
        pytest.param("", None, {}, id="neither a node nor a status"),
        pytest.param("a", None, {"a": ["p"]}, id="by its status"),
        pytest.param("a", "b", {"b": ["p"]}, id="a given node goes before the status"),
        pytest.param("a", "", {"": ["p"]}, id="without a node"),
    ],
)
def test_add(in_status: str, given: str | None, expected: dict[str, list[str]]) -> None:
    nominator = PodNominator()
    nominator.add(nominee(node=in_status), given)

    assert uids(nominator) == expected
    assert bool(nominator) is any(expected)


def test_a_pod_is_nominated_once_and_the_last_to_be_nominated_comes_last() -> None:
    nominator = PodNominator()
    for uid in ("p", "q", "p"):
        nominator.add(nominee(uid), "a")

    assert uids(nominator) == {"a": ["q", "p"]}
    assert nominator.node_of(nominee("p")) == "a"


@pytest.mark.parametrize(
    "current",
    [
        pytest.param(None, id="gone"),
        pytest.param(make_pod("p", node_name="b"), id="placed by now"),
    ],
)
def test_a_pod_that_needs_no_node_is_not_nominated_and_loses_its_nomination(
    current: Pod | None,
) -> None:
    known: dict[str, Pod | None] = {"p": nominee()}
    nominator = PodNominator(lambda namespace, name: known[name])
    nominator.add(nominee(), "a")
    known["p"] = current
    nominator.add(nominee(), "b")

    assert uids(nominator) == {}


@pytest.mark.parametrize(
    ("held", "before", "after", "expected"),
    [
        pytest.param("a", "", "", {"a": ["p"]}, id="the status does not have it yet: kept"),
        pytest.param("", "", "", {"": ["p"]}, id="a nomination without a node is kept, too"),
        pytest.param("a", "", "b", {"b": ["p"]}, id="the status names a node"),
        pytest.param("a", "a", "", {}, id="the status no longer names a node"),
        pytest.param(None, "", "", {}, id="not nominated"),
    ],
)
def test_update(held: str | None, before: str, after: str, expected: dict[str, list[str]]) -> None:
    nominator, old = PodNominator(), nominee(node=before)
    if held is not None:
        nominator.add(old, held)
    nominator.update(old, nominee(node=after))

    assert uids(nominator) == expected


def test_delete_ends_the_nomination() -> None:
    nominator = PodNominator()
    nominator.add(nominee(), "a")
    nominator.delete(nominee())
    nominator.delete(nominee())

    assert uids(nominator) == {}
    assert not nominator


def test_changed_nodes_since_a_version() -> None:
    nominator = PodNominator()
    nominator.add(nominee("p"), "a")
    seen = nominator.version
    assert nominator.changed_since(seen) == []

    nominator.add(nominee("p"), "b")
    nominator.add(nominee("q"), "")
    assert nominator.changed_since(seen) == ["a", "b"]
    assert nominator.version != seen
