"""Volumes and devices in plans: they count in the bound and in the choice of nodes where each pod takes its own."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.devices import Device, ResourceSliceSpec
from bayplan.api.wire.decode import decode_object
from bayplan.config.load import parse_config
from bayplan.planning import NodePool
from bayplan.planning.node_plan import NodePlan
from bayplan.planning.node_probe import probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.planner import PlanRequest, plan_nodes, search_plan
from bayplan.planning.search_state import SearchState
from bayplan.planning.time_budget import TimeBudget
from bayplan.sim.settings import Settings

from .test_plan import SEEDED, counts, make_deployment, make_type

DRIVER = "disks.example.com"
WITH_DISKS = make_type("disks", 8, 16, 0.4, csi_limits={DRIVER: 4})
POOL = NodePool("p", (WITH_DISKS,))
VOLUMES = f"volumes of {DRIVER}"
STORAGE: Any = decode_object(
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
)
EPHEMERAL = {"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}
SHARED = {"persistentVolumeClaim": {"claimName": "shared"}}


def make_stateful_set(name: str, replicas: int, cpu: str, storage_class: str) -> Any:
    """Each pod has a volume of its own."""
    labels = {"app": name}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": storage_class}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [claim],
    }
    return decode_object(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}
    )


def make_claim(name: str, volume: str = "") -> Any:
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteMany"]}
    return decode_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": spec | ({"volumeName": volume} if volume else {}),
        }
    )


def make_volume(name: str, driver: str) -> Any:
    return decode_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "csi": {"driver": driver, "volumeHandle": name},
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "default", "name": "shared"},
            },
        }
    )


def make_claiming(name: str, replicas: int, *requests: dict[str, Any]) -> list[Any]:
    """A Deployment whose pods claim devices, each its own, and its objects."""
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    meta = {"name": name}
    api = "resource.k8s.io/v1"
    return [
        decode_object({"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "any"}}),
        decode_object(
            {"apiVersion": api, "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec}
        ),
        make_deployment(
            name,
            replicas,
            "100m",
            resourceClaims=[{"name": "devices", "resourceClaimTemplateName": name}],
        ),
    ]


def exactly(count: int, **more: Any) -> dict[str, Any]:
    request = {"deviceClassName": "any", "count": count} | more
    return {"name": f"r{count}", "exactly": request}


def with_devices(count: int, **more: Any) -> NodePool:
    devices = tuple(Device(name=f"d{i}", **more) for i in range(count))
    slices = (ResourceSliceSpec(driver=DRIVER, devices=devices),)
    return NodePool("p", (make_type("devices", 8, 16, 0.4, slices=slices),))


def plan(*objects: Any, pool: NodePool = POOL, settings: Settings = SEEDED) -> NodePlan:
    return plan_nodes([STORAGE, *objects], [pool], settings, PlanRequest(time_limit_s=20.0))


@pytest.mark.parametrize(
    ("objects", "nodes"),
    [
        pytest.param(
            [make_stateful_set("s", 8, "100m", "fast")],
            2,
            id="each pod of a StatefulSet has a volume of its own",
        ),
        pytest.param(
            [make_stateful_set(name, 2, "100m", "fast") for name in "abc"],
            2,
            id="the volumes of several workloads count together",
        ),
        pytest.param(
            [make_deployment("a", 6, "100m", volumes=[{"name": "data", **EPHEMERAL}])],
            2,
            id="ephemeral volumes are made for one pod each",
        ),
        pytest.param(
            [
                make_claim("shared"),
                make_deployment("a", 9, "100m", volumes=[{"name": "v", **SHARED}]),
            ],
            1,
            id="a volume that several pods share is attached once",
        ),
        pytest.param(make_claiming("a", 6, exactly(1)), 3, id="each pod takes a device"),
        pytest.param(
            make_claiming("a", 2, exactly(2)), 2, id="a pod may take several devices of a node"
        ),
    ],
)
def test_volumes_and_devices_are_part_of_the_bound(objects: list[Any], nodes: int) -> None:
    pool = with_devices(2) if any(one.kind == "DeviceClass" for one in objects) else POOL

    found = plan(*objects, pool=pool)

    assert found.is_complete
    assert sum(counts(found).values()) == nodes
    assert found.headline().endswith("no plan is cheaper")


def needs_of(*objects: Any, pool: NodePool = POOL, settings: Settings = SEEDED) -> dict[str, int]:
    """Attachments of the pods of the first class."""
    probe = probe_workload(prepare_input([STORAGE, *objects]), [pool], settings)
    return {name: probe.classes[0].needs[name] for name in probe.attachments}


def settings_without(plugin: str) -> Settings:
    disabled = {"multiPoint": {"disabled": [{"name": plugin}]}}
    return replace(
        SEEDED,
        config=parse_config(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": disabled}],
            }
        ),
    )


ONE = make_deployment("a", 1, "100m", volumes=[{"name": "v", **SHARED}])


@pytest.mark.parametrize(
    ("objects", "more", "needs"),
    [
        pytest.param([make_claim("shared"), ONE], {}, {VOLUMES: 1}, id="a claim of one pod alone"),
        pytest.param(
            [make_claim("shared"), make_deployment("a", 2, "1", volumes=[{"name": "v", **SHARED}])],
            {},
            {},
            id="a claim that two pods share",
        ),
        pytest.param(
            [make_claim("shared", "pv"), make_volume("pv", DRIVER), ONE],
            {},
            {VOLUMES: 1},
            id="a claim that has its volume",
        ),
        pytest.param(
            [make_claim("shared", "pv"), make_volume("pv", "files.example.com"), ONE],
            {},
            {},
            id="a volume of a driver without a limit",
        ),
        pytest.param(
            [make_claim("shared"), ONE],
            {"settings": settings_without("NodeVolumeLimits")},
            {},
            id="a scheduler that does not count volumes",
        ),
        pytest.param(
            make_claiming("a", 1, exactly(2), exactly(1)),
            {"pool": with_devices(4)},
            {"devices": 3},
            id="the devices of all requests",
        ),
        pytest.param(
            make_claiming("a", 1, exactly(1, adminAccess=True), exactly(2)),
            {"pool": with_devices(4)},
            {"devices": 2},
            id="access for administrators takes no device",
        ),
        pytest.param(
            make_claiming(
                "a",
                1,
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "big", "deviceClassName": "any", "count": 3},
                        {"name": "small", "deviceClassName": "any", "count": 1},
                    ],
                },
            ),
            {"pool": with_devices(4)},
            {"devices": 1},
            id="of alternatives the one with the fewest devices",
        ),
    ],
)
def test_what_a_pod_attaches(
    objects: list[Any], more: dict[str, Any], needs: dict[str, int]
) -> None:
    assert needs_of(*objects, **more) == needs


def test_devices_that_several_claims_may_use_are_not_limited() -> None:
    pool = with_devices(1, allow_multiple_allocations=True)

    probe = probe_workload(prepare_input(make_claiming("a", 3, exactly(1))), [pool], SEEDED)

    (option,) = probe.options
    assert option.free[probe.resources.index("devices")] > 1000


def test_what_the_bound_leaves_out_is_named() -> None:
    sharing = make_deployment("a", 2, "1", volumes=[{"name": "v", **SHARED}])
    claiming = make_claiming("c", 1, exactly(1))
    pool = NodePool("p", (*POOL.types, *with_devices(2).types))

    found = plan(make_claim("shared"), sharing, *claiming, pool=pool)

    assert found.notices[-1:] == [
        "the bound leaves out volumes and claims that 1 kind of pods share and which devices 1 kind of pods ask for; "
        "plans are verified with them"
    ]
    assert not plan(make_stateful_set("s", 2, "1", "fast")).notices


def test_nodes_that_stay_are_not_limited_in_the_bound() -> None:
    objects = [STORAGE, *WITH_DISKS.make_objects("here"), make_stateful_set("s", 6, "1", "fast")]
    request = PlanRequest(time_limit_s=20.0, keep_existing=True)
    state = SearchState(TimeBudget(20.0))

    found = search_plan(prepare_input(objects, ["here"]), [POOL], SEEDED, request, state)

    assert counts(found) == {"disks": 1}
    assert state.bound <= found.price


def test_first_fit_leaves_volumes_out_as_karpenter_does() -> None:
    cheap = make_type("cheap", 8, 16, 0.3, csi_limits={DRIVER: 1})

    found = plan(make_stateful_set("s", 4, "100m", "fast"), pool=NodePool("p", (cheap, WITH_DISKS)))

    assert counts(found) == {"disks": 1}
    assert found.first_fit_price == cheap.price
