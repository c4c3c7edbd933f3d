"""Questions and forms on the live page of `bayplan up`, and which requests are taken."""

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .chromium import Tab
from .test_live_page import PODS, Up, cluster

Open = Callable[..., Tab]
DRAIN = {"ask": "drain", "node": "node-0"}
HERE = {"X-Bayplan-Page": "1", "Content-Type": "application/json"}
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster of three nodes with a Deployment of three pods."""
    with cluster(tmp_path_factory.mktemp("up")) as running:
        resources = {"requests": {"cpu": "1"}}
        container = {"name": "c", "image": "x", "resources": resources}
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        assert running.ask("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}) == 201
        yield running


def open_it(up: Up, open_page: Open) -> Tab:
    tab = open_page(up.page)
    tab.wait_for("bayplan.model.onNodes >= 3")
    return tab


def post(up: Up, path: str, body: object, headers: dict[str, str], token: bool = True) -> int:
    """The status of a request to the page's server."""
    address = urlsplit(up.page)
    given = {"Authorization": f"Bearer {address.fragment.removeprefix('token=')}"} if token else {}
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {**given, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_drain_is_answered_with_arrows_and_changes_nothing(up: Up, open_page: Open) -> None:
    tab = open_it(up, open_page)
    before = tab.run("JSON.stringify([bayplan.model.node, bayplan.data.rows.flags])")
    node = tab.run("bayplan.model.node.find(n => n >= 0)")

    tab.run(f"bayplan.openNode({node})")
    tab.click("#ask-drain")
    tab.wait_for("document.querySelector('.moves')")
    headline = tab.text(".summary")
    moved, arrows = tab.texts(".moves .move"), tab.run("bayplan.tiles.arrows")
    tab.press("Escape")

    assert len(moved) == 1
    assert headline == f"drain node-{node}: 1 moved; pending 0 → 0"
    assert f"node-{node} → node-" in moved[0]
    assert [arrow[0] for arrow in arrows] == [node]
    assert tab.run("bayplan.tiles.arrows.length") == 0
    assert tab.run("JSON.stringify([bayplan.model.node, bayplan.data.rows.flags])") == before


def test_nodes_like_this_one_are_added_in_the_answer_only(up: Up, open_page: Open) -> None:
    tab = open_it(up, open_page)

    tab.run("bayplan.openNode(0)")
    tab.run("document.getElementById('like-number').value = 2")
    tab.click("#ask-add")
    tab.wait_for("document.querySelector('.summary')")

    assert "Add 2 nodes like node-0" in tab.text("#details h2")
    assert tab.text("#details").count("node-0-") == 2
    assert [name[:7] for name in tab.run("bayplan.tiles.added")] == ["node-0-", "node-0-"]
    tab.wait_for("bayplan.tiles.blocks.at(-1).isNew")
    tab.press("Escape")
    tab.wait_for("!bayplan.tiles.blocks.at(-1).isNew")


def test_pods_that_wait_have_arrows_to_new_nodes(up: Up, open_page: Open) -> None:
    for number in range(5):  # each of three nodes has room for one of them
        up.post_pod(f"large-{number}", "7")
    tab = open_it(up, open_page)
    tab.wait_for("bayplan.model.waitingCount === 2")

    tab.run("bayplan.openNode(0)")
    tab.click("#ask-add")
    tab.wait_for("document.querySelector('.moves')")
    tab.wait_for("bayplan.tiles.blocks.at(-1).isNew")
    arrows = tab.run("bayplan.tiles.arrows")
    tab.run("bayplan.tiles.drawNow()")
    ends = tab.run("bayplan.tiles.arrows.map(([, to]) => !!bayplan.tiles.middleOf(to))")

    assert sum(number for *_, number in arrows) == 2
    assert {start for start, *_ in arrows} == {-1}
    assert all(end <= -10 for _, end, _ in arrows)
    assert all(ends)
    for number in range(5):
        assert up.ask("DELETE", f"{PODS}/large-{number}") == 200
    assert tab.run("bayplan.model.liveNodes().length") == 3


def test_another_configuration_is_tried_and_a_wrong_one_named(up: Up, open_page: Open) -> None:
    tab = open_it(up, open_page)

    tab.click("#try-config")
    tab.click("#config-ask")
    tab.wait_for("document.querySelector('.summary')")
    packed = tab.text(".summary")
    tab.click("#try-config")
    tab.run("document.getElementById('config-text').value = 'kind: Nothing'")
    tab.click("#config-ask")
    tab.wait_for("document.querySelector('#details .said')")
    tab.forget_problems()  # the browser reports a 422 as an error

    assert "pods get another node" in packed
    assert "kind" in tab.text("#details .said")


def test_an_object_is_created_edited_and_deleted(up: Up, open_page: Open) -> None:
    tab = open_it(up, open_page)

    tab.click("#new-object")
    tab.run("document.getElementById('object-text').value += '  nodeSelektor: {}\\n'")
    tab.click("#check-object")
    tab.wait_for("document.querySelector('#edit-said').innerText")
    wrong = tab.text("#edit-said")
    tab.forget_problems()
    tab.click("#new-object")
    tab.click("#check-object")
    tab.wait_for("document.querySelector('#edit-said').innerText")
    checked = tab.text("#edit-said")
    tab.click("#save-object")
    tab.wait_for("bayplan.model.podNamed('default/web') >= 0")
    tab.run("bayplan.openPod(bayplan.model.podNamed('default/web'))")
    tab.click("#edit-object")
    tab.wait_for("document.querySelector('#object-text')")
    tab.run("(a => a.value = a.value.replace('  labels:', '  labels:\\n    tier: front'))"
            "(document.getElementById('object-text'))")  # fmt: skip
    tab.click("#save-object")
    tab.wait_for("document.querySelector('#edit-said').innerText")
    saved = tab.text("#edit-said")
    tab.run("bayplan.openPod(bayplan.model.podNamed('default/web'))")
    tab.click("#delete-object")
    asked = tab.text("#delete-object")
    tab.click("#delete-object")
    tab.wait_for("bayplan.model.state[bayplan.model.podNamed('default/web')] === 0")

    assert 'unknown field "spec.nodeSelektor"' in wrong
    assert checked == "pods/web can be created"
    assert saved == "pods/web replaced"
    assert asked == "Delete web?"


@pytest.mark.parametrize(
    ("headers", "token", "status"),
    [
        pytest.param(HERE, True, 200, id="of the page"),
        pytest.param(HERE, False, 401, id="without the token"),
        pytest.param({"Content-Type": "application/json"}, True, 403, id="without the header"),
        pytest.param({**HERE, "Content-Type": "text/plain"}, True, 403, id="as plain text"),
        pytest.param({**HERE, "Origin": "http://evil.example"}, True, 403, id="of another site"),
        pytest.param({**HERE, "Origin": "null"}, True, 403, id="of no site"),
        pytest.param({**HERE, "Sec-Fetch-Site": "cross-site"}, True, 403, id="across sites"),
        pytest.param({**HERE, "Host": "evil.example"}, True, 403, id="under another name"),
    ],
)
@pytest.mark.parametrize(
    ("path", "body"), [("/ask", DRAIN), ("/edit", {"do": "read", "kind": "Node", "name": "node-0"})]
)
def test_only_the_page_may_ask(
    up: Up, path: str, body: object, headers: dict[str, str], token: bool, status: int
) -> None:
    assert post(up, path, body, headers, token) == status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/ask", {"ask": "explode"}, id="an unknown question"),
        pytest.param("/ask", {"ask": "drain", "node": "nowhere"}, id="an unknown node"),
        pytest.param("/ask", {"ask": "add-nodes", "node": "node-0", "number": 0}, id="no nodes"),
        pytest.param("/ask", [], id="not an object"),
        pytest.param("/edit", {"do": "explode"}, id="an unknown request"),
        pytest.param("/edit", {"do": "apply", "text": "{"}, id="no YAML"),
        pytest.param("/edit", {"do": "apply", "text": "[]"}, id="a list"),
        pytest.param("/edit", {"do": "apply", "text": "kind: Nothing"}, id="an unknown kind"),
        pytest.param("/edit", {"do": "delete", "kind": "Node", "name": "x"}, id="a missing node"),
        pytest.param("/edit", {"do": "read", "kind": "Nothing"}, id="to read an unknown kind"),
    ],
)
def test_wrong_requests_are_refused(up: Up, path: str, body: object) -> None:
    assert post(up, path, body, HERE) == 422


def test_a_report_offers_no_questions(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    tab.run("bayplan.openNode(0)")

    assert tab.run("document.getElementById('try-config').hidden")
    assert tab.run("document.querySelector('.actions')") is None
