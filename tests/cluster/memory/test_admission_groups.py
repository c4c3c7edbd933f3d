"""Workloads and PodGroups in the memory cluster: defaults, dropped fields, refusals, statuses."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.pod_groups import PodGroup, PodGroupCondition, PodGroupStatus
from bayplan.api.wire.encode import to_dict
from bayplan.cluster.memory.admission import AdmissionError
from bayplan.cluster.memory.admission_defaults import admit_groups
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.errors import ConflictError, NotFoundError
from bayplan.testing.builders import make_object

ALL = {
    "GenericWorkload": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
    "DRAWorkloadResourceClaims": True,
}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
EVERYTHING = {
    **BASIC,
    "schedulingConstraints": {"topology": [{"key": "zone"}]},
    "resourceClaims": [{"name": "a", "resourceClaimName": "b"}],
    "disruptionMode": "PodGroup",
    "priorityClassName": "high",
    "priority": 1000,
}


def make_group(**spec: Any) -> Any:
    return make_object("PodGroup", "g", namespace="default", spec=spec)


def make_cluster(**default: Any) -> MemoryCluster:
    cluster = MemoryCluster()
    cluster.add(make_object("PriorityClass", "high", value=1000, **default))
    return cluster


def spec_of(obj: Any) -> dict[str, Any]:
    spec: dict[str, Any] = to_dict(obj)["spec"]
    return spec


@pytest.mark.parametrize(
    ("spec", "stored"),
    [
        pytest.param(BASIC, {"disruptionMode": "Pod", "priority": 0}, id="defaults"),
        pytest.param(
            {"priorityClassName": "high", **BASIC},
            {"disruptionMode": "Pod", "priority": 1000, "priorityClassName": "high"},
            id="the priority of its class",
        ),
        pytest.param(
            {"priorityClassName": "gone", "priority": 7, **BASIC},
            {"disruptionMode": "Pod", "priority": 7, "priorityClassName": "gone"},
            id="a priority that it has",
        ),
        pytest.param(EVERYTHING, {k: v for k, v in EVERYTHING.items() if k not in BASIC}, id="all"),
    ],
)
def test_groups_have_the_defaults_of_the_api_server(
    spec: dict[str, Any], stored: dict[str, Any]
) -> None:
    admitted = admit_groups(make_group(**spec), make_cluster(), ALL)

    assert spec_of(admitted) == {**BASIC, **stored}


def test_a_group_without_a_class_has_the_default_class() -> None:
    admitted = admit_groups(make_group(**BASIC), make_cluster(globalDefault=True), ALL)

    assert admitted.spec.priority == 1000
    assert admitted.spec.priority_class_name == "high"


def test_fields_of_gates_that_are_off_are_dropped() -> None:
    template = {**EVERYTHING, "name": "t"}
    workload = make_object("Workload", "w", namespace="d", spec={"podGroupTemplates": [template]})

    group = admit_groups(make_group(**EVERYTHING), make_cluster(), {})
    stored = admit_groups(workload, make_cluster(), {})

    assert spec_of(group) == BASIC
    assert spec_of(stored) == {"podGroupTemplates": [{**BASIC, "name": "t"}]}
    assert spec_of(admit_groups(workload, make_cluster(), ALL)) == spec_of(workload)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "podgroup default/g: spec.schedulingPolicy.gang.minCount: Required value",
            id="a gang of none",
        ),
        pytest.param(
            {**BASIC, "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "podgroup default/g: spec.schedulingConstraints.topology:"
            " Too many: 2: must have at most 1 item",
            id="two constraints",
        ),
        pytest.param(
            {},
            "podgroup default/g: spec.schedulingPolicy:"
            ' Invalid value: "": must specify one of: `basic`, `gang`',
            id="no policy",
        ),
        pytest.param(
            {**BASIC, "priorityClassName": "none"},
            "podgroup default/g: spec.priorityClassName: no PriorityClass with name none was found",
            id="an unknown class",
        ),
    ],
)
def test_a_bad_group_is_refused_with_the_message_of_the_api_server(
    spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(AdmissionError) as refused:
        admit_groups(make_group(**spec), make_cluster(), ALL)

    assert str(refused.value) == message


def test_other_objects_are_left_alone() -> None:
    service = make_object("Service", "s", namespace="default")

    assert admit_groups(service, make_cluster(), ALL) is service


# Statuses


def with_conditions(group: PodGroup, **states: str) -> PodGroup:
    conditions = [PodGroupCondition(type=type_, status=s) for type_, s in states.items()]
    return replace(group, status=PodGroupStatus(conditions=tuple(conditions)))


def states(group: PodGroup) -> dict[str, str]:
    return {c.type: c.status for c in group.status.conditions or ()}


def test_conditions_are_merged_by_type() -> None:
    cluster = make_cluster()
    seen = cluster.add(make_group(**BASIC))
    cluster.update_status(with_conditions(seen, A="True", B="False"))

    stored = cluster.update_status(with_conditions(seen, B="True"))

    assert states(stored) == {"A": "True", "B": "True"}
    assert states(cluster.get("PodGroup", "default", "g") or seen) == {"A": "True", "B": "True"}


def test_an_unchanged_status_is_not_written() -> None:
    cluster = make_cluster()
    seen = cluster.add(make_group(**BASIC))
    stored = cluster.update_status(with_conditions(seen, A="True"))

    assert cluster.update_status(with_conditions(seen, A="True")) is stored


def test_the_status_of_another_group_of_the_name_is_not_written() -> None:
    cluster = make_cluster()
    seen = cluster.add(make_group(**BASIC))
    cluster.delete(seen)
    with pytest.raises(NotFoundError):
        cluster.update_status(with_conditions(seen, A="True"))
    cluster.add(make_group(**BASIC))
    with pytest.raises(ConflictError):
        cluster.update_status(with_conditions(seen, A="True"))
