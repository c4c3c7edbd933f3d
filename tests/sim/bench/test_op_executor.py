"""Ops: the effect of each op, and the measurements it requests."""

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bayplan.sim.bench.cases import read_cases
from bayplan.sim.bench.driver import Driver
from bayplan.sim.bench.measurements import EventRun, PodRun, Run
from bayplan.sim.bench.op_executor import WorkloadExecutor
from bayplan.sim.bench.workload import Request, make_workload

SMALL = """
- opcode: createNodes
  count: 3
"""


def run(
    tmp_path: Path, ops: str, now: Callable[[], int] = time.perf_counter_ns
) -> tuple[list[Run], Driver]:
    """Run ops after creating three small nodes."""
    lines = "\n".join(f"  {line}" for line in (SMALL + ops).splitlines())
    file = tmp_path / "w.yaml"
    file.write_text(f"- name: a\n  workloadTemplate:\n{lines}\n  workloads: [{{name: s}}]\n")
    (case,) = read_cases(file)
    executor = WorkloadExecutor(make_workload(case, Request("a")), now)
    return executor.run(), executor._driver


def names(driver: Driver, kind: str, namespace: str | None = None) -> list[str]:
    return sorted(obj.name for obj in driver.cluster.list(kind, namespace))


def test_nodes_and_pods_are_completed(tmp_path: Path) -> None:
    (measured,), driver = run(tmp_path, "- {opcode: createPods, count: 2, collectMetrics: true}")

    node: Any = next(iter(driver.cluster.list("Node")))
    assert isinstance(measured, PodRun)
    assert (measured.workload, measured.nodes, measured.pods, measured.placed) == ("a", 3, 2, 2)
    assert names(driver, "Pod", "namespace-1") == ["pod-1-0", "pod-1-1"]
    assert node.labels == {"kubernetes.io/hostname": node.name}
    assert names(driver, "Namespace") == ["namespace-1"]


def test_labels_are_given_to_nodes_in_turn(tmp_path: Path) -> None:
    _, driver = run(
        tmp_path,
        """
- opcode: createNodes
  count: 3
  labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
- {opcode: createNodes, count: 2, uniqueNodeLabelStrategy: {labelKey: own}}
- {opcode: createPods, count: 1, collectMetrics: true}
""",
    )

    labels = [node.labels for node in driver.cluster.list("Node")]
    assert [found.get("zone") for found in labels[3:6]] == ["a", "b", "a"]
    assert len({found["own"] for found in labels[6:]}) == 2


def test_volume_limits_hold(tmp_path: Path) -> None:
    (measured,), _ = run(
        tmp_path,
        """
- opcode: deletePods
  namespace: none
- opcode: createNodes
  count: 1
  nodeTemplate: {kind: Node, metadata: {labels: {disks: some}}, status: {capacity: {cpu: 9, pods: 9}}}
  nodeAllocatableStrategy: {csiNodeAllocatable: {csi.example.com: {count: 2}}}
- opcode: createPods
  count: 5
  collectMetrics: true
  podTemplate: {kind: Pod, spec: {nodeSelector: {disks: some}, containers: [{name: c, image: c}]}}
  persistentVolumeTemplate:
    {kind: PersistentVolume, spec: {csi: {driver: csi.example.com}, accessModes: [ReadWriteOnce]}}
  persistentVolumeClaimTemplate: {kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce]}}
""",
    )

    assert isinstance(measured, PodRun)
    assert (measured.pods, measured.placed) == (5, 2)


def test_namespaces_and_sets_of_pods(tmp_path: Path) -> None:
    runs, driver = run(
        tmp_path,
        """
- opcode: createNamespaces
  prefix: team
  count: 2
  namespaceTemplate: {kind: Namespace, metadata: {labels: {team: devops}}}
- opcode: createPodSets
  count: 2
  namespacePrefix: team
  createPodsOp: {opcode: createPods, count: 3, collectMetrics: true}
""",
    )

    assert [(r.pods, r.placed) for r in runs if isinstance(r, PodRun)] == [(3, 3), (3, 3)]
    assert names(driver, "Namespace") == ["team-0", "team-1"]
    assert all(found.labels["team"] == "devops" for found in driver.cluster.list("Namespace"))


def test_objects_of_any_kind_by_template(tmp_path: Path) -> None:
    """Nodes with several devices each, at a small scale."""
    _, driver = run(
        tmp_path,
        """
- opcode: createAny
  count: 3
  template:
    apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {name: "slice-{{.Index}}"}
    spec:
      driver: gpu.example.com
      nodeName: node-0-{{.Index}}
      pool: {name: "node-0-{{.Index}}", generation: 1, resourceSliceCount: 1}
      devices: [{name: gpu-0}, {name: gpu-1}]
- opcode: createAny
  namespace: claims
  count: 2
  template:
    apiVersion: resource.k8s.io/v1
    kind: ResourceClaim
    metadata: {name: "claim-{{.Index}}"}
    spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
- {opcode: createPods, count: 1, collectMetrics: true}
""",
    )

    assert names(driver, "ResourceSlice") == ["slice-0", "slice-1", "slice-2"]
    assert names(driver, "ResourceClaim", "claims") == ["claim-0", "claim-1"]


WAITING = """
- opcode: createPods
  count: 4
  namespace: waiting
  podTemplate: {kind: Pod, spec: {nodeSelector: {gpu: "yes"}, containers: [{name: c, image: c}]}}
"""


def test_the_cost_of_an_update(tmp_path: Path) -> None:
    (measured,), driver = run(
        tmp_path,
        WAITING
        + """
- opcode: updateAny
  count: 3
  collectMetrics: true
  name: a node gets a GPU
  template:
    kind: Node
    metadata: {name: "node-0-{{.Index}}", labels: {gpu: "yes"}}
    status: {capacity: {cpu: 4, pods: 1}}
""",
    )

    assert isinstance(measured, EventRun)
    assert (measured.event, measured.events, measured.waiting) == ("a node gets a GPU", 3, 4)
    assert measured.moved_per_event == pytest.approx((4 + 3 + 2) / 3, abs=0.1)
    assert driver.waiting == 1


def test_a_pod_that_is_updated_stays_on_its_node(tmp_path: Path) -> None:
    _, driver = run(
        tmp_path,
        """
- {opcode: createPods, count: 1, namespace: b, collectMetrics: true}
- opcode: updateAny
  namespace: b
  template: {kind: Pod, metadata: {name: pod-1-0, labels: {new: label}}}
""",
    )

    (pod,) = driver.cluster.list("Pod")
    assert (pod.labels, bool(pod.node_name)) == ({"new": "label"}, True)


def test_pods_are_deleted_by_label(tmp_path: Path) -> None:
    _, driver = run(
        tmp_path,
        """
- opcode: createPods
  count: 4
  namespace: b
  collectMetrics: true
  podTemplate: {kind: Pod, metadata: {labels: {app: "{{Mod .Index 2}}"}}}
- {opcode: deletePods, namespace: b, labelSelector: {app: "1"}}
""",
    )

    assert names(driver, "Pod") == ["pod-1-0", "pod-1-2"]


BLOCKED = """
- opcode: createPods
  count: 3
  namespace: blockers
  podTemplate: {kind: Pod, spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 4}}}]}}
- {opcode: startCollectingMetrics, namespaces: [others]}
- opcode: createPods
  count: 3
  namespace: others
  skipWaitToCompletion: true
  podTemplate: {kind: Pod, spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 3}}}]}}
- {opcode: barrier, stageRequirement: Attempted}
"""


def test_gradually_deleted_pods_make_room(tmp_path: Path) -> None:
    (measured,), driver = run(
        tmp_path,
        BLOCKED
        + """
- {opcode: deletePods, namespace: blockers, deletePodsPerSecond: 1000, skipWaitToCompletion: true}
- {opcode: barrier}
- {opcode: stopCollectingMetrics}
""",
    )

    assert isinstance(measured, PodRun)
    assert (measured.pods, measured.placed) == (3, 3)
    assert measured.rounds > 3
    assert names(driver, "Pod", "blockers") == []


def test_pods_that_never_fit_end_the_measurement(tmp_path: Path) -> None:
    (measured,), driver = run(tmp_path, BLOCKED + "- {opcode: stopCollectingMetrics, }")

    assert isinstance(measured, PodRun)
    assert (measured.pods, measured.placed, driver.waiting) == (3, 0, 3)


@pytest.mark.parametrize(
    ("mode", "number", "there"),
    [
        pytest.param("create", 0, ["s-0", "s-1", "s-2", "s-3"], id="objects are added and stay"),
        pytest.param("create", 3, ["s-0", "s-1", "s-2"], id="at most a number of objects is added"),
        pytest.param("recreate", 1, [], id="each is deleted before the next is added"),
        pytest.param(
            "recreate", 3, ["s-1", "s-2"], id="three are added before the first is deleted"
        ),
    ],
)
def test_churn(tmp_path: Path, mode: str, number: int, there: list[str]) -> None:
    (measured,), driver = run(
        tmp_path,
        f"""
- opcode: churn
  mode: {mode}
  number: {number}
  intervalPods: 5
  templates:
  - {{kind: Service, metadata: {{name: "s-{{{{.Index}}}}"}}, spec: {{selector: {{app: a}}}}}}
- {{opcode: createPods, count: 20, collectMetrics: true}}
""",
    )

    assert isinstance(measured, PodRun)
    assert measured.placed == 20
    assert names(driver, "Service") == there


SERVICES = """
- opcode: churn
  mode: create
  intervalPods: 5
  templates:
  - {kind: Service, metadata: {name: "s-{{.Index}}"}, spec: {selector: {app: a}}}
"""


def test_nothing_is_added_before_its_interval_is_over(tmp_path: Path) -> None:
    _, driver = run(tmp_path, SERVICES + "- {opcode: createPods, count: 4, collectMetrics: true}")

    assert names(driver, "Service") == []


def clock_by_looks() -> Callable[[], int]:
    """A clock that advances by a millisecond with every reading."""
    return count(step=1_000_000).__next__


def test_making_objects_is_not_measured(tmp_path: Path) -> None:
    """Each of four services is made between two clock readings: the first counts, the second is
    excluded."""
    pods = "- {opcode: createPods, count: 20, collectMetrics: true}"

    (without,), _ = run(tmp_path, pods, clock_by_looks())
    (with_them,), _ = run(tmp_path, SERVICES + pods, clock_by_looks())

    assert isinstance(without, PodRun)
    assert isinstance(with_them, PodRun)
    assert with_them.seconds - without.seconds == pytest.approx(0.004)


def test_pods_of_a_deleted_node_are_deleted(tmp_path: Path) -> None:
    _, driver = run(
        tmp_path,
        """
- opcode: churn
  mode: recreate
  number: 1
  intervalPods: 5
  templates:
  - {kind: Node, metadata: {name: "big-{{.Index}}"}, status: {capacity: {cpu: 99, pods: 99, memory: 99Gi}}}
- {opcode: createPods, count: 20, collectMetrics: true}
""",
    )

    there = set(names(driver, "Node"))
    assert all(pod.node_name in there for pod in driver.cluster.list("Pod"))
    assert len(names(driver, "Pod")) < 20


def test_sleep_advances_the_clock(tmp_path: Path) -> None:
    _, driver = run(
        tmp_path,
        "- {opcode: sleep, duration: 90s}\n- {opcode: createPods, count: 1, collectMetrics: true}",
    )

    assert driver.clock.monotonic() == pytest.approx(90)


def test_time_creation_includes_creation(tmp_path: Path) -> None:
    ops = "- {opcode: createPods, count: 50, collectMetrics: true, timeCreation: %s}"

    (without,), _ = run(tmp_path, ops % "false", clock_by_looks())
    (with_it,), _ = run(tmp_path, ops % "true", clock_by_looks())

    assert isinstance(without, PodRun)
    assert isinstance(with_it, PodRun)
    assert with_it.seconds - without.seconds == pytest.approx(0.050)
    assert without.p50_us == without.p99_us == 1000


def test_a_size_may_have_a_throughput_threshold(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(
        "- {name: a, workloadTemplate: [{opcode: createNodes, count: 1},"
        " {opcode: createPods, count: 1, collectMetrics: true}],"
        " workloads: [{name: s, threshold: 270}]}"
    )
    (case,) = read_cases(file)

    (measured,) = WorkloadExecutor(make_workload(case, Request("a"))).run()

    assert isinstance(measured, PodRun)
    assert measured.threshold == 270


def test_pods_that_never_start_end_the_measurement(tmp_path: Path) -> None:
    """A gang that is never complete is retried repeatedly; the measurement still ends."""
    file = tmp_path / "w.yaml"
    file.write_text(
        """
- name: a
  schedulerConfig:
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles: [{plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}}]
  workloadTemplate:
  - {opcode: createNodes, count: 1}
  - opcode: createPods
    count: 60
    collectMetrics: true
    podTemplate:
      kind: Pod
      metadata:
        labels:
          pod-group.scheduling.sigs.k8s.io/name: gang
          pod-group.scheduling.sigs.k8s.io/min-available: "60"
      spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 100m}}}]}
  workloads: [{name: s}]
"""
    )
    (case,) = read_cases(file)

    (measured,) = WorkloadExecutor(make_workload(case, Request("a"))).run()

    assert isinstance(measured, PodRun)
    assert (measured.pods, measured.placed) == (60, 0)
