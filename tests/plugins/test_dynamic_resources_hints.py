from typing import Any

import pytest

from bayplan.framework import Hint
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.testing.builders import ask_plugin, make_handle, make_node, make_object, make_pod

QUEUE, SKIP, NEVER = Hint.QUEUE, Hint.SKIP, None
CLAIM_UPDATE = "resource.k8s.io/ResourceClaim/Update"
CLAIM_ADD = "resource.k8s.io/ResourceClaim/Add"
POD_UPDATE = "UnschedulablePod/UpdatePodGeneratedResourceClaim"

ALLOCATED = {"allocation": {"devices": {"results": [{"driver": "d", "device": "gpu-0"}]}}}
RESERVED = {**ALLOCATED, "reservedFor": [{"resource": "pods", "name": "x", "uid": "x"}]}


def claim(name: str = "mine", owner: str = "", **fields: Any) -> Any:
    """A claim; `owner` is the uid of the pod it was generated for."""
    metadata: dict[str, Any] = {"uid": name, **fields.pop("metadata", {})}
    if owner:
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": owner,
            "controller": True,
        }
        metadata["ownerReferences"] = [reference]
    return make_object("ResourceClaim", name, namespace="default", metadata=metadata, **fields)


def plugin_with(*claims: Any) -> DynamicResources:
    plugin = DynamicResources()
    plugin.handle = make_handle(objects=claims)
    return plugin


def pod_naming(name: str = "mine") -> Any:
    """A pod that names its claim."""
    return make_pod(
        "waiting", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
    )


def pod_from_template(*statuses: dict[str, str], name: str = "waiting") -> Any:
    """A pod whose claim is generated; `statuses` name it."""
    entry = {"name": "gpu", "resourceClaimTemplateName": "template"}
    status = {"resourceClaimStatuses": list(statuses)}
    return make_pod(name, spec={"resourceClaims": [entry]}, status=status)


GENERATED = {"name": "gpu", "resourceClaimName": "mine"}
OWN = claim(owner="default/waiting")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, claim(), QUEUE, id="its claim comes"),
        pytest.param(None, claim("other"), SKIP, id="another claim comes"),
        pytest.param(claim(status=ALLOCATED), claim(), QUEUE, id="its claim is given back"),
        pytest.param(
            claim("other", status=ALLOCATED),
            claim("other"),
            QUEUE,
            id="anyone's claim is given back",
        ),
        pytest.param(claim(), claim(status=ALLOCATED), QUEUE, id="its claim is served"),
        pytest.param(
            claim("other"), claim("other", status=ALLOCATED), SKIP, id="another claim is served"
        ),
        pytest.param(
            claim(status=ALLOCATED), claim(status=RESERVED), QUEUE, id="its claim is reserved"
        ),
        pytest.param(
            claim(), claim(metadata={"labels": {"a": "b"}}), SKIP, id="its claim stands as before"
        ),
        pytest.param(
            claim(status={"reservedFor": []}),
            claim(),
            SKIP,
            id="reserved for no pod, explicitly or not",
        ),
    ],
)
def test_after_claim_change(old: Any, new: Any, expected: Hint) -> None:
    event = CLAIM_ADD if old is None else CLAIM_UPDATE

    assert ask_plugin(plugin_with(claim()), event, pod_naming(), old, new) is expected


@pytest.mark.parametrize(
    ("pod", "claims", "expected"),
    [
        pytest.param(pod_naming(), [claim()], QUEUE, id="all there"),
        pytest.param(pod_naming("missing"), [claim()], SKIP, id="its own claim is not there"),
        pytest.param(
            pod_naming(),
            [claim(metadata={"deletionTimestamp": "2025-01-01T00:00:00Z"})],
            SKIP,
            id="its own claim is being deleted",
        ),
        pytest.param(pod_from_template(), [OWN], SKIP, id="none was generated yet"),
        pytest.param(pod_from_template(GENERATED), [OWN], QUEUE, id="generated for the pod"),
        pytest.param(
            pod_from_template(GENERATED),
            [claim()],
            SKIP,
            id="a claim of that name without an owner",
        ),
        pytest.param(
            pod_from_template(GENERATED), [claim(owner="x")], SKIP, id="generated for another pod"
        ),
        pytest.param(pod_from_template({"name": "gpu"}), [], QUEUE, id="none is needed"),
        pytest.param(
            pod_from_template({"name": "x"}), [], SKIP, id="the status is of another entry"
        ),
        pytest.param(make_pod("waiting"), [], QUEUE, id="a pod without claims"),
        pytest.param(
            make_pod("waiting", spec={"resourceClaims": [{"name": "gpu"}]}),
            [],
            SKIP,
            id="an entry that names nothing",
        ),
    ],
)
def test_nothing_helps_until_its_claims_are_there(
    pod: Any, claims: list[Any], expected: Hint
) -> None:
    given_back = claim("other", status=ALLOCATED), claim("other")

    assert ask_plugin(plugin_with(*claims), CLAIM_UPDATE, pod, *given_back) is expected
    assert ask_plugin(plugin_with(*claims), POD_UPDATE, pod, pod, pod) is expected


def test_claims_generated_for_another_pod_do_not_help() -> None:
    waiting = pod_from_template(GENERATED)
    other = pod_from_template(GENERATED, name="other")

    assert ask_plugin(plugin_with(OWN), POD_UPDATE, waiting, other, other) is SKIP


def test_the_pod_as_it_is_now_is_asked_for_its_claims() -> None:
    before, after = pod_from_template(), pod_from_template(GENERATED)

    assert ask_plugin(plugin_with(OWN), POD_UPDATE, before, before, after) is QUEUE


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param("Node/Add", QUEUE, id="a node"),
        pytest.param("Node/UpdateNodeAllocatable", QUEUE, id="its resources"),
        pytest.param("Node/UpdateNodeCondition", NEVER, id="not its conditions"),
        pytest.param("resource.k8s.io/DeviceClass/Update", QUEUE, id="a class"),
        pytest.param("resource.k8s.io/ResourceSlice/Add", QUEUE, id="devices"),
        pytest.param("resource.k8s.io/ResourceSlice/Delete", NEVER, id="not fewer devices"),
    ],
)
def test_events_without_a_hint(event: str, expected: Hint | None) -> None:
    assert ask_plugin(plugin_with(), event, make_pod(), None, make_node()) is expected
