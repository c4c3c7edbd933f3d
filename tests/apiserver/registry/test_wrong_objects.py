"""Objects with faults: the embedded server answers as kube-apiserver v1.36.4 did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.api_server import ServerInThread, api_server
from tests.rig.live.wrong_objects import answer_of

CASES = json.loads((Path(__file__).parent / "wrong_objects.json").read_text())


@pytest.fixture(scope="module")
def server() -> Iterator[ServerInThread]:
    with api_server() as running:
        yield running


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_answers_are_those_of_kube_apiserver(server: ServerInThread, case: Any) -> None:
    assert answer_of(server, case["object"]) == case["answer"]
