"""Custom resources in the API: the recorded answers are those of a real kube-apiserver."""

import json
from pathlib import Path

import pytest

from tests.rig.live.client import LiveClient
from tests.rig.live.control_plane import LiveControlPlane, assets_folder, missing_assets
from tests.rig.live.custom_cases import CustomCases
from tests.rig.live.wrong_objects import answer_of

DATA = Path(__file__).resolve().parents[1] / "apiserver" / "registry"


def test_recorded_answers_are_those_of_kube_apiserver(tmp_path: Path) -> None:
    """To record anew, write its result to custom_answers.json."""
    if missing_assets():
        missing = ", ".join(missing_assets())
        pytest.skip(f"NOT RUN against a real kube-apiserver: no {missing} in {assets_folder()}")
    plane = LiveControlPlane(tmp_path)
    try:
        client = LiveClient(plane.kubeconfig)
        cases = CustomCases(DATA / "custom_cases.yaml")
        cases.prepare(client)
        found = {name: cases.run(client, name) for name in cases.names}
    finally:
        plane.stop()

    assert found == json.loads((DATA / "custom_answers.json").read_text())


def test_recorded_answers_to_wrong_objects_are_those_of_kube_apiserver(tmp_path: Path) -> None:
    """To record anew, write its result to wrong_objects.json."""
    if missing_assets():
        missing = ", ".join(missing_assets())
        pytest.skip(f"NOT RUN against a real kube-apiserver: no {missing} in {assets_folder()}")
    cases = json.loads((DATA / "wrong_objects.json").read_text())
    plane = LiveControlPlane(tmp_path)
    try:
        client = LiveClient(plane.kubeconfig)
        found = [{**case, "answer": answer_of(client, case["object"])} for case in cases]
    finally:
        plane.stop()

    assert found == cases
