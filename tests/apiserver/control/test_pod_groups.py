"""Pod groups in a running cluster: jobs that make them, protection, statuses, and what kubectl shows."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.pod_groups import PodGroup, PodGroupCondition, PodGroupStatus
from bayplan.apiserver.server import ApiServer
from bayplan.errors import ApiError, InputError, NotFoundError
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import pod_tree

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
WORKLOADS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
GATES = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "WorkloadAwarePreemption": True,
    "WorkloadWithJob": True,
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
TIME = "2026-01-01T00:00:00Z"


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    with api_server(gates=GATES) as server:
        yield server


def group_tree(name: str = "g", **spec: Any) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
    head = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def member(name: str) -> dict[str, Any]:
    return pod_tree(name, schedulingGroup={"podGroupName": "g"})


def job_tree(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "env": [{"name": "A", "value": "1"}]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, **spec}
    head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "training"}}
    return {**head, "spec": {**spec, "template": template}}


def scheduled(status: str, reason: str = "Unschedulable") -> PodGroupCondition:
    return PodGroupCondition(
        type="PodGroupScheduled", status=status, reason=reason, last_transition_time=TIME
    )


# Jobs


def test_a_job_makes_its_workload_and_its_group(api: ServerInThread) -> None:
    job = api.make(JOBS, job_tree())
    api.settle()

    (workload,) = api.get(WORKLOADS).tree["items"]
    (group,) = api.get(GROUPS).tree["items"]
    pods = api.get(PODS).tree["items"]

    controller = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "training",
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    beside = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "name": workload["metadata"]["name"],
        "uid": workload["metadata"]["uid"],
    }
    assert workload["metadata"]["ownerReferences"] == [controller]
    assert group["metadata"]["ownerReferences"] == [controller, beside]
    assert group["spec"] == {
        "podGroupTemplateRef": {
            "workload": {
                "workloadName": workload["metadata"]["name"],
                "podGroupTemplateName": "training-pgt-0",
            }
        },
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": "Pod",
        "priority": 0,
    }
    assert len(pods) == 2
    for pod in pods:
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        assert pod["metadata"]["ownerReferences"] == [controller]
        assert pod["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_a_jobs_group_is_deleted_with_it(api: ServerInThread) -> None:
    api.make(JOBS, job_tree())
    api.settle()
    assert api.get(GROUPS).tree["items"]

    api.delete(f"{JOBS}/training", {"propagationPolicy": "Background"})
    api.advance(60)

    assert [api.get(path).tree["items"] for path in (WORKLOADS, GROUPS, PODS)] == [[], [], []]


def test_the_parallelism_of_a_job_with_a_gang_cannot_change(api: ServerInThread) -> None:
    api.make(JOBS, job_tree())
    api.settle()

    answer = api.patch(f"{JOBS}/training", {"spec": {"parallelism": 3}})

    assert answer.status == 403
    assert "cannot change parallelism for a Job" in answer.tree["message"]


# Protection


def test_a_group_with_members_stays_until_they_are_gone(api: ServerInThread) -> None:
    api.make(GROUPS, group_tree())
    api.make(PODS, member("a"), member("b"))

    api.delete(f"{GROUPS}/g")
    api.settle()
    assert api.get(f"{GROUPS}/g").tree["metadata"]["deletionTimestamp"]
    api.delete(f"{PODS}/a")
    api.settle()
    assert api.get(f"{GROUPS}/g").status == 200
    api.patch(f"{PODS}/b/status", {"status": {"phase": "Succeeded"}})
    api.settle()

    assert api.get(f"{GROUPS}/g").status == 404


def test_a_group_without_members_is_deleted_at_once(api: ServerInThread) -> None:
    api.make(GROUPS, group_tree(), group_tree("other"))
    api.make(PODS, member("a"))

    api.delete(f"{GROUPS}/other")
    api.settle()

    assert api.get(f"{GROUPS}/other").status == 404


# Status


def write(api: ServerInThread, group: PodGroup, *conditions: PodGroupCondition) -> PodGroup:
    changed = replace(group, status=PodGroupStatus(conditions=conditions))
    return api.within(lambda server: server.plane.cluster.update_status(changed))


def read(api: ServerInThread) -> PodGroup:
    group = api.within(lambda server: server.plane.cluster.get("PodGroup", "default", "g"))
    assert isinstance(group, PodGroup)
    return group


def test_the_scheduler_writes_a_condition_whatever_else_has_changed(api: ServerInThread) -> None:
    api.make(GROUPS, group_tree())
    seen = read(api)
    other = {"type": "Other", "status": "True", "reason": "R", "message": "m"}
    patch = {"status": {"conditions": [{**other, "lastTransitionTime": TIME}]}}
    assert api.patch(f"{GROUPS}/g/status", patch, "strategic").status == 200

    written = write(api, seen, scheduled("False"))
    again = write(api, seen, scheduled("False"))

    stored = api.get(f"{GROUPS}/g").tree
    conditions = {c["type"]: (c["status"], c["reason"]) for c in stored["status"]["conditions"]}
    assert conditions == {"Other": ("True", "R"), "PodGroupScheduled": ("False", "Unschedulable")}
    assert written.resource_version == again.resource_version
    assert stored["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}


def test_a_condition_of_a_deleted_group_is_not_found(api: ServerInThread) -> None:
    api.make(GROUPS, group_tree())
    seen = read(api)
    api.delete(f"{GROUPS}/g")
    api.settle()

    with pytest.raises(NotFoundError):
        write(api, seen, scheduled("True", "Scheduled"))


def test_a_bad_condition_is_refused(api: ServerInThread) -> None:
    api.make(GROUPS, group_tree())

    with pytest.raises(ApiError, match=r"conditions\[0\]\.reason: Required value"):
        write(api, read(api), scheduled("True", ""))


# Views of clients


@pytest.mark.parametrize(
    ("spec", "conditions", "shown"),
    [
        pytest.param({}, [], ["g", "Gang", "<none>", "Pending"], id="a new gang"),
        pytest.param(
            {"schedulingPolicy": {"basic": {}}},
            [scheduled("False")],
            ["g", "Basic", "<none>", "Unschedulable"],
            id="an unschedulable group",
        ),
        pytest.param(
            {},
            [scheduled("True", "Scheduled")],
            ["g", "Gang", "<none>", "Scheduled"],
            id="a scheduled gang",
        ),
        pytest.param(
            {},
            [
                scheduled("True", "Scheduled"),
                PodGroupCondition(
                    type="DisruptionTarget",
                    status="True",
                    reason="PreemptionByScheduler",
                    last_transition_time=TIME,
                ),
            ],
            ["g", "Gang", "<none>", "PreemptionByScheduler"],
            id="a disrupted gang",
        ),
    ],
)
def test_columns_of_a_group(
    api: ServerInThread, spec: Any, conditions: list[PodGroupCondition], shown: list[str]
) -> None:
    api.make(GROUPS, group_tree(**spec))
    if conditions:
        write(api, read(api), *conditions)

    table = api.get(GROUPS, Accept=TABLE).tree

    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Policy", "Workload", "Status", "Age"]
    assert table["rows"][0]["cells"] == [*shown, "0s"]


def test_the_column_of_a_group_names_its_workload(api: ServerInThread) -> None:
    api.make(JOBS, job_tree())
    api.settle()

    (row,) = api.get(GROUPS, Accept=TABLE).tree["rows"]

    (workload,) = api.get(WORKLOADS).names
    assert row["cells"][2] == workload


def test_without_the_gate_groups_are_not_in_the_api() -> None:
    with api_server() as plain, api_server(gates=GATES) as gated:
        found = [
            {
                version["groupVersion"]
                for group in api.get("/apis").tree["groups"]
                for version in group["versions"]
            }
            for api in (plain, gated)
        ]
        assert found[1] - found[0] == {"scheduling.k8s.io/v1alpha2"}
        assert (
            plain.get(GROUPS).status == plain.get("/apis/scheduling.k8s.io/v1alpha2").status == 404
        )
        with pytest.raises(InputError, match='no matches for kind "PodGroup" in version "sch'):
            plain.within(lambda server: load(server, group_tree()))
        gated.within(lambda server: load(server, group_tree()))
        assert gated.get(f"{GROUPS}/g").status == 200


def load(server: ApiServer, tree: dict[str, Any]) -> bool:
    return server.load(tree)


# Claims


def test_the_claim_of_a_group_is_made_from_its_template_and_deleted_with_it() -> None:
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    templates = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    entry = {"name": "shared", "resourceClaimTemplateName": "t"}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    with api_server(gates={**GATES, "DRAWorkloadResourceClaims": True}) as api:
        api.make(templates, template)
        api.make(GROUPS, group_tree(resourceClaims=[entry]))
        for name in ("p", "q"):
            group = {"podGroupName": "g"}
            api.make(PODS, pod_tree(name, schedulingGroup=group, resourceClaims=[entry]))
        api.settle()

        (claim,) = api.get(claims).tree["items"]
        named = [{"name": "shared", "resourceClaimName": claim["metadata"]["name"]}]
        assert claim["metadata"]["ownerReferences"][0]["kind"] == "PodGroup"
        assert api.get(f"{GROUPS}/g").tree["status"]["resourceClaimStatuses"] == named
        for name in ("p", "q"):
            assert api.get(f"{PODS}/{name}").tree["status"]["resourceClaimStatuses"] == named

        for path in (f"{PODS}/p", f"{PODS}/q", f"{GROUPS}/g"):
            assert api.delete(path).status == 200
        api.settle()
        assert api.get(claims).tree["items"] == []
