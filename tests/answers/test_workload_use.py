"""Workload use: measured pods count for their workload, even if that exists only as a manifest."""

from typing import Any

import pytest

from bayplan.answers.workload_use import WorkloadUse, as_planned, planned_use
from bayplan.manifests.measured_use import MeasuredUse
from bayplan.testing.builders import make_node, make_object


def workload(kind: str, name: str, **more: Any) -> Any:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "2"}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    if kind == "Job":
        del spec["selector"]
    return make_object(kind, name, namespace="shop", spec=spec)


def measured(*pods: tuple[str, int], container: str = "c") -> MeasuredUse:
    use = MeasuredUse()
    for name, milli_cpu in pods:
        use.add(("shop", name), container, "cpu", milli_cpu)
    return use


@pytest.mark.parametrize(
    ("kind", "pod"),
    [
        pytest.param("Deployment", "web-5d4f7c9b6d-x2b7k", id="deployment"),
        pytest.param("StatefulSet", "web-12", id="stateful set"),
        pytest.param("DaemonSet", "web-x2b7k", id="daemon set"),
        pytest.param("Job", "web-x2b7k", id="job"),
        pytest.param("Job", "web-3-x2b7k", id="indexed job"),
        pytest.param("ReplicaSet", "web-x2b7k", id="replica set"),
    ],
)
def test_pods_belong_to_the_workload_that_named_them(kind: str, pod: str) -> None:
    objects = [workload(kind, "web"), workload(kind, "we")]
    found = WorkloadUse(objects, measured((pod, 300), ("web", 900), ("other-0", 900)))

    one, other = (found.of_template(obj, obj.spec.template) for obj in objects)

    assert one == {"c": {"cpu": 300}}
    assert other is None


def test_the_longest_name_counts() -> None:
    objects = [workload("StatefulSet", "web"), workload("Deployment", "web-5d4f7c9b6d")]
    use = measured(("web-5d4f7c9b6d-5d4f7c9b6d-x2b7k", 300))

    assert WorkloadUse(objects, use).of_template(objects[1], objects[1].spec.template)


def test_the_highest_use_of_any_pod_counts_and_templates_request_it() -> None:
    objects = [workload("Deployment", "web", replicas=3), workload("StatefulSet", "db", replicas=2)]
    use = measured(("web-5d4f7c9b6d-aaaaa", 100), ("web-5d4f7c9b6d-bbbbb", 400), ("db-1", 50))

    web, db = as_planned(objects, use)
    totals = planned_use(objects, use, [make_node("n", cpu="16")])

    assert web.spec.template.spec.requests["cpu"] == 400  # type: ignore[union-attr]
    assert db.spec.template.spec.requests["cpu"] == 50  # type: ignore[union-attr]
    cpu = totals.totals[0]
    assert (cpu.allocatable, cpu.requested, cpu.used) == (16_000, 10_000, 1_300)
    assert (totals.measured, totals.pods, totals.noun) == (5, 5, "pods")


def test_pods_of_the_input_have_their_own_use_or_that_of_their_workload() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "2"}}}
    pods = [
        make_object(
            "Pod",
            f"db-{i}",
            namespace="shop",
            metadata={"ownerReferences": [{**owner, "uid": "1"}]},
            spec={"nodeName": "n", "containers": [container]},
        )
        for i in range(2)
    ]
    use = measured(("db-0", 70), container="")
    objects = [*pods, workload("StatefulSet", "db", replicas=2)]

    first, second, _ = as_planned(objects, use)

    assert first.requests["cpu"] == second.requests["cpu"] == 70  # type: ignore[union-attr]
    assert planned_use(objects, use, ()).pods == 2, "no pod is missing"


def test_nothing_measured_changes_nothing() -> None:
    objects = [workload("Deployment", "web")]

    assert as_planned(objects, measured(("else-0", 5))) == objects
