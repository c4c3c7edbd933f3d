"""A series in a Timeline may name a HorizontalPodAutoscaler: its workload has the replicas, within its limits."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan import Cluster
from bayplan.errors import DecodeError, InputError
from bayplan.sim import read_manifests
from bayplan.sim.simulation import Simulation
from bayplan.testing.builders import make_node

LIMITS = {"minReplicas": 2, "maxReplicas": 5}


def deployment() -> dict[str, Any]:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    about = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec}


def autoscaler(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa", "namespace": "shop"},
        "spec": {"scaleTargetRef": target, **LIMITS} | spec,
    }


def series(*numbers: int, target: str = "horizontalpodautoscaler/shop/hpa", **more: Any) -> Any:
    points = [{"at": f"{hour}h", "replicas": number} for hour, number in enumerate(numbers)]
    one = {"target": target, "replicas": points} | more
    return {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "series": [one]}


def read(folder: Path, *documents: Any) -> Any:
    file = folder / "day.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
    return read_manifests([file])


def replicas_of(objects: Any) -> list[tuple[str, int]]:
    (timeline,) = (obj for obj in objects if obj.kind == "Timeline")
    scales = [event.scale[0] for event in timeline.events]
    return [(str(scale.ref), scale.replicas) for scale in scales]


def test_the_workload_of_the_autoscaler_has_the_replicas_within_its_limits(tmp_path: Path) -> None:
    found = read(tmp_path, deployment(), autoscaler(), series(1, 4, 9, 7))

    name = "deployment/shop/web"
    assert replicas_of(found.objects) == [(name, 2), (name, 4), (name, 5), (name, 5)]
    assert found.notes == [
        "horizontalpodautoscaler/shop/hpa limits its series: "
        "3 of its numbers of replicas are outside of 2 to 5"
    ]
    assert not found.unused


def test_within_the_limits_nothing_is_said(tmp_path: Path) -> None:
    assert read(tmp_path, deployment(), autoscaler(), series(2, 5)).notes == []


def test_an_autoscaler_that_no_series_names_is_counted_as_unused(tmp_path: Path) -> None:
    found = read(tmp_path, deployment(), autoscaler(), series(3, target="deployment/shop/web"))

    assert found.unused == {"HorizontalPodAutoscaler": 1}
    assert replicas_of(found.objects) == [("deployment/shop/web", 3)]


def test_the_simulation_scales_the_workload(tmp_path: Path) -> None:
    found = read(tmp_path, deployment(), autoscaler(), series(3, 9))

    simulation = Simulation([*found.objects, make_node("n")], pods_end=False)
    simulation.run()

    assert len(list(simulation.cluster.list("Pod"))) == 5


def test_an_autoscaler_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, deployment(), series(3))

    with pytest.raises(InputError, match=r"series\[0\].*got horizontalpodautoscaler/shop/hpa"):
        Simulation([*found.objects, make_node("n")], pods_end=False).run()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"scaleTargetRef": {"kind": "DaemonSet", "name": "d"}},
            'scaleTargetRef.kind: expected Deployment, ReplicaSet, ReplicationController, StatefulSet; got "DaemonSet"',
            id="a workload without replicas",
        ),
        pytest.param(
            {"scaleTargetRef": {"kind": "Deployment"}},
            "scaleTargetRef.name: expected the name of a workload; got none",
            id="no name",
        ),
        pytest.param(
            {"minReplicas": "2"},
            'minReplicas: expected a number of pods, 0 or more; got "2"',
            id="a text as the minimum",
        ),
        pytest.param(
            {"maxReplicas": 1},
            "maxReplicas: expected a number of pods, 2 or more; got 1",
            id="a maximum below the minimum",
        ),
        pytest.param(
            {"maxReplicas": None},
            "maxReplicas: expected a number of pods, 2 or more; got none",
            id="no maximum",
        ),
    ],
)
def test_a_faulty_autoscaler_is_named_with_the_path(
    tmp_path: Path, spec: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, deployment(), autoscaler(**spec), series(3))

    assert str(caught.value) == f"horizontalpodautoscaler/shop/hpa: spec.{expected}"


def test_limits_stand_in_the_autoscaler_only(tmp_path: Path) -> None:
    with pytest.raises((DecodeError, InputError), match="expected it in the HorizontalPodAuto"):
        read(tmp_path, deployment(), autoscaler(), series(3, minReplicas=1))


def test_a_minimum_that_is_not_given_is_1(tmp_path: Path) -> None:
    found = read(tmp_path, deployment(), autoscaler(minReplicas=None), series(0, 3))

    assert [number for _, number in replicas_of(found.objects)] == [1, 3]


def test_a_cluster_of_dictionaries_has_driven_autoscalers_too() -> None:
    with pytest.warns(UserWarning, match="limits its series"):
        cluster = Cluster.of(deployment(), autoscaler(), series(9))

    assert replicas_of(cluster.objects) == [("deployment/shop/web", 5)]
    assert not cluster.left_out
