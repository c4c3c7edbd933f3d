"""The fault proxy injects the faults of its data, and none once it is to end."""

import http.client
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from tests.rig.api_server import ServerInThread, api_server
from tests.rig.faults import Faults
from tests.rig.live.client import GONE_WRONG, LiveClient
from tests.rig.live.fault_proxy import FaultProxy
from tests.rig.trees import node_tree

NODES = "/api/v1/nodes"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[ServerInThread, Path]]:
    kubeconfig = tmp_path / "kubeconfig"
    with api_server(runs_pods=False) as running:
        kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(running.server.url)))
        yield running, kubeconfig


def test_the_share_of_each_fault_is_as_the_data_says() -> None:
    faults = Faults(seed=3, refused=0.1, delayed=0.05, cut=0.02, lost=0.03, watch_cut=0.5)

    kinds = Counter(faults.of_request(number, is_watch=False)[0] for number in range(20_000))

    assert kinds.keys() == {"", "refused", "delayed", "cut", "lost"}
    assert abs(kinds["refused"] - 2000) < 200
    assert abs(kinds["cut"] - 400) < 100
    again = Counter(faults.of_request(number, is_watch=False)[0] for number in range(20_000))
    assert again == kinds


@pytest.mark.parametrize(
    ("faults", "arrives"),
    [
        pytest.param(Faults(refused=1, statuses=(503,)), False, id="refused"),
        pytest.param(Faults(cut=1), False, id="cut"),
        pytest.param(Faults(lost=1), True, id="lost"),
        pytest.param(Faults(torn=1), True, id="torn"),
    ],
)
def test_a_request_meets_its_fault_until_the_end(
    server: tuple[ServerInThread, Path], tmp_path: Path, faults: Faults, arrives: bool
) -> None:
    running, kubeconfig = server
    proxy = FaultProxy(kubeconfig, tmp_path, faults)
    try:
        client = LiveClient(proxy.kubeconfig)
        try:
            assert client.request("POST", NODES, node_tree("a")).status == 503
        except (*GONE_WRONG, http.client.IncompleteRead):
            assert faults.cut or faults.lost or faults.torn
        assert (running.get(f"{NODES}/a").status == 200) is arrives
        assert sum(proxy.injected.values()) >= 1

        proxy.end()
        assert client.request("POST", NODES, node_tree("b")).status == 201
    finally:
        proxy.stop()


def test_a_refusal_may_ask_for_another_try(
    server: tuple[ServerInThread, Path], tmp_path: Path
) -> None:
    _, kubeconfig = server
    proxy = FaultProxy(kubeconfig, tmp_path, Faults(refused=1, statuses=(429,), retry_after=1))
    try:
        host, port = LiveClient(proxy.kubeconfig).url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port))
        connection.request("GET", NODES)
        response = connection.getresponse()

        assert (response.status, response.getheader("Retry-After")) == (429, "1")
    finally:
        proxy.stop()


@pytest.mark.parametrize("kind", ["watch_cut", "watch_stalled", "watch_expired"])
def test_a_watch_meets_its_fault(
    server: tuple[ServerInThread, Path], tmp_path: Path, kind: str
) -> None:
    running, kubeconfig = server
    running.make(NODES, node_tree("a"))
    chances: dict[str, Any] = {kind: 1.0}
    faults = Faults(**chances, watch_s=0.2, stall_s=0.2)
    proxy = FaultProxy(kubeconfig, tmp_path, faults)
    events = []
    try:
        try:
            for event in LiveClient(proxy.kubeconfig).watch(NODES, "0"):
                events.append((event["type"], event["object"].get("code")))
        except (*GONE_WRONG, http.client.IncompleteRead):
            assert kind != "watch_expired"
    finally:
        proxy.stop()
    assert (("ERROR", 410) in events) is (kind == "watch_expired")
    assert proxy.injected[kind] == 1
