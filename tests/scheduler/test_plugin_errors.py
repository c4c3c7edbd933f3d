"""A plugin that raises ends the attempt of its pod, in its name; the next pod is scheduled as if nothing happened."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.config.defaults import default_config
from bayplan.framework import (
    SKIP,
    SUCCESS,
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from bayplan.scheduler import Attempt, FirstByName, Outcome, build_scheduler, gated_attempts
from bayplan.testing.builders import make_node, make_pod
from tests.rig.objects import stored
from tests.rig.scenarios import attempts_of

pytestmark = pytest.mark.usefixtures("plugins_are_in_tree")


def breaking(point: type[Plugin], method: str, otherwise: Any) -> type[Plugin]:
    """A plugin at `point` that fails for pods named `bad`."""

    def act(self: Plugin, *given: Any) -> Any:
        pod = next(one for one in given if isinstance(one, Pod))
        if pod.name == "bad":
            raise ValueError("oh no")
        return otherwise

    methods = {method: act}
    if point is ReservePlugin:
        methods["unreserve"] = lambda self, *given: None
    return type("Breaking", (point,), {"name": "Breaking", **methods})


def run(plugin: type[Plugin], bad: Pod) -> tuple[list[Attempt], MemoryCluster, Any]:
    """Schedule a bad pod, then a good one."""
    cluster = MemoryCluster()
    for name in "ab":
        cluster.add(make_node(name, cpu="2"))
    scheduler = build_scheduler(
        default_config(), cluster, clock=ManualClock(), ties=FirstByName(), plugins=(plugin,)
    )
    cluster.watch(scheduler)
    cluster.add(bad)
    cluster.add(make_pod("good", cpu="1"))
    return attempts_of(scheduler), cluster, scheduler


@pytest.mark.parametrize(
    ("point", "method", "otherwise", "text"),
    [
        pytest.param(
            PreFilterPlugin,
            "pre_filter",
            SUCCESS,
            'running PreFilter plugin "Breaking"',
            id="PreFilter",
        ),
        pytest.param(
            FilterPlugin, "filter_node", SUCCESS, 'running "Breaking" filter plugin', id="Filter"
        ),
        pytest.param(
            PreScorePlugin,
            "pre_score",
            SUCCESS,
            'running PreScore plugin "Breaking"',
            id="PreScore",
        ),
        pytest.param(
            ScorePlugin,
            "score_node",
            0,
            'running Score plugins: plugin "Breaking" failed with',
            id="Score",
        ),
        pytest.param(
            ReservePlugin, "reserve", SUCCESS, 'running Reserve plugin "Breaking"', id="Reserve"
        ),
        pytest.param(
            PermitPlugin, "permit", (SUCCESS, 0.0), 'running Permit plugin "Breaking"', id="Permit"
        ),
        pytest.param(
            PreBindPlugin, "pre_bind", SUCCESS, 'running PreBind plugin "Breaking"', id="PreBind"
        ),
        pytest.param(
            PreBindPlugin,
            "pre_bind_pre_flight",
            SKIP,
            'running PreBindPreFlight "Breaking"',
            id="PreBindPreFlight",
        ),
    ],
)
def test_an_error_ends_the_attempt_and_the_next_pod_is_placed(
    point: type[Plugin], method: str, otherwise: Any, text: str
) -> None:
    plugin = breaking(point, method, otherwise)
    if method == "pre_bind_pre_flight":
        plugin = type("Breaking", (plugin,), {"pre_bind": lambda self, *given: SUCCESS})

    (bad, good), cluster, scheduler = run(plugin, make_pod("bad", cpu="1", priority=1))

    assert (bad.outcome, bad.message) == (Outcome.ERROR, f"{text}: oh no")
    assert bad.status is not None
    assert bad.status.plugin == "Breaking"
    assert bad.unschedulable_plugins == frozenset(), "an error is not a refusal by a plugin"
    assert (good.outcome, good.node_name) == (Outcome.BOUND, "a")
    table = scheduler.cache.table
    assert table.requested["cpu"].tolist() == [1000, 0], "nothing of the bad pod is left"
    assert stored(cluster, Pod, "bad").node_name == ""
    assert scheduler.queue.get(bad.pod) is not None, "it will be tried again"


def test_an_error_in_post_filter() -> None:
    plugin = breaking(PostFilterPlugin, "post_filter", None)

    (bad, good), _, scheduler = run(plugin, make_pod("bad", cpu="9", priority=1))

    assert bad.message == 'running PostFilter plugin "Breaking": oh no'
    assert good.outcome is Outcome.BOUND
    assert scheduler.queue.get(bad.pod) is not None


def test_an_error_in_pre_enqueue_holds_the_pod_back() -> None:
    plugin = breaking(PreEnqueuePlugin, "pre_enqueue", SUCCESS)

    (good,), _, scheduler = run(plugin, make_pod("bad", priority=1))

    assert good.pod.name == "good"
    (held,) = gated_attempts(scheduler)
    assert held.message == 'running PreEnqueue plugin "Breaking": oh no'


def test_an_error_in_bind() -> None:
    """Given plugins come after the default ones: the binder before it is switched off for this."""
    config = default_config()
    plugin = breaking(BindPlugin, "bind", SKIP)
    cluster = MemoryCluster()
    cluster.add(make_node("a"))
    scheduler = build_scheduler(config, cluster, clock=ManualClock(), plugins=(plugin,))
    committing = scheduler.profiles["default-scheduler"].committing
    committing.binds = tuple(reversed(committing.binds))
    cluster.watch(scheduler)
    cluster.add(make_pod("bad", priority=1))
    cluster.add(make_pod("good"))

    bad, good = attempts_of(scheduler)

    assert bad.message == 'running Bind plugin "Breaking": oh no'
    assert good.outcome is Outcome.BOUND
    assert scheduler.cache.table.pod_count.tolist() == [1]


def test_an_error_in_post_bind_leaves_the_pod_bound() -> None:
    (bad, good), cluster, scheduler = run(
        breaking(PostBindPlugin, "post_bind", None), make_pod("bad", cpu="1", priority=1)
    )

    assert (bad.outcome, good.outcome) == (Outcome.BOUND, Outcome.BOUND)
    assert stored(cluster, Pod, "bad").node_name == "a"
    assert scheduler.cache.table.pod_count.sum() == 2


def test_an_error_in_unreserve_does_not_keep_the_place() -> None:
    def reserve(self: Plugin, *given: Any) -> Any:
        raise ValueError("oh no")

    plugin = type(
        "Breaking", (ReservePlugin,), {"name": "Breaking", "reserve": reserve, "unreserve": reserve}
    )

    attempts, _, scheduler = run(plugin, make_pod("bad", cpu="1", priority=1))

    assert [attempt.outcome for attempt in attempts] == [Outcome.ERROR, Outcome.ERROR]
    assert scheduler.cache.table.pod_count.tolist() == [0, 0]
