"""Kindless objects: nodes and pods that a program wrote without their kind are read."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.sim import read_manifests

NODE: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "1"},
    "status": {"allocatable": {"cpu": "2"}, "nodeInfo": {"kubeletVersion": "v1.33.0"}},
}
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default", "uid": "2"},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    "status": {"phase": "Running"},
}


def test_stored_nodes_and_pods_without_a_kind_are_read(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text(json.dumps(NODE))
    (tmp_path / "pod.json").write_text(json.dumps(POD))

    objects = read_manifests([str(tmp_path)]).objects

    assert [(type(obj), obj.name) for obj in objects] == [(Node, "n"), (Pod, "p")]


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param({**POD, "metadata": {"name": "p"}}, id="a pod that nothing stored"),
        pytest.param({"metadata": {"name": "x", "uid": "3"}, "spec": {}}, id="another object"),
    ],
)
def test_other_objects_without_a_kind_are_refused(tmp_path: Path, tree: dict[str, Any]) -> None:
    file = tmp_path / "object.json"
    file.write_text(json.dumps(tree))

    with pytest.raises(InputError, match="expected apiVersion and kind; got a document with"):
        read_manifests([str(file)])
