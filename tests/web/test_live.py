"""Live: the responses of the page's server, and access control."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.objects.object_index import WatchHandler
from bayplan.errors import InputError
from bayplan.testing.builders import make_node, make_object, make_pod
from bayplan.trials import TrialCluster
from bayplan.web import live
from bayplan.web.live import PageSource, page_routes, token_check
from tests.rig.scenarios import Scenario

TOKEN = {"Authorization": "Bearer secret"}
Client = TestClient[web.Request, web.Application]


def serve(
    scenario: Scenario, ask: Callable[[Client], Awaitable[None]], prefix: str = "", **options: Any
) -> None:
    """Call `ask` with a client of a page server about the scenario."""
    options.setdefault("scheduler", lambda: scenario.scheduler)
    source = PageSource(scenario.cluster, scenario.clock, **options)

    async def run() -> None:
        app = web.Application()
        app.add_routes(page_routes(source, token_check("secret"), prefix))
        async with TestClient(TestServer(app)) as client:
            await ask(client)

    asyncio.run(run())


def small() -> Scenario:
    """A node with room for one more pod, one on it, and one that fits nowhere."""
    scenario = Scenario(make_node("n", cpu="4"), make_pod("runs", node_name="n", cpu="1"))
    scenario.cluster.add(make_pod("huge", cpu="64"))
    scenario.run()
    return scenario


async def told(answer: ClientResponse) -> Any:
    assert answer.status == 200, await answer.text()
    return await answer.json()


@pytest.mark.parametrize("path", ["/state", "/changes", "/pod"])
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no token"),
        pytest.param({"Authorization": "Bearer wrong"}, id="wrong token"),
        pytest.param({"Authorization": "Bearer é"}, id="not ASCII"),
    ],
)
def test_no_data_without_the_token(path: str, headers: dict[str, str]) -> None:
    async def ask(client: Client) -> None:
        answer = await client.get(path, headers=headers)

        assert answer.status == 401
        assert await answer.json() == {"error": "Unauthorized"}

    serve(small(), ask)


def test_the_page_is_public_and_has_no_cluster_data() -> None:
    async def ask(client: Client) -> None:
        answer = await client.get("/view", allow_redirects=True)
        text = await answer.text()

        assert answer.status == 200
        assert answer.url.path == "/view/"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert '{"isLive":true}' in text

    serve(small(), ask, prefix="/view")


def test_changes_since_the_offsets() -> None:
    scenario = small()

    async def ask(client: Client) -> None:
        state = await told(await client.get("/state", headers=TOKEN))
        scenario.cluster.add(make_pod("late", cpu="1"))
        scenario.run()
        known = {"epoch": state["epoch"], "events": len(state["events"]["t"])}
        for name in ("texts", "resources", "nodes", "kinds"):
            known[name] = len(state[name])
        known["rows"], known["pods"] = len(state["rows"]["node"]), len(state["pods"]["name"])
        news = await told(await client.get("/changes", params=known, headers=TOKEN))

        assert state["base"]["state"] == [6, 3]
        assert state["pods"]["name"] == ["runs", "huge"]
        assert news["pods"]["name"] == ["late"]
        assert news["nodes"] == []
        assert news["events"]["which"] == [2, 2]
        assert news["events"]["what"] == [1, 6]

    serve(scenario, ask)


def test_pod_groups_are_told_with_their_members_and_why_they_wait() -> None:
    gates = {"GenericWorkload": True, "GangScheduling": True}
    enabled = {"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    scenario = Scenario(
        make_node("n", cpu="1", labels={"rack": "r1"}),
        make_object("PodGroup", "g", namespace="default", spec=spec),
        profile=enabled,
        feature_gates=gates,
    )
    for name in ("p0", "p1"):
        wish = {"schedulingGroup": {"podGroupName": "g"}}
        scenario.cluster.add(make_pod(name, cpu="1", spec=wish))
    scenario.run()

    async def ask(client: Client) -> None:
        state = await told(await client.get("/state", headers=TOKEN))
        scenario.cluster.add(make_node("m", cpu="1", labels={"rack": "r1"}))
        scenario.settle()
        known = {"epoch": state["epoch"], "events": len(state["events"]["t"])}
        news = await told(await client.get("/changes", params=known, headers=TOKEN))

        (waiting,), (started,) = state["groups"], news["groups"]
        assert (waiting["name"], waiting["started"], waiting["pods"]) == ("g", False, [0, 1])
        assert waiting["cause"] == "pod group is unschedulable"
        assert (started["started"], started["place"], started["cause"]) == (True, "rack r1", "")

    serve(scenario, ask)


def test_a_client_of_another_history_is_told_to_reload() -> None:
    async def ask(client: Client) -> None:
        state = await told(await client.get("/state", headers=TOKEN))
        news = await told(await client.get("/changes?epoch=1&events=zero", headers=TOKEN))

        assert news == {"epoch": state["epoch"], "events": {"t": []}}

    serve(small(), ask)


def test_a_history_that_became_too_long_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_EVENTS", 3)
    scenario = small()

    async def ask(client: Client) -> None:
        before = await told(await client.get("/state", headers=TOKEN))
        for i in range(3):
            scenario.cluster.add(make_pod(f"late-{i}", cpu="100m"))
        scenario.run()
        after = await told(await client.get("/state", headers=TOKEN))

        assert after["epoch"] != before["epoch"]
        assert after["events"]["t"] == []
        assert after["base"]["state"] == [6, 3, 6, 6, 6]

    serve(scenario, ask)


def test_a_long_poll_without_changes_returns_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PATIENCE_S", 0.0)
    monkeypatch.setattr(live, "PAUSE_S", 0.0)

    async def ask(client: Client) -> None:
        state = await told(await client.get("/state", headers=TOKEN))
        query = {"epoch": state["epoch"], "events": 0}
        news = await told(await client.get("/changes", params=query, headers=TOKEN))

        assert news["events"]["t"] == []

    serve(small(), ask)


@pytest.mark.parametrize(
    ("name", "when", "feasible"),
    [
        pytest.param("huge", "now", 0, id="a pending pod, as it is"),
        pytest.param("runs", "like", 1, id="a placed pod, as a new pod like it"),
    ],
)
def test_a_pod_is_judged_on_request(name: str, when: str, feasible: int) -> None:
    async def ask(client: Client) -> None:
        query = {"namespace": "default", "name": name}
        account = await told(await client.get("/pod", params=query, headers=TOKEN))

        assert (account["when"], account["feasible"]) == (when, feasible)
        assert bool(account["refusals"]) is not bool(account["scores"])

    serve(small(), ask)


@pytest.mark.parametrize(
    ("most", "is_told"),
    [pytest.param(3, True, id="a small cluster"), pytest.param(2, False, id="a large one")],
)
def test_counterfactuals_are_included_in_small_clusters(
    most: int, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_VIEWED", most)
    scenario = small()

    def view() -> TrialCluster:
        every = [obj for kind in ("Node", "Pod") for obj in scenario.cluster.list(kind)]
        return TrialCluster(every, clock=scenario.clock)

    async def ask(client: Client) -> None:
        query = {"namespace": "default", "name": "huge"}
        account = await told(await client.get("/pod", params=query, headers=TOKEN))

        assert bool(account.get("remedies")) is is_told

    serve(scenario, ask, make_view=view)


@pytest.mark.parametrize(
    ("query", "options", "error"),
    [
        pytest.param("", {}, "The pod no longer exists.", id="no pod named"),
        pytest.param("?namespace=a&name=b", {}, "The pod no longer exists.", id="not there"),
        pytest.param(
            "?namespace=default&name=huge",
            {"scheduler": lambda: None},
            "No scheduler here is responsible for the pod.",
            id="no scheduler",
        ),
    ],
)
def test_a_pod_that_cannot_be_judged_is_no_failure(
    query: str, options: dict[str, Any], error: str
) -> None:
    async def ask(client: Client) -> None:
        account = await told(await client.get(f"/pod{query}", headers=TOKEN))

        assert account == {"when": "now", "error": error}

    serve(small(), ask, **options)


def test_a_cluster_that_is_not_loaded_yet_is_not_queried() -> None:
    async def ask(client: Client) -> None:
        for path in ("/state", "/changes", "/pod"):
            assert (await client.get(path, headers=TOKEN)).status == 503

    async def run(work: Callable[[], Any]) -> Any:
        raise AssertionError("the function must not be called")

    serve(small(), ask, is_ready=lambda: False, run=run)


def test_nothing_is_watched_before_the_first_request() -> None:
    scenario = small()

    async def ask(client: Client) -> None:
        watchers = len(scenario.cluster._handlers)
        await client.get("/")
        await client.get("/state")

        assert len(scenario.cluster._handlers) == watchers
        await client.get("/state", headers=TOKEN)
        await client.get("/state", headers=TOKEN)
        assert len(scenario.cluster._handlers) == watchers + 1

    serve(scenario, ask)


class WatchedCluster:
    """A cluster that records its watchers."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self.get, self.list = cluster.get, cluster.list
        self.watchers: list[WatchHandler] = []

    def watch(self, handler: WatchHandler, replay: bool = True) -> None:
        self.watchers.append(handler)
        self._cluster.watch(handler, replay)


@pytest.mark.parametrize(
    ("idle_s", "is_forgotten"),
    [
        pytest.param(live.IDLE_S - 1, False, id="recent requests"),
        pytest.param(live.IDLE_S + 1, True, id="no recent requests"),
    ],
)
def test_a_history_without_requests_is_dropped(idle_s: float, is_forgotten: bool) -> None:
    scenario = small()
    cluster = WatchedCluster(scenario.cluster)
    feed = live.Feed(PageSource(cluster, scenario.clock, lambda: scenario.scheduler))
    assert cluster.watchers == []

    before = asyncio.run(feed.state(make_mocked_request("GET", "/state")))
    scenario.clock.advance(idle_s)
    scenario.cluster.add(make_pod("late", cpu="1"))

    assert len(cluster.watchers) == 1
    assert (feed.followed() is None) == is_forgotten
    after = asyncio.run(feed.state(make_mocked_request("GET", "/state")))
    assert (after["epoch"] != before["epoch"]) == is_forgotten
    assert [*after["pods"]["name"]] == ["runs", "huge", "late"]
    assert len(cluster.watchers) == 1


def test_a_history_without_requests_does_not_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "MOST_EVENTS", 3)
    scenario = small()
    feed = live.Feed(PageSource(scenario.cluster, scenario.clock, lambda: scenario.scheduler))
    asyncio.run(feed.state(make_mocked_request("GET", "/state")))

    for i in range(9):
        scenario.cluster.add(make_pod(f"late-{i}", cpu="100m"))

    assert feed.followed() is None


def test_the_measured_use_is_read_again_when_it_is_old() -> None:
    scenario = small()
    answers = [{("default", "runs"): {"cpu": 250}}, {("default", "runs"): {"cpu": 300}}]

    async def read_use() -> dict[tuple[str, str], dict[str, int]]:
        if not answers:
            raise InputError("metrics-server does not answer")
        return answers.pop(0)

    async def ask(client: Client) -> None:
        state = await told(await client.get("/state", headers=TOKEN))
        assert state["can"]["use"]
        assert (await client.get("/use")).status == 401
        for expected in (250, 250, 300):
            if expected == 300:
                scenario.clock.advance(31)
            found = await told(await client.get("/use", headers=TOKEN))
            assert found == {"use": {"default/runs": {"cpu": expected}}}
        scenario.clock.advance(31)
        found = await told(await client.get("/use", headers=TOKEN))
        assert found == {"use": {}, "problem": "metrics-server does not answer"}

    serve(scenario, ask, read_use=read_use)
