"""Kinds that a dump lacks are named where an answer depends on them; so are autoscalers that set replicas."""

from typing import Any

import pytest

from bayplan.answers.what_if import Apply, Drain, Scale, ask_what_if
from bayplan.api.wire.decode import decode_object
from bayplan.testing.builders import make_node

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1"}


def stored(kind: str, name: str, version: str = "v1", **fields: Any) -> Any:
    """An object that an API server stored."""
    metadata = {"name": name, "uid": f"{kind}-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    metadata |= fields.pop("metadata", {})
    return decode_object({"apiVersion": version, "kind": kind, "metadata": metadata, **fields})


def pod(**spec: Any) -> Any:
    container = {"name": "c", "image": "c"}
    owned = {"ownerReferences": [{**OWNER, "controller": True}]}
    spec = {"nodeName": "a", "containers": [container], **spec}
    return stored("Pod", "web", metadata=owned, spec=spec)


BUDGET = stored("PodDisruptionBudget", "web", "policy/v1", spec={"selector": {}})
CLAIMED = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        pytest.param([pod()], ["no PodDisruptionBudgets"], id="no budgets"),
        pytest.param([pod(**CLAIMED), BUDGET], ["1 pod uses a claim"], id="no claims"),
        pytest.param([pod(), BUDGET], [], id="there is one"),
        pytest.param([pod(**CLAIMED), stored("Namespace", "default")], [], id="a whole cluster"),
    ],
)
def test_a_drain_names_the_gaps_of_a_dump(objects: list[Any], words: list[str]) -> None:
    answer = ask_what_if([make_node("a"), make_node("b"), *objects], [Drain(("a",))])

    assert len(answer.notes) == len(words)
    assert all(word in note for word, note in zip(words, answer.notes, strict=True))


@pytest.mark.parametrize("is_applied", [False, True], ids=["scale", "apply"])
def test_the_autoscaler_of_a_workload_is_named(is_applied: bool) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    web = stored("Deployment", "web", "apps/v1", spec={"replicas": 1, **spec})
    target = {"kind": "Deployment", "name": "web"}
    limits = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5}
    scaler = stored("HorizontalPodAutoscaler", "hpa", "autoscaling/v2", spec=limits)
    more = stored("Deployment", "web", "apps/v1", spec={"replicas": 4, **spec})
    change: Any = Apply((more,)) if is_applied else Scale("deployment/web", 4)

    answer = ask_what_if([make_node("a"), web, scaler], [change])

    assert "horizontalpodautoscaler/default/hpa sets the number of pods" in answer.notes[0]
    assert "(2 to 5)" in answer.notes[0]
