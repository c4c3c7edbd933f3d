"""`bayplan up`: the manifests it begins with."""

import json
import math
from pathlib import Path

import pytest

from bayplan.api.pod_stages import PodStages
from bayplan.apiserver.server import ApiServer
from bayplan.cli.commands.up import AuthorizationMode, UpOptions, make_server
from bayplan.cli.commands.up_manifests import UpManifests, load, read_manifests
from bayplan.errors import InputError

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "dta": {}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelecter": {}},
}
STAGES = {"apiVersion": "bayplan.dev/v1", "kind": "PodStages", "metadata": {"name": "flaky"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, SECRET]}))
    return path


def remarks(file: Path) -> list[str]:
    place = f"{file}: document 1"
    return [
        f"{place}: items[0]: pod default/a: spec.nodeSelecter: "
        "expected nodeSelector; got an unknown field",
        f"{place}: items[1]: secret default/s: dta: expected data; got an unknown field",
    ]


def test_unknown_fields_of_every_kind_are_warnings(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ApiServer()

    load(server, read_manifests([file]))

    assert capsys.readouterr().err.splitlines() == [f"warning: {text}" for text in remarks(file)]
    assert server.store.count("pods") == 1


def test_strict_refuses_unknown_fields_before_anything_is_stored(file: Path) -> None:
    server = ApiServer()

    with pytest.raises(InputError) as caught:
        load(server, read_manifests([file], strict=True))

    assert str(caught.value).splitlines() == remarks(file)
    assert server.store.count("pods") == 0


def test_a_file_without_objects_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("---\n# nothing\n---\n")

    with pytest.raises(InputError, match=r"empty\.yaml: expected objects; got none$"):
        read_manifests([file])


def test_a_document_gives_the_stages_of_pods(tmp_path: Path) -> None:
    path = tmp_path / "stages.json"
    spec = {"selector": {"matchLabels": {"app": "web"}}, "namespaces": ["shop"], "exitCode": 3}
    path.write_text(json.dumps({**STAGES, "spec": {**spec, "imagePullError": "forever"}}))

    (rule,) = read_manifests([path]).stages

    assert rule.stages == PodStages(image_pull_s=math.inf, exit_code=3)
    assert rule.selects("shop", {"app": "web"})
    assert not rule.selects("default", {"app": "web"})
    assert not rule.selects("shop", {"app": "db"})


@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        pytest.param(
            {**STAGES, "spec": {"duration": "soon", "readyAfter": 5}},
            "spec.readyAfter: expected a text; got 5",
            id="a number in the place of a duration",
        ),
        pytest.param(
            {**STAGES, "spec": {"duration": "soon"}},
            'spec.duration: expected a duration such as 90s, 5m or 1h30m; got "soon"',
            id="no duration",
        ),
        pytest.param(
            {**STAGES, "spec": {"exitCode": 256}},
            'spec.exitCode: expected a number from 0 to 255; got "256"',
            id="an exit code out of range",
        ),
        pytest.param(
            {**STAGES, "spec": {"startDelay": "5s", "selektor": {}}},
            "spec.selektor: expected",
            id="an unknown field",
        ),
        pytest.param(
            {
                **STAGES,
                "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            },
            "spec.selector.matchExpressions[0].operator: ",
            id="a selector that cannot be used",
        ),
        pytest.param(
            {**POD, "metadata": {"name": "a", "annotations": {"bayplan.dev/exit-code": "-1"}}},
            "metadata.annotations[bayplan.dev/exit-code]: "
            'expected a number from 0 to 255; got "-1"',
            id="an annotation",
        ),
    ],
)
def test_wrong_stages_are_named(tmp_path: Path, tree: dict[str, object], fault: str) -> None:
    path = tmp_path / "stages.json"
    path.write_text(json.dumps(tree))

    with pytest.raises(InputError) as caught:
        read_manifests([path])

    assert str(caught.value).startswith(f"{path}: document 1: {fault}")


def test_rbac_needs_users() -> None:
    options = UpOptions(https=False, authorization=AuthorizationMode.RBAC)

    with pytest.raises(InputError, match="--authorization: expected allow with --http"):
        make_server(options, None, {}, UpManifests())


def test_items_of_lists_have_the_kind_of_their_list(tmp_path: Path) -> None:
    node, claim = {"metadata": {"name": "n"}}, {"metadata": {"name": "c"}, "kind": "Node"}
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": [node, claim, None]}
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [nodes, POD]}))

    found = read_manifests([path]).objects

    assert [(tree["apiVersion"], tree["kind"], tree["metadata"]["name"]) for _, tree in found] == [
        ("v1", "Node", "n"),
        ("v1", "Node", "c"),
        ("v1", "Pod", "a"),
    ]
    assert found[1][0].endswith("all.json: document 1: items[0]: items[1]")
