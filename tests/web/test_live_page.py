"""The live page of `bayplan up` in a real Chromium."""

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.rig.trees import pod_tree

from .chromium import Browser, Tab

Open = Callable[..., Tab]
PODS = "/api/v1/namespaces/default/pods"
TIMEOUT_S = 60


class Up(NamedTuple):
    """A running `bayplan up`."""

    port: int
    page: str
    kubeconfig: str

    def ask(self, method: str, path: str, body: Any = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()

    def post_pod(self, name: str, cpu: str) -> None:
        assert self.ask("POST", PODS, pod_tree(name, cpu)) == 201


@contextmanager
def process(*arguments: str, lines: int) -> Iterator[list[str]]:
    """A running `bayplan`, and its first lines on standard error."""
    command = [sys.executable, "-m", "bayplan.cli.main", *arguments]
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stderr is not None
        yield [running.stderr.readline() for _ in range(lines)]
    finally:
        running.terminate()
        running.communicate()


@contextmanager
def cluster(folder: Path, *arguments: str) -> Iterator[Up]:
    kubeconfig = str(folder / "kubeconfig")
    command = ["up", "--http", "--nodes", "3", "--kubeconfig", kubeconfig, *arguments]
    with process(*command, lines=2) as (server, page):
        yield Up(int(server.split()[1].rpartition(":")[2]), page.split()[1], kubeconfig)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with cluster(tmp_path) as running:
        yield running


def test_the_page_changes_when_a_pod_is_scheduled(up: Up, open_page: Open) -> None:
    tab = open_page(up.page)
    before = tab.run("bayplan.model.onNodes")

    up.post_pod("web", "100m")
    tab.wait_for("bayplan.model.onNodes === 1")
    up.post_pod("huge", "64")
    tab.wait_for("bayplan.model.counts[3] === 1")
    tab.settle()

    assert before == 0
    assert tab.texts("#queue .number") == ["0", "0", "1", "0"]
    assert "huge" in tab.text(".list .row")
    assert up.ask("DELETE", f"{PODS}/huge") == 200
    tab.wait_for("bayplan.model.waitingCount === 0")


def test_a_click_queries_the_scheduler_and_the_slider_goes_back(up: Up, open_page: Open) -> None:
    tab = open_page(up.page)
    up.post_pod("web", "100m")
    up.post_pod("huge", "64")
    tab.wait_for("bayplan.model.onNodes === 1 && bayplan.model.counts[3] === 1")

    tab.run("bayplan.openPod(bayplan.data.pods.name.indexOf('huge'))")
    tab.wait_for("document.querySelector('.verdicts')")
    refused, remedies = tab.text(".verdicts tbody tr"), tab.text(".remedies")
    tab.run("bayplan.openPod(bayplan.data.pods.name.indexOf('web'))")
    tab.wait_for("document.querySelector('.scores')")
    scores = tab.texts(".scores tr")
    tab.run("bayplan.timeline.slider.focus()")
    tab.press("Home")
    in_the_past = tab.run("bayplan.model.onNodes")
    tab.click("#now")

    assert "Insufficient cpu" in refused
    assert "56 cpu more on the node: raise cpu on the node to 64" in remedies
    assert len(scores) == 2  # two nodes are empty, and equal
    assert in_the_past == 0
    assert tab.run("bayplan.model.onNodes") == 1


def test_the_measured_use_stands_beside_requests(tmp_path: Path, browser: Browser) -> None:
    use = tmp_path / "use.csv"
    use.write_text("namespace,pod,cpu,memory\ndefault,web,40m,64Mi\n")
    with cluster(tmp_path, "--usage", str(use)) as up:
        up.post_pod("web", "100m")
        tab = browser.open(up.page)
        tab.wait_for("bayplan.model.onNodes === 1 && bayplan.data.use.size === 1")
        tab.run("bayplan.openPod(0)")
        pod = tab.text("#details")
        tab.run("bayplan.openNode(bayplan.model.node[0])")

        assert "Measured use" in pod
        assert "40m" in pod or "0.04" in pod
        assert "in use" in tab.text("#details")
        tab.close()


def test_bayplan_run_shows_its_cluster(tmp_path: Path, browser: Browser) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with cluster(tmp_path, "--no-scheduler") as up:
        options = ["--kubeconfig", up.kubeconfig, f"--secure-port={port}", "--leader-elect=false"]
        options.append("--bind-address=127.0.0.1")
        with process("run", *options, lines=2):
            tab = browser.open(f"https://127.0.0.1:{port}/page/")
            up.post_pod("web", "100m")
            tab.wait_for("bayplan.model.onNodes === 1")
            tab.run("bayplan.openPod(0)")
            tab.wait_for("document.querySelector('.scores')")

            assert "web" in tab.text("#details h2")
            tab.run("bayplan.openNode(bayplan.model.node[0])")
            tab.click("#ask-drain")
            tab.wait_for("document.querySelector('.summary')")
            assert "1 stalls" in tab.text(".summary"), "nothing recreates the pod"
            assert tab.run("document.getElementById('new-object').hidden"), "run changes nothing"
            tab.close()


def test_the_token_is_in_no_request_address_and_is_required(up: Up, open_page: Open) -> None:
    address, _, token = up.page.partition("#token=")
    tab = open_page(up.page)
    up.post_pod("secret", "100m")
    tab.wait_for("bayplan.model.onNodes === 1")

    assert token not in " ".join([*tab.requests(), tab.run("location.href")])
    tab.run("sessionStorage.clear()")
    tab.send("Page.navigate", url=address)
    tab.wait_for("document.getElementById('notice').innerText.includes('token')")
    assert "secret" not in tab.text("body")
    assert not tab.run(
        "document.getElementById('resource').checkVisibility({visibilityProperty: true})"
    )
    tab.forget_problems()
