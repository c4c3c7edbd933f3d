"""Custom resources in the API: the recorded answers are those of a real kube-apiserver."""

import json
from pathlib import Path

from tests.rig.live.control_plane import real_client
from tests.rig.live.custom_cases import CustomCases
from tests.rig.live.wrong_objects import answer_of

DATA = Path(__file__).resolve().parents[1] / "apiserver" / "registry"


def test_recorded_answers_are_those_of_kube_apiserver(tmp_path: Path) -> None:
    """To record anew, write its result to custom_answers.json."""
    with real_client(tmp_path) as client:
        cases = CustomCases(DATA / "custom_cases.yaml")
        cases.prepare(client)
        found = {name: cases.run(client, name) for name in cases.names}

    assert found == json.loads((DATA / "custom_answers.json").read_text())


def test_recorded_answers_to_wrong_objects_are_those_of_kube_apiserver(tmp_path: Path) -> None:
    """To record anew, write its result to wrong_objects.json."""
    cases = json.loads((DATA / "wrong_objects.json").read_text())
    with real_client(tmp_path) as client:
        found = [{**case, "answer": answer_of(client, case["object"])} for case in cases]

    assert found == cases
