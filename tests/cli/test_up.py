"""`bayplan up`: the manifests it begins with."""

import json
from pathlib import Path

import pytest

from bayplan.cli.up import load
from bayplan.cluster.apiserver import ApiServer
from bayplan.errors import InputError

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "dta": {}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelecter": {}},
}


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

    load(server, [file], 0)

    assert capsys.readouterr().err.splitlines() == [f"warning: {text}" for text in remarks(file)]
    assert server.store.count("pods") == 1


def test_strict_refuses_unknown_fields_before_anything_is_stored(file: Path) -> None:
    server = ApiServer()

    with pytest.raises(InputError) as caught:
        load(server, [file], 0, strict=True)

    assert str(caught.value).splitlines() == remarks(file)
    assert server.store.count("pods") == 0
