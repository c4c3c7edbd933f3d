"""Simulation: placements, order, and the report."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError
from bayplan.scheduler import Outcome
from bayplan.sim import Simulation, SimulationReport, read_manifests
from tests.rig.trees import node_of, pod_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def make_deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }
    selector = {"matchLabels": {"app": name}}
    fields = {"replicas": replicas, "selector": selector, "template": template}
    return make("Deployment", name, "apps/v1", spec=fields)


def run(*objects: Any, **options: Any) -> SimulationReport:
    return Simulation(objects, **options).run()


def placements(report: SimulationReport) -> dict[str, str]:
    return {result.pod.name: result.attempt.node_name for result in report.pods}


def test_pods_are_placed_and_usage_is_summed() -> None:
    report = run(
        node_of("n"),
        pod_of("runs", "2", nodeName="n"),
        pod_of("a", "1500m"),
    )

    assert placements(report) == {"a": "n"}
    assert report.is_complete
    assert report.running == 1
    (use,) = report.nodes
    assert (use.before, use.after) == ({"cpu": 2000}, {"cpu": 3500})
    assert (use.pods_before, use.pods_after) == (1, 2)


def test_a_pod_that_does_not_fit_stays_pending_with_the_message_of_kube_scheduler() -> None:
    report = run(node_of("n"), pod_of("large", "5"))

    (result,) = report.pending
    assert not report.is_complete
    assert result.attempt.outcome is Outcome.UNSCHEDULABLE
    assert result.attempt.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_finished_pods_neither_count_nor_wait() -> None:
    done = make("Pod", "done", spec={"nodeName": "n"}, status={"phase": "Succeeded"})
    failed = make("Pod", "failed", status={"phase": "Failed"})

    report = run(node_of("n"), done, failed)

    assert report.pods == []
    assert report.running == 0


def test_a_terminating_pod_without_a_node_is_ignored() -> None:
    gone = pod_of("gone", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    assert run(node_of("n"), gone).pods == []


def test_a_pod_without_a_name_can_be_evicted() -> None:
    unnamed = pod_of("", "4", metadata={"generateName": "batch-", "name": ""})
    urgent = pod_of("urgent", "3", priorityClassName="system-cluster-critical", priority=9)
    tied = pod_of("first", "1", nodeName="n")

    report = run(node_of("n"), node_of("m", "3"), tied, unnamed, urgent)

    assert [result.pod.name.partition("-")[0] for result in report.placed] == ["urgent"]


@pytest.mark.parametrize(
    ("kind", "api_version", "fields"),
    [
        pytest.param("Job", "batch/v1", {"parallelism": 2}, id="jobs"),
        pytest.param("Deployment", "apps/v1", {"replicas": 2}, id="deployments"),
        pytest.param("ReplicaSet", "apps/v1", {"replicas": 2}, id="replica sets"),
        pytest.param("StatefulSet", "apps/v1", {"replicas": 2}, id="stateful sets"),
    ],
)
def test_workloads_without_a_name_have_their_pods_each(
    kind: str, api_version: str, fields: dict[str, int]
) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"a": "b"}}}
    spec = {**fields, **selector, "template": template}
    workloads = [
        make(kind, "", api_version, metadata={"generateName": "batch-"}, spec=spec)
        for _ in range(2)
    ]

    report = run(node_of("n"), *workloads)

    assert len(report.placed) == 4
    assert all(result.pod.name.startswith("batch-") for result in report.placed)


def test_a_fault_of_a_workload_without_a_name_has_its_place() -> None:
    spec = {"containers": [{"name": "c"}], "priorityClassName": "absent"}
    job = make(
        "Job",
        "",
        "batch/v1",
        metadata={"generateName": "batch-"},
        spec={"template": {"spec": spec}},
    )

    with pytest.raises(InputError, match=r"^here: .*priorityClassName"):
        run(node_of("n"), job, place_of=lambda obj: "here" if obj is job else "elsewhere")


def test_pods_are_tried_by_priority_then_in_the_order_of_the_input() -> None:
    report = run(
        pod_of("z"),
        make_deployment("m", 2),
        pod_of("a"),
        node_of("n", "8"),
        pod_of("urgent", priorityClassName="system-cluster-critical"),
    )

    order = [result.pod.name.partition("-")[0] for result in report.pods]
    assert order == ["urgent", "z", "m", "m", "a"]


def test_a_rejected_pod_is_retried_after_others_were_placed() -> None:
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "leader"}},
                }
            ]
        }
    }
    node = node_of("n", metadata={"labels": {"kubernetes.io/hostname": "n"}})
    follower = pod_of("follower", affinity=near)
    leader = pod_of("leader", metadata={"labels": {"app": "leader"}})

    report = run(node, follower, leader)

    assert placements(report) == {"follower": "n", "leader": "n"}
    assert {result.pod.name: result.attempts for result in report.pods}["follower"] == 2


def test_a_gated_pod_is_reported() -> None:
    report = run(node_of("n"), pod_of("held", schedulingGates=[{"name": "quota"}]))

    (result,) = report.pending
    assert result.attempt.outcome is Outcome.GATED
    assert result.attempt.message != ""


def test_a_pod_of_another_scheduler_is_reported() -> None:
    report = run(node_of("n"), pod_of("a", schedulerName="batch"))

    (result,) = report.pending
    assert result.attempt.message == 'waits for scheduler "batch", which is not configured'


def test_an_eviction_is_reported_and_the_owner_creates_a_replacement() -> None:
    running = make(
        "Pod",
        "batch-0",
        metadata={"ownerReferences": [{"kind": "ReplicaSet", "name": "batch", "controller": True}]},
        spec={
            "nodeName": "n",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
        },
    )
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    owner = make(
        "ReplicaSet",
        "batch",
        "apps/v1",
        spec={"replicas": 1, "template": {"spec": {"containers": [container]}}},
    )

    report = run(
        node_of("n", "2"),
        running,
        owner,
        pod_of("urgent", "2", priorityClassName="system-cluster-critical"),
    )

    assert [(victim.name, by.name) for victim, by in report.preempted] == [("batch-0", "urgent")]
    assert [result.pod.name for result in report.placed] == ["urgent"]
    assert [result.pod.name.partition("-")[0] for result in report.pending] == ["batch"]


def test_undeclared_namespaces_can_be_selected_by_name() -> None:
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {},
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
                }
            ]
        }
    }
    report = run(
        node_of("far", metadata={"labels": {"kubernetes.io/hostname": "far"}}),
        node_of("near", metadata={"labels": {"kubernetes.io/hostname": "near"}}),
        pod_of("there", metadata={"namespace": "shop"}, nodeName="near"),
        pod_of("here", affinity=near),
    )

    assert placements(report) == {"here": "near"}


def test_progress_counts_pods() -> None:
    told: list[tuple[int, int]] = []

    Simulation([node_of("n"), make_deployment("web", 3)]).run(
        lambda done, total: told.append((done, total))
    )

    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_same_seed_gives_the_same_report() -> None:
    objects = [node_of(f"n{i}") for i in range(20)] + [make_deployment("web", 30)]

    first, second = (placements(run(*objects, seed=7)) for _ in range(2))

    assert first == second


def test_explanations_are_made_on_request() -> None:
    objects = [node_of("n"), node_of("m", "1"), pod_of("a", "2")]

    (plain,) = run(*objects).pods
    (explained,) = run(*objects, explain=True).pods

    assert plain.attempt.explanation is None
    assert explained.attempt.explanation is not None
    assert not explained.attempt.explanation.filter["m"].is_success


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [pod_of("a")], "input: expected at least one Node; got none", id="no node at all"
        ),
        pytest.param(
            [node_of("n"), pod_of("a", priorityClassName="gold")],
            "here: pod default/a: spec.priorityClassName: "
            'expected a PriorityClass of the input or a built-in one; got "gold"',
            id="unknown priority class",
        ),
        pytest.param(
            [node_of("n"), make_deployment("web", 1, priorityClassName="gold")],
            "here: deployment default/web: spec.template.spec.priorityClassName: "
            'expected a PriorityClass of the input or a built-in one; got "gold"',
            id="unknown priority class of a workload",
        ),
        pytest.param(
            [node_of("n"), node_of("n")],
            'input: expected each name once; Node "n" exists already',
            id="a name twice",
        ),
    ],
)
def test_faults_have_a_place(objects: list[Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        Simulation(objects, place_of=lambda obj: "here")

    assert str(caught.value) == expected


def test_the_examples_give_the_documented_results() -> None:
    manifests = read_manifests([EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml"])

    report = Simulation(manifests.objects, place_of=manifests.place_of).run()

    assert sorted(result.pod.key for result in report.pending) == [
        "research/in-memory-index",
        "shop/edge-proxy",
    ]
    node_of = {result.pod.key: result.attempt.node_name for result in report.placed}
    assert node_of["research/training"] == "gpu-b1"
    database = [node_of[f"shop/db-{i}"] for i in range(3)]
    assert len(set(database)) == 3
    zones = [node[len("worker-")] for key, node in node_of.items() if key.startswith("shop/web-")]
    assert sorted(zones) == ["a", "a", "b", "b", "c", "c"]
    daemons = [node for key, node in node_of.items() if key.startswith("infra/logs-")]
    assert sorted(daemons) == sorted(use.node.name for use in report.nodes)
