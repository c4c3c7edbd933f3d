"""Apply: what `kubectl apply` of a new version leads to, step by step."""

import json
from typing import Any

import pytest

from bayplan.answers.what_if import Apply, WhatIfAnswer, ask_what_if
from bayplan.api.wire.decode import decode_object
from bayplan.manifests.overlay import LAST_APPLIED, patch_of
from bayplan.testing.builders import make_node

LABELS = {"app": "web"}


def deployment(replicas: int = 3, cpu: str = "1", **fields: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    template["spec"] |= fields.pop("pod", {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1"} | fields.pop("metadata", {}),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": template,
            **fields,
        },
    }


def apply(new: dict[str, Any], *more: Any, nodes: int = 3, old: Any = None) -> WhatIfAnswer:
    cluster = [make_node(f"n{i}", cpu="2") for i in range(nodes)]
    objects = [*cluster, *more, decode_object(old or deployment())]
    change: Any = Apply((decode_object(new),))
    return ask_what_if(objects, [change])


def quota(cpu: str) -> Any:
    metadata = {"name": "q", "namespace": "shop", "uid": "q"}
    spec = {"hard": {"requests.cpu": cpu}}
    return decode_object(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}
    )


def test_a_new_version_rolls_out_in_steps() -> None:
    answer = apply(deployment(cpu="900m"))

    (course,) = answer.rollouts
    assert (course.workload, course.updated, course.wanted, course.left) == (
        "deployment/shop/web",
        3,
        3,
        0,
    )
    assert len(course.steps) > 1, "the surge is one pod"
    assert sum(step.created for step in course.steps) == 3
    assert sum(step.deleted for step in course.steps) == 3
    assert not answer.is_worse
    assert answer.to_dict()["rollouts"][0]["stalls"] == []


@pytest.mark.parametrize(
    ("new", "more", "cause", "left"),
    [
        pytest.param(deployment(cpu="3"), [], "3 Insufficient cpu", 3, id="too large"),
        pytest.param(
            deployment(pod={"nodeSelector": {"disk": "ssd"}}),
            [],
            "3 node(s) didn't match Pod's node affinity/selector",
            3,
            id="no such node",
        ),
        pytest.param(
            deployment(cpu="900m"), [quota("3")], "exceeded quota: q", 3, id="over the quota"
        ),
    ],
)
def test_a_roll_out_that_stalls_names_the_reason(
    new: dict[str, Any], more: list[Any], cause: str, left: int
) -> None:
    answer = apply(new, *more)

    (course,) = answer.rollouts
    assert (course.updated, course.left) == (0, left)
    assert cause in course.stalls[0].cause
    assert answer.is_worse


def test_more_replicas_go_to_the_old_version_before_it_rolls_out() -> None:
    answer = apply(deployment(6, "600m"), old=deployment(2, "500m"), nodes=4)

    (course,) = answer.rollouts
    assert (course.updated, course.left, course.stalls) == (6, 0, [])
    assert course.steps[0].created == 4, "of the former version"
    assert sum(step.created for step in course.steps) == 10


def test_only_more_replicas_delete_no_pod() -> None:
    answer = apply(deployment(5))

    (course,) = answer.rollouts
    assert (course.updated, sum(step.deleted for step in course.steps)) == (5, 0)


def test_an_unchanged_manifest_does_nothing() -> None:
    answer = apply(deployment())

    assert (answer.rollouts, answer.pods, answer.is_worse) == ([], [], False)


def test_fields_that_the_last_applied_manifest_had_are_removed() -> None:
    last = deployment(pod={"nodeSelector": {"disk": "ssd"}})
    noted = {"annotations": {LAST_APPLIED: json.dumps(last)}}
    there: Any = decode_object(deployment(pod={"nodeSelector": {"disk": "ssd"}}, metadata=noted))

    patch = patch_of(there, decode_object(deployment()))  # type: ignore[arg-type]

    assert patch["spec"]["template"]["spec"]["nodeSelector"] is None
    assert "status" not in patch
