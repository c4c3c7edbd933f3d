"""Custom resources: the embedded server answers as kube-apiserver v1.36.4 did, for objects and for definitions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.api_server import ServerInThread, api_server
from tests.rig.live.custom_cases import CustomCases

HERE = Path(__file__).parent
CASES = CustomCases(HERE / "custom_cases.yaml")
ANSWERS = json.loads((HERE / "custom_answers.json").read_text())


@pytest.fixture(scope="module")
def server() -> Iterator[ServerInThread]:
    with api_server() as running:
        CASES.prepare(running)
        yield running


def test_all_cases_have_an_answer() -> None:
    assert sorted(ANSWERS) == sorted(CASES.names)


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in CASES.names])
def test_answers_are_those_of_kube_apiserver(server: ServerInThread, name: str) -> None:
    assert CASES.run(server, name) == ANSWERS[name]
