"""Patches: only differences are sent, with their precondition."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bayplan.api.meta import ObjectMeta
from bayplan.api.pod import Pod, PodCondition, PodStatus
from bayplan.api.storage import PersistentVolumeClaim
from bayplan.api.wire.decode import decode_object
from bayplan.kube.pod_statuses import object_patch, status_patch

NOW = "2026-01-01T00:00:00Z"
REFUSED = PodCondition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message="no room",
    observed_generation=2,
)
BOUND = PodCondition(type="PodScheduled", status="True")


def pod(*conditions: PodCondition, nominated: str = "") -> Pod:
    status = PodStatus(conditions=conditions or None, nominated_node_name=nominated)
    return Pod("p", uid="u", status=status)


def read(patch: bytes | None) -> Any:
    return None if patch is None else msgspec.json.decode(patch)["status"]


@pytest.mark.parametrize(
    ("old", "condition", "nominated", "expected"),
    [
        pytest.param(pod(REFUSED), REFUSED, None, None, id="the same condition"),
        pytest.param(pod(nominated="n"), None, "n", None, id="the same nomination"),
        pytest.param(pod(), None, "", None, id="no nomination to clear"),
        pytest.param(
            pod(nominated="n"), None, "", {"nominatedNodeName": None}, id="a nomination ends"
        ),
        pytest.param(pod(), None, "n", {"nominatedNodeName": "n"}, id="a nomination"),
    ],
)
def test_status_patch_has_only_differences(
    old: Pod, condition: PodCondition | None, nominated: str | None, expected: Any
) -> None:
    assert read(status_patch(old, condition, nominated, NOW)) == expected


@pytest.mark.parametrize(
    ("old", "moves"),
    [
        pytest.param(pod(), True, id="a new condition"),
        pytest.param(pod(BOUND), True, id="another status"),
        pytest.param(pod(replace(REFUSED, message="other")), False, id="another message only"),
    ],
)
def test_time_of_a_condition_moves_with_its_status(old: Pod, moves: bool) -> None:
    (condition,) = read(status_patch(old, REFUSED, None, NOW))["conditions"]

    assert condition.pop("lastTransitionTime", None) == (NOW if moves else None)
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "lastProbeTime": None,
        "observedGeneration": 2,
    }


def test_object_patch_has_differences_and_the_base_version() -> None:
    meta = ObjectMeta(
        name="c", namespace="n", uid="u", resource_version="7", annotations={"a": "1", "b": "2"}
    )
    old = PersistentVolumeClaim(metadata=meta)
    new = replace(old, metadata=replace(meta, annotations={"a": "1", "c": "3"}))

    patch = msgspec.json.decode(object_patch(old, new))

    assert patch == {
        "metadata": {"uid": "u", "resourceVersion": "7", "annotations": {"b": None, "c": "3"}}
    }


def test_patch_of_a_pod_is_based_on_no_version() -> None:
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "5"},
    }
    old: Any = decode_object(tree)
    new = old.with_status(replace(old.status, nominated_node_name="n"))

    patch = msgspec.json.decode(object_patch(old, new))

    assert patch == {"metadata": {"uid": "u"}, "status": {"nominatedNodeName": "n"}}
