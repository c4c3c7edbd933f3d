"""Live shadow: a live scheduler is judged as it works; interruptions and delays lead to no false difference."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bayplan.answers.judged_decision import Agreement
from bayplan.cli.commands.shadow import line_of
from bayplan.clock import SystemClock
from bayplan.config.defaults import default_config
from bayplan.drivers.kube_driver import KubeDriver
from bayplan.errors import InputError
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from bayplan.kube.reflector import ADDED, ObjectEvent
from bayplan.kube.reviews import missing_permissions
from bayplan.kube.watched_kinds import RESOURCES
from bayplan.shadow import live_shadow
from bayplan.shadow.live_shadow import BEHIND, LASTING_S, ArrivalDelays, Backlog, LiveShadow
from bayplan.shadow.report import read_state, write_state
from bayplan.shadow.shadow_run import ShadowRun
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

TIMEOUT_S = 30.0


@asynccontextmanager
async def shadowed(kubeconfig: Path) -> AsyncIterator[tuple[LiveShadow, Connection]]:
    """A shadow that has read the cluster; it has ended and judged all after the block."""
    connection = Connection(await load_credentials(kubeconfig))
    live = LiveShadow(connection, lambda found: ShadowRun(found, Settings()), SystemClock())
    ended = asyncio.Event()
    following = asyncio.ensure_future(live.follow(ended))
    await until(lambda: live.is_ready or following.done())
    yield live, connection
    ended.set()
    await following
    await connection.close()


async def until(is_done: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_done():
            await asyncio.sleep(0.01)


def followed_pods(live: LiveShadow) -> int:
    assert live.run is not None
    return sum(bool(pod.node_name) for pod in live.run.view.pods())


def cpu_pod(name: str, cpu: str, node: str = "") -> dict[str, Any]:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    more: dict[str, Any] = {"nodeName": node} if node else {}
    return pod_tree(name, containers=[container], **more)


def bind(api: ServerInThread, name: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    api.make(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})


def test_a_scheduler_at_work_agrees(api: ServerInThread, kubeconfig: Path) -> None:
    for number in range(3):
        api.make("/api/v1/nodes", node_tree(f"n{number}"))

    async def run() -> LiveShadow:
        async with shadowed(kubeconfig) as (live, connection):
            driver = KubeDriver(connection, default_config())
            await driver.start()
            driver.lead()
            for number in range(8):
                pod = cpu_pod(f"p{number}", f"{100 + 50 * number}m")
                await asyncio.to_thread(api.make, PODS, pod)
            await asyncio.to_thread(api.make, PODS, cpu_pod("too-big", "640"))
            await until(lambda: followed_pods(live) == 8)
            await until(lambda: live.run and live.run.account.decisions >= 9)
            await driver.stop()
        return live

    live = asyncio.run(run())

    assert live.run is not None
    account = live.run.account
    assert account.count_of(Agreement.SAME) == account.decisions == 9
    assert account.schedulers["default-scheduler"].refused == 1


def test_a_binding_against_the_rules_is_different(api: ServerInThread, kubeconfig: Path) -> None:
    api.make("/api/v1/nodes", node_tree("n0"))
    api.make("/api/v1/nodes", node_tree("full"))
    api.make(PODS, cpu_pod("there", "3500m", "full"))

    async def run() -> LiveShadow:
        async with shadowed(kubeconfig) as (live, _):
            await asyncio.to_thread(api.make, PODS, cpu_pod("p", "1"))
            await asyncio.to_thread(bind, api, "p", "full")
            await until(lambda: followed_pods(live) == 2)
        return live

    live = asyncio.run(run())

    assert live.run is not None
    (found,) = live.run.account.differences
    assert (found.pod, found.node, found.plugins) == ("default/p", "full", ["NodeResourcesFit"])


def test_a_difference_is_counted_once_its_objects_were_listed_again(
    api: ServerInThread, kubeconfig: Path
) -> None:
    api.make("/api/v1/nodes", node_tree("n0"))
    api.make("/api/v1/nodes", node_tree("full"))
    api.make(PODS, cpu_pod("there", "3500m", "full"))

    async def run() -> str:
        async with shadowed(kubeconfig) as (live, _):
            assert live.run is not None
            account = live.run.account
            await asyncio.to_thread(api.make, PODS, cpu_pod("p", "1"))
            await asyncio.to_thread(bind, api, "p", "full")
            await until(lambda: account.differences)
            assert not account.skipped
            return line_of(live)

    assert "1 different" in asyncio.run(run())


def test_a_shadow_that_has_not_read_the_cluster_has_nothing_to_show(kubeconfig: Path) -> None:
    async def run() -> str:
        connection = Connection(await load_credentials(kubeconfig))
        live = LiveShadow(connection, lambda found: ShadowRun(found, Settings()), SystemClock())
        await connection.close()
        return line_of(live)

    assert asyncio.run(run()) == "reading the cluster"


def test_a_shadow_that_is_behind_follows_and_skips(
    api: ServerInThread, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.make("/api/v1/nodes", node_tree("n0"))
    monkeypatch.setattr(live_shadow, "BEHIND_S", -1.0)
    monkeypatch.setattr(live_shadow, "CAUGHT_UP_S", -1.0)

    async def run() -> LiveShadow:
        async with shadowed(kubeconfig) as (live, _):
            for number in range(3):
                await asyncio.to_thread(api.make, PODS, cpu_pod(f"p{number}", "100m"))
                await asyncio.to_thread(bind, api, f"p{number}", "n0")
            await until(lambda: followed_pods(live) == 3)
            assert live.is_behind
            assert line_of(live).startswith("3 pods seen, 0 same, ")
            assert line_of(live).endswith(", behind")
            monkeypatch.setattr(live_shadow, "BEHIND_S", 1000.0)
            monkeypatch.setattr(live_shadow, "CAUGHT_UP_S", 1000.0)
            await asyncio.to_thread(api.make, PODS, cpu_pod("next", "100m"))
            await until(lambda: not live.is_behind)
            assert not line_of(live).endswith(", behind")
        return live

    live = asyncio.run(run())

    assert live.run is not None
    assert live.run.account.skipped == {BEHIND: 3}
    assert live.run.account.decisions == 0


def test_a_cut_watch_is_resumed_and_decisions_meanwhile_are_not_judged(
    api: ServerInThread, kubeconfig: Path
) -> None:
    api.make("/api/v1/nodes", node_tree("n0"))

    async def run() -> LiveShadow:
        async with shadowed(kubeconfig) as (live, _):
            nodes = live._follower._reflectors["nodes"]
            await until(lambda: nodes.is_current)  # it is when its watch is opened
            nodes.is_current, nodes.problem = False, "as after a lost connection"
            await asyncio.to_thread(api.make, PODS, cpu_pod("p", "100m"))
            await asyncio.to_thread(bind, api, "p", "n0")
            await until(lambda: followed_pods(live) == 1)
            live._follower.restart(("Node",))
            await until(lambda: not live.interrupted)
            await asyncio.to_thread(api.make, "/api/v1/nodes", node_tree("n1"))
            await until(lambda: live.run and len(live.run.view.node_names()) == 2)
        return live

    live = asyncio.run(run())

    assert live.run is not None
    assert live.run.account.skipped == {live_shadow.INTERRUPTED: 1}


def test_permissions_are_asked_for(api: ServerInThread, kubeconfig: Path) -> None:
    async def ask() -> list[str]:
        connection = Connection(await load_credentials(kubeconfig))
        try:
            return await missing_permissions(connection, RESOURCES.values())
        finally:
            await connection.close()

    assert asyncio.run(ask()) == []


def test_a_long_backlog_keeps_the_latest_change_of_each_object() -> None:
    backlog = Backlog(most=4)
    for at_s in range(5):
        node = ObjectEvent(ADDED, make_node("n", cpu=str(at_s + 1)))
        backlog.add(at_s, [node, ObjectEvent(ADDED, make_pod(f"p{at_s % 2}"))], "")

    changes = [backlog.pop() for _ in range(len(backlog))]

    assert len(changes) <= 5
    assert backlog.merged >= 5
    latest = [one.obj for one in changes if one.obj.kind == "Node"][-1]
    assert latest.allocatable["cpu"] == 5000
    assert [one.at_s for one in changes] == sorted(one.at_s for one in changes)


def test_pods_that_arrive_late_show_a_stalled_watch() -> None:
    delays, start = ArrivalDelays(), datetime(2026, 1, 1, tzinfo=UTC)

    def arrive(at_s: float, created_s: float) -> bool:
        now = start + timedelta(seconds=at_s + 100)  # clocks differ
        return delays.is_late(at_s, now, [(start + timedelta(seconds=created_s)).isoformat()])

    assert [arrive(1, 1), arrive(10, 9), arrive(20, 15), arrive(21, 21)] == [
        False,
        False,
        True,
        False,
    ]
    # the other clock was set back: after a while that is the new difference
    assert [arrive(at, at - 50) for at in (30, 60, 31 + LASTING_S, 100)] == [
        True,
        True,
        True,
        False,
    ]


def test_the_state_is_kept_and_checked(tmp_path: Path) -> None:
    run = ShadowRun([make_node("n", cpu="4")], Settings())
    run.take(1.0, make_pod("p", uid="u", cpu="1"))
    run.take(1.1, make_pod("p", uid="u", cpu="1", node_name="n"))
    run.finish(5.0)
    file = tmp_path / "state.json"
    write_state(file, run.account)

    again = ShadowRun([make_node("n", cpu="4")], Settings(), account=read_state(file))
    again.take(2.0, make_pod("q", uid="v", cpu="1"))
    again.take(2.1, make_pod("q", uid="v", cpu="1", node_name="n"))
    again.finish(3.0)

    assert (again.account.decisions, again.account.watched_s) == (2, 8.0)
    file.write_text("[]")
    with pytest.raises(InputError, match=r"--state: .*state.json: expected a file that"):
        read_state(file)
