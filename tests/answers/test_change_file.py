"""Change file: changes are made in order, and errors name their place."""

from pathlib import Path
from textwrap import dedent

import pytest

from bayplan.answers.what_if import (
    AddNodes,
    ClusterChange,
    Cordon,
    Delete,
    Drain,
    Upgrade,
    ask_what_if,
    read_change_file,
)
from bayplan.errors import InputError
from bayplan.testing.builders import make_node, make_pod


def write(folder: Path, text: str) -> Path:
    file = folder / "changes.yaml"
    file.write_text(dedent(text))
    return file


HEAD = "apiVersion: bayplan.dev/v1\nkind: WhatIf\n"


def test_every_keyword_is_read_and_applied_in_order(tmp_path: Path) -> None:
    text = """
    changes:
      - cordon: a
      - addNodes: {like: a}
      - addTaint: {node: a-new-1, taints: ["x:NoSchedule"]}
      - removeTaint: {node: a-new-1, taints: [x]}
      - uncordon: [a]
      - resize: {target: a, resources: {cpu: 8}}
      - add:
          - {apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {nodeName: a, containers: [{name: c, image: c}]}}
      - delete: [pod/late]
      - patch:
          - {kind: Node, metadata: {name: a, labels: {disk: ssd}}}
      - drain: {nodes: [a-new-1], force: true}
    """
    changes = read_change_file(write(tmp_path, HEAD + dedent(text)))
    waits = make_pod("waits", cpu="8", node_selector={"disk": "ssd"})

    answer = ask_what_if([make_node("a"), waits], changes)

    assert [(change.name, str(change.now)) for change in answer.pods] == [("waits", "a")]
    assert answer.nodes_added == ["a-new-1"]
    assert answer.changes[0] == "cordon a"
    assert answer.changes[-2:] == ["patch node/a", "drain a-new-1"]


@pytest.mark.parametrize(
    ("text", "change"),
    [
        pytest.param(
            "drain: {selector: zone=a, startTime: 1m, force: true}",
            Drain(selector="zone=a", start_s=60, force=True),
            id="a drain by labels",
        ),
        pytest.param(
            "upgrade: {nodes: ['a-*'], surge: 2, maxUnavailable: 1, nodeStartTime: 90s}",
            Upgrade(("a-*",), surge=2, max_unavailable=1, node_start_s=90),
            id="an upgrade",
        ),
        pytest.param("upgrade: a", Upgrade(("a",)), id="an upgrade of one node"),
        pytest.param("cordon: {selector: zone=a}", Cordon(selector="zone=a"), id="cordon"),
        pytest.param("delete: {selector: zone=a}", Delete(selector="zone=a"), id="nodes by labels"),
        pytest.param(
            "delete: {objects: [pod], selector: app=web}",
            Delete(("pod",), selector="app=web"),
            id="pods by labels",
        ),
        pytest.param("addNodes: {like: [a, b]}", AddNodes(1, ("a", "b")), id="several to copy"),
    ],
)
def test_options_of_a_change(tmp_path: Path, text: str, change: ClusterChange) -> None:
    assert read_change_file(write(tmp_path, f"{HEAD}changes: [{{{text}}}]")) == [change]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "kind: Pod", 'document 1: kind: expected WhatIf; got "Pod"', id="another kind"
        ),
        pytest.param(
            "kind: WhatIf\napiVersion: v1",
            'document 1: apiVersion: expected bayplan.dev/v1; got "v1"',
            id="another version",
        ),
        pytest.param(HEAD, "document 1: changes: expected a list; got none", id="no changes"),
        pytest.param(HEAD + "changes: []", "expected a WhatIf with changes; got none", id="empty"),
        pytest.param(
            HEAD + "changes: [{explode: a}]",
            "document 1: changes[0].explode: expected one of drain, upgrade, addNodes, cordon, uncordon, "
            "addTaint, removeTaint, resize, scale, delete, add, patch",
            id="an unknown keyword",
        ),
        pytest.param(
            HEAD + "changes: [{drain: 3}]",
            "document 1: changes[0].drain: expected names; got 3",
            id="no name",
        ),
        pytest.param(
            HEAD + "changes: [{drain: {selector: zone=a, startTime: 30}}]",
            "document 1: changes[0].drain.startTime: expected a duration such as 90s, 5m or 1h30m; got 30",
            id="a time without unit",
        ),
        pytest.param(
            HEAD + "changes: [{upgrade: {force: true}}]",
            "document 1: changes[0].upgrade.nodes: expected names; got none",
            id="neither nodes nor a selector",
        ),
        pytest.param(
            HEAD + "changes: [{scale: {workload: deploy/a, replicas: -1}}]",
            "document 1: changes[0].scale.replicas: expected a number that is not negative; got -1",
            id="a negative number",
        ),
        pytest.param(
            HEAD + "changes: [{resize: {target: a, resources: {cpu: x}}}]",
            "document 1: changes[0]: expected resource=quantity, such as cpu=8 or memory=32Gi; "
            'got "cpu=x"',
            id="no quantity",
        ),
        pytest.param(
            HEAD + "changes: [{patch: {kind: Node}}]",
            "document 1: changes[0].patch[0].metadata.name: expected the name of an object; got none",
            id="a patch without a name",
        ),
        pytest.param(
            HEAD + "changes: [{add: {kind: Unheard, apiVersion: v1}}]",
            "document 1: changes[0].add[0]: unheard: apiVersion: expected a kind of v1; got Unheard",
            id="an unsupported kind",
        ),
        pytest.param("a: [", "expected YAML; ", id="no YAML"),
    ],
)
def test_invalid_input_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    file = write(tmp_path, text)

    with pytest.raises(InputError) as caught:
        read_change_file(file)

    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_unknown_fields_of_objects_and_patches_are_remarks(tmp_path: Path) -> None:
    text = """
    changes:
      - cordon: a
      - add: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeSelecter: {}, containers: []}}
      - patch:
          - {kind: Node, metadata: {name: a}, spec: {unschedulabel: true}}
    """
    file, remarks = write(tmp_path, HEAD + dedent(text)), list[str]()

    read_change_file(file, remarks)

    assert remarks == [
        f"{file}: document 1: changes[1].add[0].spec.nodeSelecter: pod default/p: "
        "expected nodeSelector; got an unknown field",
        f"{file}: document 1: changes[2].patch[0].spec.unschedulabel: node a: "
        "expected unschedulable; got an unknown field",
    ]
