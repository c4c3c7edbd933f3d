"""Live metrics: the use of pods from metrics.k8s.io, and the message if a server does not have it."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import ApiError, InputError
from bayplan.kube.live_cluster import PATH, read_live_metrics, read_metrics
from tests.rig.api_server import api_server
from tests.rig.live.metrics_server import answer
from tests.rig.one_peer import ask, json_server, status_tree, write_kubeconfig

USE = {("shop", "web-1"): {"main": (250_000_000, 2048)}}


def test_the_use_is_read_with_the_address_of_the_server(tmp_path: Path) -> None:
    with json_server(lambda path, given: answer(path, USE)) as url:
        server, found = read_live_metrics(write_kubeconfig(tmp_path, url))

    (pod,) = found["items"]
    assert (server, pod["metadata"]["namespace"], pod["metadata"]["name"]) == (url, "shop", "web-1")
    assert pod["containers"][0]["usage"] == {"cpu": "250000000n", "memory": "2048Ki"}


def test_a_cluster_without_pods_has_no_use(tmp_path: Path) -> None:
    with api_server(runs_pods=False) as server:
        url = server.server.url
        with pytest.raises(InputError) as caught:
            ask(tmp_path, url, read_metrics)

    expected = f"--usage live: expected metrics.k8s.io, as metrics-server has it, at {url}"
    assert str(caught.value) == f"{expected}; got no pods: it may have measured none yet"


@pytest.mark.parametrize(
    ("response", "words"),
    [
        pytest.param(
            status_tree(404, "the server could not find the requested resource"),
            "; got none",
            id="no metrics-server is installed",
        ),
        pytest.param(
            status_tree(503, "service unavailable"),
            "; got no answer from metrics-server: service unavailable",
            id="the aggregator does not reach metrics-server",
        ),
        pytest.param(
            (200, {"kind": "PodMetricsList", "items": []}),
            "; got no pods: it may have measured none yet",
            id="metrics-server has measured no pod",
        ),
        pytest.param(
            (200, {"kind": "PodMetricsList", "items": None}),
            "; got no pods: it may have measured none yet",
            id="the list has no items",
        ),
    ],
)
def test_missing_metrics_are_an_error_of_the_input(
    tmp_path: Path, response: tuple[int, Any], words: str
) -> None:
    with json_server(lambda path, given: response) as url, pytest.raises(InputError) as caught:
        ask(tmp_path, url, read_metrics)

    assert str(caught.value).endswith(f"at {url}{words}")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(403, "pods.metrics.k8s.io is forbidden", id="no permission"),
        pytest.param(500, "internal error", id="a failure of the server"),
    ],
)
def test_other_refusals_stay_errors_of_the_server(tmp_path: Path, code: int, message: str) -> None:
    asked: list[str] = []

    def refuse(path: str, given: Any) -> tuple[int, Any]:
        asked.append(path)
        return status_tree(code, message)

    with json_server(refuse) as url, pytest.raises(ApiError, match=message) as caught:
        ask(tmp_path, url, read_metrics)

    assert (caught.value.code, asked) == (code, [PATH])


def test_a_server_that_cannot_be_reached_is_no_missing_metrics(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, "http://127.0.0.1:1")

    with pytest.raises(ApiError, match="cannot reach the API server") as caught:
        read_live_metrics(kubeconfig)

    assert caught.value.code == 0
