"""Objects with faults: the embedded server and the reader of manifests answer as kube-apiserver v1.36.4 did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.rules.object_validation import creation_causes
from bayplan.api.schema.input_check import WrongTypeError
from tests.rig.api_server import ServerInThread, api_server
from tests.rig.live.wrong_objects import answer_of

CASES = json.loads((Path(__file__).parent / "wrong_objects.json").read_text())
KINDS = sorted({case["object"]["kind"] for case in CASES})
BY_CLUSTER = frozenset(
    (
        *(
            "a node port out of the range",
            "a negative node port",
            "a runtime class that does not exist",
        ),
        *("a priority class that does not exist", "an overhead without a runtime class"),
        "an unknown field",
    )
)
"""Faults that only a server with its cluster finds, or that another check of manifests does."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerInThread]:
    with api_server() as running:
        yield running


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_kube_apiserver(server: ServerInThread, kind: str) -> None:
    if kind == "ResourceClaim":
        pytest.importorskip("cel_expr_python")
    cases = [case for case in CASES if case["object"]["kind"] == kind]
    answers = {case["case"]: answer_of(server, case["object"]) for case in cases}

    assert answers == {case["case"]: case["answer"] for case in cases}


def faults_in(tree: Any) -> list[str]:
    try:
        causes = creation_causes(tree["apiVersion"], tree["kind"], tree)
    except WrongTypeError as error:
        return [str(error)]
    return sorted(f"{cause.field}: {cause.message}" for cause in causes)


def test_manifests_are_refused_for_the_same_reasons() -> None:
    pytest.importorskip("cel_expr_python")
    found, wanted = {}, {}
    for case in CASES:
        if case["case"] in BY_CLUSTER or case["answer"]["code"] == 400:
            continue
        causes = case["answer"]["causes"]
        wanted[case["case"]] = sorted(f"{c.get('field', '')}: {c['message']}" for c in causes)
        found[case["case"]] = faults_in(case["object"])

    assert found == wanted


def test_values_that_cannot_be_decoded_are_refused_in_manifests_too() -> None:
    cases = [c for c in CASES if c["answer"]["code"] == 400 and c["case"] not in BY_CLUSTER]

    assert len(cases) > 4
    assert [case["case"] for case in cases if not faults_in(case["object"])] == []
