"""Apply: the steps that follow `kubectl apply` of a new version."""

import json
from typing import Any

import pytest

from bayplan.answers.what_if import Apply, WhatIfAnswer, ask_what_if
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.placement_fields import LAST_APPLIED, clipped_tree
from bayplan.api.wire.sourced import keeping_documents
from bayplan.api.wire.whole import apply_patch
from bayplan.manifests.overlay import patch_of
from bayplan.testing.builders import make_node
from tests.rig.objects import decoded

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
    objects = [*cluster, *more, decoded(old or deployment())]
    return ask_what_if(objects, [Apply((decoded(new),))])


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


def applied(there: dict[str, Any], new: dict[str, Any], last: Any = None) -> Any:
    """The object after kubectl apply, and the known state of its template."""
    if last is not None:
        noted = {"annotations": {LAST_APPLIED: json.dumps(last)}}
        there = {**there, "metadata": {**there["metadata"], **noted}}
    stored: Any = decode_object(there)
    with keeping_documents() as documents:
        given: Any = decode_object(new)
    patch, is_new = patch_of(stored, given, documents.of(given))
    return apply_patch(stored, patch), is_new


def test_fields_that_the_last_applied_manifest_had_are_removed() -> None:
    old = deployment(pod={"nodeSelector": {"disk": "ssd", "zone": "a"}})
    there = deployment(pod={"nodeSelector": {"disk": "ssd", "zone": "a", "added": "x"}})

    now, is_new = applied(there, deployment(pod={"nodeSelector": {"zone": "a"}}), old)

    assert now.spec.template.spec.node_selector == {"zone": "a", "added": "x"}
    assert is_new


def test_values_that_are_defaults_override() -> None:
    now, _ = applied(deployment(paused=True, replicas=3), deployment(paused=False, replicas=1))

    assert (now.spec.paused, now.replicas) == (False, 1)


def test_containers_are_merged_by_name() -> None:
    there, new = deployment(), deployment(cpu="2")
    injected = {"name": "proxy", "image": "proxy:1", "resources": {"requests": {"cpu": "100m"}}}
    there["spec"]["template"]["spec"]["containers"].insert(0, injected)

    now, is_new = applied(there, new)

    names = [container.name for container in now.spec.template.spec.containers]
    assert names == ["proxy", "c"]
    assert now.spec.template.spec.requests["cpu"] == 2100
    assert is_new is None, "there is no record of the manifest that was applied"


def test_another_strategy_replaces_the_limits_of_the_former() -> None:
    limits = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}
    now, _ = applied(deployment(strategy=limits), deployment(strategy={"type": "Recreate"}))

    assert (now.spec.strategy.type, now.spec.strategy.rolling_update) == ("Recreate", None)


@pytest.mark.parametrize(
    ("has_record", "updated", "notes"),
    [
        pytest.param(True, 3, 1, id="it rolls out"),
        pytest.param(False, 0, 1, id="whether it does is unknown"),
    ],
)
def test_a_change_of_fields_that_do_not_affect_placement(
    has_record: bool, updated: int, notes: int
) -> None:
    old, new = deployment(), deployment()
    new["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    if has_record:
        old["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(deployment())}
    with keeping_documents() as documents:
        given: Any = decode_object(new)
    cluster = [make_node(f"n{i}", cpu="4") for i in range(2)]
    stored: Any = decode_object(old)

    answer = ask_what_if([*cluster, stored], [Apply((given,), documents)])

    assert sum(course.updated for course in answer.rollouts) == updated
    assert len(answer.notes) == notes


def test_a_snapshot_has_the_record_without_private_fields() -> None:
    last = deployment(pod={"nodeSelector": {"disk": "ssd"}})
    last["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "secret"}]
    noted = {"annotations": {LAST_APPLIED: json.dumps(last)}}
    stored: Any = decode_object(deployment(pod={"nodeSelector": {"disk": "ssd"}}, metadata=noted))

    kept = clipped_tree(stored)
    new = deployment()
    new["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "other"}]

    assert "secret" not in json.dumps(kept)
    assert applied(kept, last)[1] is False, "the version is the same"
    now, is_new = applied(kept, new)
    assert (now.spec.template.spec.node_selector or {}, is_new) == ({}, True)


def test_a_workload_with_a_generated_name_is_added() -> None:
    new = decoded(deployment(2, metadata={"name": "", "generateName": "web-", "uid": ""}))

    answer = ask_what_if([make_node("n", cpu="4")], [Apply((new,))])

    assert [pod.name[:4] for pod in answer.pods] == ["web-"] * 2


def rollout(replicas: int = 2) -> dict[str, Any]:
    tree = deployment(replicas, metadata={"uid": ""})
    return {**tree, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}


def owned_by_rollout(tree: dict[str, Any], name: str) -> Any:
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": "r"}
    owners = [{**owner, "controller": True}]
    metadata = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners}
    return decoded({**tree, "metadata": metadata})


def test_a_new_custom_workload_has_its_pods_and_a_note() -> None:
    answer = ask_what_if([make_node("n", cpu="4")], [Apply((decoded(rollout()),))])

    assert len(answer.pods) == 2
    assert answer.notes == [
        "Rollout.argoproj.io shop/web: 2 pods, made by a ReplicaSet in its place"
    ]


@pytest.mark.parametrize(
    "there",
    [
        pytest.param([decoded(rollout())], id="with a replica set in its place"),
        pytest.param(
            [owned_by_rollout({**deployment(2), "kind": "ReplicaSet"}, "web-1")],
            id="with the replica set of its controller",
        ),
        pytest.param(
            [
                decoded(rollout()),
                owned_by_rollout({**deployment(2), "kind": "ReplicaSet"}, "web-1"),
            ],
            id="with both",
        ),
        pytest.param(
            [
                owned_by_rollout(
                    {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c"}]}},
                    "web-1",
                )
            ],
            id="with pods of its own",
        ),
    ],
)
def test_a_custom_workload_that_exists_stays_as_it_is_with_a_note(there: list[Any]) -> None:
    answer = ask_what_if([make_node("n", cpu="8"), *there], [Apply((decoded(rollout(5)),))])

    assert answer.pods == []
    (note,) = answer.notes
    assert note.startswith("Rollout.argoproj.io shop/web exists already: its pods stay")


def test_remarks_on_applied_objects_are_notes() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    metadata = {"name": "data", "namespace": "shop"}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    applied = (
        decoded({**head, "metadata": metadata, "spec": {**claim, "storageClassName": "fast"}}),
        decoded(deployment(1, pod={"volumes": [volume]}, metadata={"uid": ""})),
    )

    answer = ask_what_if([make_node("n", cpu="4")], [Apply(applied)])

    assert 'StorageClass "fast" does not exist; claim shop/data names it' in answer.notes
