"""Workloads, PodGroups and their members: the embedded server answers as kube-apiserver v1.36.4 did."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.api_server import ServerInThread, api_server
from tests.rig.live.api_cases import GATE_SETS, ApiCase, prepare_server, read_cases, run_case

HERE = Path(__file__).parent
CASES = read_cases(HERE / "pod_group_cases.yaml")
ANSWERS = json.loads((HERE / "pod_group_answers.json").read_text())


@pytest.fixture(scope="module", params=list(GATE_SETS))
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, ServerInThread]]:
    with api_server(gates=dict.fromkeys(GATE_SETS[request.param], True)) as server:
        prepare_server(server)
        yield request.param, server


def test_all_cases_have_an_answer() -> None:
    assert sorted(ANSWERS) == sorted(case.name for case in CASES)


@pytest.mark.parametrize(
    ("server", "case"),
    [pytest.param(case.gates, case, id=case.name) for case in CASES],
    indirect=["server"],
)
def test_answers_are_those_of_kube_apiserver(
    server: tuple[str, ServerInThread], case: ApiCase
) -> None:
    assert run_case(server[1], case) == ANSWERS[case.name]
