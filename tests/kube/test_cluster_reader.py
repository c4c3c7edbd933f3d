"""Cluster reader: an expired list is read again, and a follower reports missing kinds and the reason why it stopped."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.errors import ApiError
from bayplan.kube.cluster_reader import TRIES, ClusterFollower, read_kind, read_snapshot
from bayplan.kube.connection import Connection
from bayplan.kube.reflector import ADDED, Batch, ExpiredError, ObjectEvent
from bayplan.kube.watched_kinds import RESOURCES, Resource
from tests.rig.api_server import ServerInThread, api_server
from tests.rig.one_peer import ask, json_server, status_tree
from tests.rig.trees import node_tree, pod_tree
from tests.security.rig import GuardedApi, guarded_api, rule

NODE, POD = RESOURCES["Node"], RESOURCES["Pod"]
NODES = "/api/v1/nodes"
EXPIRED = status_tree(410, "the provided continue parameter is too old")


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    with api_server(runs_pods=False) as server:
        yield server


@pytest.fixture
def guarded() -> Iterator[GuardedApi]:
    with guarded_api() as server:
        yield server


async def until(is_done: Callable[[], Any]) -> None:
    while not is_done():
        await asyncio.sleep(0)


# Reading once


def page(*names: str, more: str = "") -> tuple[int, Any]:
    """A page of nodes; `more` is where the list continues."""
    metadata = {"resourceVersion": "5", **({"continue": more} if more else {})}
    return 200, {"kind": "NodeList", "metadata": metadata, "items": [*map(node_tree, names)]}


class PagingServer:
    """Answers lists with prepared pages, and with the last one from then on."""

    def __init__(self, *pages: tuple[int, Any]) -> None:
        self._pages = pages
        self.lists = 0

    def answer(self, path: str, given: Any) -> tuple[int, Any]:
        self.lists += 1
        return self._pages[min(self.lists, len(self._pages)) - 1]


def test_a_list_whose_rest_expired_is_read_again_from_its_start(tmp_path: Path) -> None:
    server = PagingServer(page("a", "gone", more="next"), EXPIRED, page("a", "b"))

    with json_server(server.answer) as url:
        found = ask(tmp_path, url, lambda one: read_kind(one, NODE))

    assert [node.name for node in found] == ["a", "b"]


def test_a_list_that_expires_again_and_again_is_an_error(tmp_path: Path) -> None:
    server = PagingServer(EXPIRED)

    with json_server(server.answer) as url, pytest.raises(ExpiredError, match="is too old"):
        ask(tmp_path, url, lambda one: read_kind(one, NODE))

    assert server.lists == TRIES


def test_a_snapshot_ends_with_a_failure_of_the_server(tmp_path: Path) -> None:
    def answer(path: str, given: Any) -> tuple[int, Any]:
        if path == "/api/v1":
            return 200, {"resources": [{"name": "nodes"}, {"name": "pods"}]}
        return status_tree(500, "etcd is away") if path == NODES else status_tree(404, "not found")

    with json_server(answer) as url, pytest.raises(ApiError) as caught:
        ask(tmp_path, url, read_snapshot)

    assert (str(caught.value), caught.value.code) == ("etcd is away", 500)


# Following


def followed(
    folder: Path, api: ServerInThread, kinds: Sequence[Resource], work: Callable[..., Any]
) -> Any:
    """The result of `work` with a follower that has read the cluster, and what it delivers."""

    async def follow(connection: Connection) -> Any:
        delivered: Batch = []
        follower = ClusterFollower(connection, delivered.extend, kinds)
        running = asyncio.ensure_future(follower.run())
        await follower.synced.wait()
        try:
            return await work(follower, delivered)
        finally:
            running.cancel()

    return ask(folder, api.server.url, follow)


def listed(tree: dict[str, Any], version: str) -> Batch:
    tree["metadata"]["resourceVersion"] = version
    return [ObjectEvent(ADDED, decode_object(tree))]


@pytest.mark.parametrize(
    ("name", "shift", "is_behind"),
    [
        pytest.param("n0", 0, False, id="the known version"),
        pytest.param("n0", 1, True, id="a newer version"),
        pytest.param("n0", -1, False, id="an older version"),
        pytest.param("other", 0, True, id="an object that is not known"),
        pytest.param("n0", None, False, id="a version that is no number"),
    ],
)
def test_a_follower_is_behind_what_it_lacks(
    tmp_path: Path, api: ServerInThread, name: str, shift: int | None, is_behind: bool
) -> None:
    made = api.make(NODES, node_tree("n0"))
    known = int(made["metadata"]["resourceVersion"])
    version = "opaque" if shift is None else str(known + shift)

    async def work(follower: ClusterFollower, delivered: Batch) -> bool:
        return follower.is_behind(listed(node_tree(name), version))

    assert followed(tmp_path, api, [NODE], work) is is_behind


def test_a_follower_is_behind_if_one_of_several_objects_is_newer(
    tmp_path: Path, api: ServerInThread
) -> None:
    made = api.make(NODES, node_tree("n0"))
    version = made["metadata"]["resourceVersion"]
    known = listed(node_tree("n0"), version)
    unknown = listed(pod_tree("p"), version)

    async def work(follower: ClusterFollower, delivered: Batch) -> list[bool]:
        return [follower.is_behind(batch) for batch in ([], known, [*known, *unknown])]

    assert followed(tmp_path, api, [NODE, POD], work) == [False, False, True]


def test_a_restart_opens_followed_kinds_again_and_leaves_out_others(
    tmp_path: Path, api: ServerInThread
) -> None:
    async def work(follower: ClusterFollower, delivered: Batch) -> list[str]:
        follower.restart(("Pod", "Node"))
        await until(lambda: follower.interrupted == ["nodes"])
        await until(lambda: not follower.interrupted)
        await asyncio.to_thread(api.make, NODES, node_tree("late"))
        await until(lambda: delivered)
        return [change.obj.name for change in delivered]

    assert followed(tmp_path, api, [NODE], work) == ["late"]


def follow_as(folder: Path, guarded: GuardedApi, *rules: Any) -> ApiError:
    """The error that ends a follower of nodes and pods whose user has these rules."""
    account = guarded.account("follower", *rules, everywhere=True)
    with pytest.raises(ApiError) as caught:
        ask(folder, guarded.api.server.url, run_follower, account.token)
    return caught.value


async def run_follower(connection: Connection) -> None:
    await ClusterFollower(connection, lambda batch: None, [NODE, POD]).run()


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        pytest.param([], ["nodes", "pods"], id="no permission for any kind"),
        pytest.param([rule("list watch", "nodes")], ["pods"], id="permission for one of two"),
    ],
)
def test_kinds_without_permission_end_a_follower_and_are_named_together(
    tmp_path: Path, guarded: GuardedApi, rules: list[Any], refused: list[str]
) -> None:
    error = follow_as(tmp_path, guarded, *rules)

    lines = str(error).splitlines()
    starts = [line.partition(";")[0] for line in lines]
    assert starts == [f"expected to be allowed to watch {plural}" for plural in refused]
    assert all("default:follower" in line for line in lines), "the server names the user"
    assert error.code == 403


def test_another_refusal_ends_a_follower_with_the_words_of_the_server(tmp_path: Path) -> None:
    def answer(path: str, given: Any) -> tuple[int, Any]:
        if path == "/api/v1":
            return 200, {"resources": [{"name": "nodes"}, {"name": "pods"}]}
        return status_tree(404 if path == NODES else 403, f"no {path}")

    with json_server(answer) as url, pytest.raises(ApiError) as caught:
        ask(tmp_path, url, run_follower)

    assert (str(caught.value), caught.value.code) == (f"no {NODES}", 404)
