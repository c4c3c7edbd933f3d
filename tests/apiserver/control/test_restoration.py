"""Objects of a dump stay as they are in a new cluster: uids, owners, nodes of pods, names of replica sets."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.field.mutations import corpus_trees
from tests.rig.api_server import ServerInThread, api_server

Tree = dict[str, Any]
OWNERS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")


def dump() -> list[Tree]:
    """The recorded objects, those of custom kinds left out."""
    stored = [tree for tree in corpus_trees() if tree["metadata"].get("uid")]
    return [tree for tree in stored if not tree["apiVersion"].startswith("example.com/")]


def restore(api: ServerInThread, trees: Iterable[Tree]) -> list[str]:
    """Load the trees and let the controllers settle; the notes."""

    def load(server: Any) -> list[str]:
        for tree in trees:
            server.load(tree)
        found: list[str] = server.restoration.complete()
        return found

    notes = api.within(load)
    api.settle()
    return notes


def pods_of(trees: Iterable[Tree]) -> dict[tuple[str, str], Tree]:
    """Pods on nodes by namespace and name, with what must stay."""
    return {
        (tree["metadata"]["namespace"], tree["metadata"]["name"]): {
            "uid": tree["metadata"]["uid"],
            "node": tree["spec"]["nodeName"],
            "owners": tree["metadata"].get("ownerReferences"),
        }
        for tree in trees
        if tree.get("kind", "Pod") == "Pod" and tree["spec"].get("nodeName")
    }


@pytest.mark.parametrize("without", [(), OWNERS], ids=["with owners", "without owners"])
def test_pods_of_a_dump_stay(without: tuple[str, ...]) -> None:
    trees = [tree for tree in dump() if tree["kind"] not in without]
    expected = pods_of(trees)
    sets = {t["metadata"]["name"] for t in trees if t["kind"] == "ReplicaSet"}

    with api_server() as api:
        notes = restore(api, trees)
        found = pods_of(api.get("/api/v1/pods").tree["items"])
        names = {t["metadata"]["name"] for t in api.get("/apis/apps/v1/replicasets").tree["items"]}

    assert expected
    assert {key: found.get(key) for key in expected} == expected
    assert names == sets
    assert any("an owner that is not in the files" in note for note in notes) == bool(without)


def test_parts_of_a_dump_that_cannot_stay() -> None:
    pod = next(tree for tree in dump() if tree["kind"] == "Pod" and tree["spec"].get("nodeName"))
    gone = {**pod, "metadata": {**pod["metadata"], "name": "gone", "uid": "other"}}
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    copy = {**pod, "metadata": {**pod["metadata"], "name": "copy"}}
    node = next(tree for tree in dump() if tree["kind"] == "Node")
    sketch = {**pod, "metadata": {"name": "sketch", "uid": "sketch"}}
    sketch["status"] = {"phase": "Running"}
    sketch["spec"] = {"containers": [{"name": "a", "image": "b"}]}
    sketch["spec"]["nodeName"] = node["metadata"]["name"]

    with api_server() as api:
        notes = restore(api, [node, pod, gone])
        items = {t["metadata"]["name"] for t in api.get("/api/v1/pods").tree["items"]}
        restore(api, [copy, sketch])

        [started] = api.get("/api/v1/pods?fieldSelector=metadata.name%3Dsketch").tree["items"]

    assert items == {pod["metadata"]["name"]}
    assert started["status"]["containerStatuses"][0]["ready"]
    assert started["metadata"]["creationTimestamp"]
    assert started["metadata"]["namespace"] == "default"
    assert notes[-1].endswith("gone has been left out: a deletion was under way")
