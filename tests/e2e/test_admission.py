"""Admission in the API: the recorded answers are those of a real kube-apiserver."""

import json
import re
from pathlib import Path
from typing import Any

from tests.rig.live.api_cases import prepare_server, read_cases, run_case
from tests.rig.live.control_plane import real_client

DATA = Path(__file__).resolve().parents[1] / "apiserver" / "registry"


def test_recorded_answers_are_those_of_kube_apiserver(tmp_path: Path) -> None:
    """To record anew, write its result to admission_answers.json."""
    with real_client(tmp_path) as client:
        prepare_server(client)
        cases = read_cases(DATA / "admission_cases.yaml")
        found = {case.name: run_case(client, case) for case in cases}

    recorded = json.loads((DATA / "admission_answers.json").read_text())
    assert in_any_order(found) == in_any_order(recorded)


def in_any_order(answers: dict[str, Any]) -> dict[str, Any]:
    """The answers, where several problems of one object, which Go keeps in a map, have no order."""
    return {
        name: {**answer, "message": sorted(re.split(r", |\[|\]", answer.get("message", "")))}
        for name, answer in answers.items()
    }
