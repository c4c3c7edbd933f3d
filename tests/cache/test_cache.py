"""Cache: the states of a pod, and the errors of calls that do not match the state."""

from collections.abc import Callable

import pytest

from bayplan.cache import Cache, CacheError
from bayplan.clock import ManualClock
from bayplan.testing.builders import make_node, make_pod

POD = make_pod("p", uid="u", node_name="a", cpu="1")
MOVED = POD.with_node("b")
NAMELESS = make_pod("p").replace(uid="", node_name="a")


def make_cache(assume_ttl_s: float = 0) -> tuple[Cache, ManualClock]:
    clock = ManualClock()
    cache = Cache(clock, assume_ttl_s)
    for name in "ab":
        cache.set_node(make_node(name))
    return cache, clock


def assumed(cache: Cache) -> None:
    cache.assume_pod(POD)


def added(cache: Cache) -> None:
    cache.add_pod(POD)


def unknown(cache: Cache) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "call", "text"),
    [
        pytest.param(
            assumed,
            lambda cache: cache.assume_pod(POD),
            "pod u(default/p) is in the cache, so can't be assumed",
            id="assume an assumed pod",
        ),
        pytest.param(
            added,
            lambda cache: cache.assume_pod(POD),
            "pod u(default/p) is in the cache, so can't be assumed",
            id="assume a pod that was added",
        ),
        pytest.param(
            assumed,
            lambda cache: cache.forget_pod(MOVED),
            "pod u(default/p) was assumed on b but assigned to a",
            id="forget on another node",
        ),
        pytest.param(
            added,
            lambda cache: cache.forget_pod(POD),
            "pod u(default/p) wasn't assumed so cannot be forgotten",
            id="forget a pod that was added",
        ),
        pytest.param(
            added,
            lambda cache: cache.add_pod(POD),
            "pod u(default/p) was already in added state",
            id="add twice",
        ),
        pytest.param(
            unknown,
            lambda cache: cache.update_pod(POD, POD),
            "pod u(default/p) is not added to scheduler cache, so cannot be updated",
            id="update an unknown pod",
        ),
        pytest.param(
            assumed,
            lambda cache: cache.update_pod(POD, POD),
            "assumed pod u(default/p) should not be updated",
            id="update an assumed pod",
        ),
        pytest.param(
            unknown,
            lambda cache: cache.remove_pod(POD),
            "pod u(default/p) is not found in scheduler cache, so cannot be removed from it",
            id="remove an unknown pod",
        ),
        pytest.param(
            unknown,
            lambda cache: cache.get_pod(POD),
            "pod u(default/p) does not exist in scheduler cache",
            id="get an unknown pod",
        ),
        pytest.param(
            unknown,
            lambda cache: cache.assume_pod(NAMELESS),
            "cannot get cache key for pod with empty UID",
            id="assume a pod without uid",
        ),
        pytest.param(
            unknown,
            lambda cache: cache.is_assumed(NAMELESS),
            "cannot get cache key for pod with empty UID",
            id="query a pod without uid",
        ),
        pytest.param(
            unknown, lambda cache: cache.remove_node("z"), "node z is not found", id="remove a node"
        ),
    ],
)
def test_calls_that_do_not_fit_the_state_change_nothing(
    prepare: Callable[[Cache], None], call: Callable[[Cache], None], text: str
) -> None:
    cache, _ = make_cache()
    prepare(cache)
    before = [cache.table.requested["cpu"].tolist(), cache.pod_count]

    with pytest.raises(CacheError) as refusal:
        call(cache)

    assert str(refusal.value) == text
    assert [cache.table.requested["cpu"].tolist(), cache.pod_count] == before


def test_a_node_that_was_only_named_by_a_pod_cannot_be_removed() -> None:
    cache, _ = make_cache()
    cache.add_pod(POD.with_node("ghost"))

    with pytest.raises(CacheError, match="node ghost is not found"):
        cache.remove_node("ghost")


def test_forget_ignores_an_unknown_pod() -> None:
    cache, _ = make_cache()

    cache.forget_pod(POD)

    assert cache.pod_count == 0


def test_forget_reverts_assume() -> None:
    cache, _ = make_cache()

    cache.assume_pod(POD)
    assert cache.is_assumed(POD)
    assert cache.table.requested["cpu"].tolist() == [1000, 0]
    cache.forget_pod(POD)

    assert not cache.is_assumed(POD)
    assert not cache.has_pod(POD)
    assert cache.table.requested["cpu"].tolist() == [0, 0]


def test_confirm_does_not_count_again() -> None:
    cache, _ = make_cache()
    cache.assume_pod(POD)
    table = cache.table
    versions = table.row_changes.version, table.node_changes.version
    confirmed = make_pod("p", uid="u", node_name="a", cpu="1", status={"phase": "Running"})

    cache.add_pod(confirmed)

    assert cache.get_pod(POD) is confirmed
    assert table.pods[0] == {"u": confirmed}
    assert not cache.is_assumed(POD)
    assert table.requested["cpu"].tolist() == [1000, 0]
    assert (table.row_changes.version, table.node_changes.version) == versions


def test_confirm_on_another_node_moves_the_pod() -> None:
    cache, _ = make_cache()
    cache.assume_pod(POD)

    cache.add_pod(MOVED)

    assert cache.table.requested["cpu"].tolist() == [0, 1000]
    assert cache.table.pods == [{}, {"u": MOVED}]
    assert not cache.is_assumed(POD)


def test_remove_uses_the_cached_version() -> None:
    """A missed delete event brings the last known state, which may lack the node."""
    cache, _ = make_cache()
    cache.add_pod(POD)

    cache.remove_pod(POD.with_node(""))

    assert cache.table.requested["cpu"].tolist() == [0, 0]


def test_pods_stay_while_their_node_is_missing() -> None:
    cache, _ = make_cache()
    cache.add_pod(POD)

    cache.remove_node("a")
    assert cache.table.node_count == 1
    assert cache.get_pod(POD) is POD
    cache.set_node(make_node("a"))

    row = cache.table.row_of["a"]
    assert cache.table.requested["cpu"][row] == 1000
    assert cache.table.node_count == 2


def test_the_row_of_a_missing_node_is_removed_with_its_last_pod() -> None:
    cache, _ = make_cache()
    cache.add_pod(POD.with_node("ghost"))
    assert "ghost" in cache.table.row_of
    assert cache.table.node_count == 2

    cache.remove_pod(POD)

    assert "ghost" not in cache.table.row_of


def test_assumed_pods_never_expire_without_ttl() -> None:
    cache, clock = make_cache()
    cache.assume_pod(POD)
    cache.finish_binding(POD)

    clock.advance(1e9)

    assert cache.expire_pods() == []
    assert cache.is_assumed(POD)


def test_with_ttl_only_pods_whose_binding_finished_expire() -> None:
    cache, clock = make_cache(assume_ttl_s=30)
    other = make_pod("q", node_name="b", cpu="2")
    cache.assume_pod(POD)
    cache.assume_pod(other)
    cache.finish_binding(POD)

    clock.advance(29)
    early = cache.expire_pods()
    clock.advance(2)

    assert early == []
    assert cache.expire_pods() == [POD]
    assert cache.table.requested["cpu"].tolist() == [0, 2000]
    assert cache.is_assumed(other)


def test_a_confirmed_pod_does_not_expire() -> None:
    cache, clock = make_cache(assume_ttl_s=30)
    cache.assume_pod(POD)
    cache.finish_binding(POD)
    cache.add_pod(POD)

    clock.advance(100)

    assert cache.expire_pods() == []
    assert cache.has_pod(POD)


def test_namespaces() -> None:
    cache, _ = make_cache()
    table = cache.table

    cache.set_namespace("n", {"team": "x"})
    version = table.namespaces_version
    cache.set_namespace("n", {"team": "x"})
    assert table.namespaces_version == version, "nothing changed"
    cache.set_namespace("n", {"team": "y"})
    assert table.namespace_labels("n") == {"team": "y"}
    assert table.namespaces_version > version
    cache.remove_namespace("n")
    assert table.namespace_labels("n") == {}
