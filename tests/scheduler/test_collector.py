import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.config.load import parse_config
from bayplan.scheduler import build_scheduler
from bayplan.scheduler.collector import YOUNG, rare_collections
from bayplan.testing.builders import make_node, make_pod


class Ring:
    """An object that only a search for garbage can free."""

    def __init__(self) -> None:
        self.itself = self


def test_afterwards_all_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    calls: list[str] = []
    for name in ("freeze", "unfreeze"):  # which have no effect within the tests: see conftest.py
        monkeypatch.setattr(gc, name, partial(calls.append, name))

    def fail() -> None:
        with rare_collections():
            assert gc.get_threshold()[0] == YOUNG
            assert calls == ["freeze"]
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert gc.get_threshold() == before
    assert calls == ["freeze", "unfreeze"]


def test_cycles_are_freed_all_the_same() -> None:
    with rare_collections():
        ring = weakref.ref(Ring())
        assert ring() is not None
        kept: list[list[int]] = [[] for _ in range(2 * YOUNG)]

        assert ring() is None
    assert kept


CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(lambda i: make_pod(f"pod-{i}", cpu="1m"), id="a pod that fits"),
        pytest.param(lambda i: make_pod(f"pod-{i}", cpu="64"), id="a pod that fits nowhere"),
        pytest.param(
            lambda i: make_pod(f"pod-{i}", cpu="3", priority=10), id="a pod that preempts another"
        ),
        pytest.param(
            lambda i: make_pod(
                f"pod-{i}",
                cpu="1m",
                labels={"app": "web"},
                spread=[SPREAD],
            ),
            id="a pod that is spread",
        ),
    ],
)
def test_an_attempt_leaves_no_cycles_behind(pod: Callable[[int], Pod]) -> None:
    cluster = MemoryCluster()
    for number in range(8):
        cluster.add(make_node(f"node-{number}", cpu="4"))
        cluster.add(make_pod(f"low-{number}", cpu="3", node_name=f"node-{number}"))
    scheduler = build_scheduler(parse_config(CONFIG, "test"), cluster, clock=ManualClock())
    cluster.watch(scheduler)

    def attempt(number: int) -> Any:
        cluster.add(pod(number))
        return scheduler.schedule_one()

    for number in range(2):
        assert attempt(number) is not None
    gc.collect()
    gc.disable()
    try:
        assert attempt(2) is not None
        assert gc.collect() == 0
    finally:
        gc.enable()
