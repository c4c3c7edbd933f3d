"""Limit ranges, quotas and immutable fields: the embedded server answers as kube-apiserver v1.36.4 did."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.api_server import ServerInThread, api_server
from tests.rig.live.api_cases import ApiCase, prepare_server, read_cases, run_case

HERE = Path(__file__).parent
CASES = read_cases(HERE / "admission_cases.yaml")
ANSWERS = json.loads((HERE / "admission_answers.json").read_text())


@pytest.fixture(scope="module")
def server() -> Iterator[ServerInThread]:
    with api_server() as running:
        prepare_server(running)
        yield running


def test_all_cases_have_an_answer() -> None:
    assert sorted(ANSWERS) == sorted(case.name for case in CASES)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_answers_are_those_of_kube_apiserver(server: ServerInThread, case: ApiCase) -> None:
    assert run_case(server, case) == ANSWERS[case.name]
