import pytest

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_UPDATE,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    WILDCARD,
    ActionType,
    ClusterEvent,
    Hint,
    default_events,
    required,
    wait_for,
)
from bayplan.releases.feature_gates import FeatureGates
from bayplan.testing.builders import make_node, make_pod


def event(text: str) -> ClusterEvent:
    """`Node/Add|UpdateNodeLabel` as an event."""
    resource, _, action = text.rpartition("/")
    return ClusterEvent(resource, ActionType.parse(action))


@pytest.mark.parametrize(
    ("pattern", "incoming", "matches"),
    [
        pytest.param("Node/Add", "Node/Add", True, id="the same"),
        pytest.param("Node/Add|Delete", "Node/Delete", True, id="one of two actions"),
        pytest.param("Node/Add", "Node/Delete", False, id="another action"),
        pytest.param("Node/Add", "PersistentVolume/Add", False, id="another resource"),
        pytest.param("*/Add", "Node/Add", True, id="any resource, that action"),
        pytest.param("*/Add", "Node/Delete", False, id="any resource, another action"),
        pytest.param("*/All", "Node/UpdateNodeTaint", True, id="anything"),
        pytest.param("Pod/Add", "AssignedPod/Add", True, id="Pod means pods on nodes"),
        pytest.param("Pod/Add", "UnschedulablePod/Add", True, id="Pod means waiting pods"),
        pytest.param("AssignedPod/Add", "Pod/Add", False, id="pods on nodes are not all pods"),
        pytest.param("Node/Update", "Node/UpdateNodeLabel", True, id="Update covers the specific"),
        pytest.param("Node/UpdateNodeLabel", "Node/Update", False, id="specific is not Update"),
        pytest.param("Pod/Add|Update", "AssignedPod/Update", True, id="Update covers itself"),
        pytest.param(
            "Pod/Add|Delete|UpdatePodLabel",
            "UnschedulablePod/Update",
            False,
            id="a general update matches no list of specific actions, though bits are shared",
        ),
        pytest.param("Node/Add", "*/All", False, id="a wildcard that happens matches no pattern"),
        pytest.param("Node/All", "*/All", False, id="not even all actions of a resource"),
        pytest.param("*/All", "*/All", True, id="but the wildcard pattern"),
    ],
)
def test_matches(pattern: str, incoming: str, matches: bool) -> None:
    assert event(pattern).matches(event(incoming)) is matches


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Add", id="one"),
        pytest.param("Add|Delete|UpdatePodLabel", id="several, in order of their bits"),
        pytest.param("Update", id="every update"),
        pytest.param("Add|Update", id="every update and another"),
        pytest.param("All", id="all"),
    ],
)
def test_action_text_can_be_read_back(text: str) -> None:
    assert ActionType.parse(text).text == text


def test_actions_are_written_in_order_of_their_bits() -> None:
    assert ActionType.parse("UpdateNodeTaint|Add|UpdateNodeLabel").text == (
        "Add|UpdateNodeLabel|UpdateNodeTaint"
    )


def test_unknown_action_is_refused() -> None:
    with pytest.raises(InputError, match="expected names joined by"):
        ActionType.parse("Add|Change")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param(event("Node/Add"), "NodeAdd", id="resource and action"),
        pytest.param(
            event("storage.k8s.io/CSINode/Update"), "storage.k8s.io/CSINodeUpdate", id="group"
        ),
        pytest.param(ASSIGNED_POD_ADD, "AssignedPodAdd", id="pod on a node"),
        pytest.param(ASSIGNED_POD_UPDATE, "AssignedPodUpdate", id="pod on a node changed"),
        pytest.param(
            event("UnschedulablePod/Delete"),
            "UnschedulablePodDelete",
            id="waiting pod",
        ),
        pytest.param(FORCE_ACTIVATE, "ForceActivate", id="label instead of a wildcard"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout", id="label of the timeout"),
    ],
)
def test_text_for_logs_and_metrics(given: ClusterEvent, text: str) -> None:
    assert str(given) == text


def test_wildcard_is_any_resource_and_any_action() -> None:
    assert FORCE_ACTIVATE.is_wildcard
    assert not ClusterEvent(WILDCARD, ActionType.Add).is_wildcard
    assert not ClusterEvent("Node", ActionType.All).is_wildcard


def test_default_events_leave_out_what_upstream_leaves_out() -> None:
    resources = [e.event.resource for e in default_events()]

    assert "storage.k8s.io/VolumeAttachment" not in resources
    assert "resource.k8s.io/ResourceSlice" not in resources
    assert "scheduling.k8s.io/PodGroup" not in resources
    assert all(e.event.action == ActionType.All and e.hint is None for e in default_events())


def test_default_events_have_pod_groups_when_there_are_some() -> None:
    resources = [e.event.resource for e in default_events(FeatureGates({"GenericWorkload": True}))]

    assert "scheduling.k8s.io/PodGroup" in resources


def test_object_of_another_kind_is_refused() -> None:
    after_pod = wait_for("Pod", ActionType.All, helps=lambda pod, before, after: True).hint
    assert after_pod is not None

    assert after_pod(make_pod(), None, make_pod()) is Hint.QUEUE
    with pytest.raises(InputError, match="expected Pod; got Node"):
        after_pod(make_pod(), make_node(), None)
    with pytest.raises(InputError, match="expected Pod; got Node"):
        required(Pod, make_node())


@pytest.mark.parametrize(
    ("action", "needs_old", "needs_new"),
    [("Add|Update", False, True), ("Delete", True, False), ("Add|Delete", False, False)],
)
def test_absent_object_is_refused_only_where_one_must_be(
    action: str, needs_old: bool, needs_new: bool
) -> None:
    node, actions = make_node(), ActionType.parse(action)
    hint = wait_for("Node", actions, helps=lambda pod, before, after: False).hint
    assert hint is not None

    for old, new, is_refused in ((None, node, needs_old), (node, None, needs_new)):
        if not is_refused:
            assert hint(make_pod(), old, new) is Hint.SKIP
            continue
        with pytest.raises(InputError, match="expected Node; got none"):
            hint(make_pod(), old, new)


def test_required_object() -> None:
    pod = make_pod()

    assert required(Pod, pod) is pod
    with pytest.raises(InputError, match="expected Node; got none"):
        required(Node, None)
