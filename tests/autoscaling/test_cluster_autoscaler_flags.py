"""Cluster Autoscaler as clusters configure it: flags, the ConfigMap of priorities, and options of groups."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.autoscaling import AutoscalerOptions
from bayplan.autoscaling.cluster_autoscaler_flags import (
    NOT_MODELLED,
    REMOVED,
    WITHOUT_EFFECT,
    ClusterAutoscalerFlags,
    parse_flags,
    read_flags,
)
from bayplan.config.problems import Problems
from bayplan.errors import InputError
from bayplan.planning.instance_types import NO_TABLE
from bayplan.planning.pool_documents import read_pool_document
from bayplan.testing.builders import make_node
from tests.autoscaling.scaled import (
    make_pool,
    make_timeline,
    make_type,
    make_workload,
    run_scaled,
    scaling_of,
)

SMALL, BIG = make_type("small", 4, 0.2), make_type("big", 16, 0.7)
HOUR = 3600.0
GPU = "nvidia.com/gpu"
MANIFESTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: cluster-autoscaler, namespace: kube-system}
spec:
  template:
    spec:
      containers:
      - name: cluster-autoscaler
        image: registry.example/autoscaling/cluster-autoscaler:v1.36.1
        command:
        - ./cluster-autoscaler
        - --v=4
        - --stderrthreshold=info
        - --cloud-provider=aws
        - --node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled
        - --leader-elect-renew-deadline=10s
        - --skip-nodes-with-local-storage=false
        - --expander=priority,least-waste
        - --scale-down-unneeded-time=5m
        - --balance-similar-node-groups
        - --max-node-provision-time=20m
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-autoscaler-priority-expander, namespace: kube-system}
data:
  priorities: |-
    10: [".*"]
    50: ["^q/"]
"""


def make_options(**flags: Any) -> AutoscalerOptions:
    return AutoscalerOptions(autoscaler="cluster-autoscaler", flags=ClusterAutoscalerFlags(**flags))


def removals(report: Any) -> dict[str, float | None]:
    return {node.name: node.removed_s for node in scaling_of(report).nodes}


def test_manifests_are_read_as_clusters_have_them(tmp_path: Path) -> None:
    file = tmp_path / "autoscaler.yaml"
    file.write_text(MANIFESTS)

    reading = read_flags([file], ["scale-down-unneeded-time=3m"])

    assert reading.flags == ClusterAutoscalerFlags(
        skip_nodes_with_local_storage=False,
        expander="priority,least-waste",
        scale_down_unneeded_time=180.0,
        balance_similar_node_groups=True,
    )
    assert reading.priorities is not None
    assert [reading.priorities.priority_of(name) for name in ("p/t", "q/t")] == [10, 50]
    assert reading.notes == (f"{file}: document 1: --max-node-provision-time=20m: not modelled",)


@pytest.mark.parametrize(
    "command",
    [
        [
            "--expander",
            "price",
            "--node-group-auto-discovery",
            "asg:tag=a",
            "--max_empty_bulk_delete=5",
        ],
        [
            "sh",
            "-c",
            "exec ./cluster-autoscaler --expander 'price' --max-empty-bulk-delete 5 2>&1 | tee -a x",
        ],
    ],
    ids=["values as words of their own", "a shell"],
)
def test_command_lines_are_read_in_other_forms(tmp_path: Path, command: list[str]) -> None:
    container = {"name": "cluster-autoscaler", "command": command}
    file = tmp_path / "pod.json"
    file.write_text(json.dumps({"kind": "Pod", "spec": {"containers": [container]}}))

    reading = read_flags([file])

    assert reading.flags == ClusterAutoscalerFlags(expander="price")
    assert [note.partition("--")[2] for note in reading.notes] == [
        "max-empty-bulk-delete=5: no flag of cluster-autoscaler since 1.33; without effect"
    ]


def test_no_name_of_a_flag_is_broken() -> None:
    names = NOT_MODELLED | WITHOUT_EFFECT | REMOVED

    assert not [name for name in names if name.endswith("-")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--scale-down-uneeded-time=5m"], "expected a flag of", id="no such flag"),
        pytest.param(["--scan-interval=0s"], "expected a duration", id="no time between scans"),
        pytest.param(["--expander=cheapest"], "expected one or several of", id="no such expander"),
        pytest.param(["--max-drain-parallelism=many"], "expected a whole number", id="no number"),
        pytest.param(["--scale-down-enabled=maybe"], "expected true or false", id="no truth"),
        pytest.param(["--scale-down-utilization-threshold=x"], "expected a share", id="no share"),
    ],
)
def test_wrong_flags_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_flags(words, "here")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("kind: Service", "expected a workload that runs", id="something else"),
        pytest.param(MANIFESTS.replace('["^q/"]', '["["]'), "regular expressions", id="pattern"),
        pytest.param(MANIFESTS.replace("50:", "high:"), "a whole number", id="priority"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "autoscaler.yaml"
    file.write_text(text)

    with pytest.raises(InputError, match=message):
        read_flags([file])


@pytest.mark.parametrize(
    ("flags", "removed_s"),
    [
        pytest.param({}, 760.0, id="ten minutes after the change"),
        pytest.param({"scale_down_unneeded_time": 60.0}, 600.0, id="delay after the launch"),
        pytest.param(
            {"scale_down_unneeded_time": 60.0, "scale_down_delay_after_add": 30.0},
            220.0,
            id="one minute",
        ),
        pytest.param({"scale_down_enabled": False}, None, id="never"),
    ],
)
def test_times(flags: dict[str, Any], removed_s: float | None) -> None:
    objects = [make_workload("web", 4), make_timeline(("2m", {"web": 0}))]

    report = run_scaled(objects, [make_pool(SMALL)], make_options(**flags), until_s=HOUR)

    assert removals(report) == {"p-1": removed_s}


def make_gpu_nodes(share: str) -> list[Any]:
    """Three nodes with eight GPUs each, of which a pod has some."""
    nodes = [
        make_node(
            f"n{i}",
            cpu="64",
            memory="256Gi",
            labels={"bayplan.dev/pool": "p", "node.kubernetes.io/instance-type": "gpu"},
            extended={GPU: 8},
        )
        for i in range(3)
    ]
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {GPU: share}}}
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "train"}},
    }
    train = make_workload("train", 3, containers=[container], topologySpreadConstraints=[apart])
    return [*nodes, train]


@pytest.mark.parametrize(
    ("share", "flags", "left"),
    [
        pytest.param("5", {}, 3, id="5 of 8 GPUs are more than half"),
        pytest.param("4", {}, 3, id="the spread keeps nodes with half of their GPUs"),
        pytest.param("2", {"scale_down_gpu_utilization_threshold": 0.2}, 3, id="a lower threshold"),
    ],
)
def test_nodes_with_gpus_are_judged_by_them(share: str, flags: dict[str, Any], left: int) -> None:
    amounts = {"cpu": 64_000, "memory": 256 << 30, "pods": 110, GPU: 8}
    kind = make_type("gpu", 64, 9.0)
    kind = type(kind)("gpu", amounts, amounts, kind.labels, price=9.0)

    report = run_scaled(
        make_gpu_nodes(share), [make_pool(kind)], make_options(**flags), until_s=HOUR
    )

    assert sum(end is None for end in removals(report).values()) == left


@pytest.mark.parametrize(
    ("expander", "expected"),
    [
        pytest.param("most-pods", "big", id="most-pods"),
        pytest.param("least-nodes", "big", id="least-nodes"),
        pytest.param("least-nodes,price", "big", id="a chain"),
        pytest.param("priority,least-waste", "small", id="the ConfigMap, then the waste"),
    ],
)
def test_expanders(tmp_path: Path, expander: str, expected: str) -> None:
    file = tmp_path / "autoscaler.yaml"
    file.write_text(MANIFESTS.replace('["^q/"]', '["/small$"]'))
    options = AutoscalerOptions(
        autoscaler="cluster-autoscaler",
        expander=expander,
        priorities=read_flags([file]).priorities,
    )
    apart = [make_workload("web", 5), make_workload("large", 1, "10")]

    report = run_scaled(apart, [make_pool(SMALL, BIG)], options)

    assert scaling_of(report).nodes[0].type == expected


@pytest.mark.parametrize(
    ("is_balanced", "pools"),
    [
        pytest.param(False, {"a"}, id="one group grows"),
        pytest.param(True, {"a", "b"}, id="similar groups grow together"),
    ],
)
def test_similar_groups_are_balanced(is_balanced: bool, pools: set[str]) -> None:
    groups = [
        make_pool(make_type("m", 4, 0.2, pool=name, zones=(name,)), name=name, weight=weight)
        for name, weight in (("a", 5), ("b", 1))
    ]
    options = make_options(expander="priority", balance_similar_node_groups=is_balanced)

    report = run_scaled([make_workload("web", 4, "4")], groups, options)

    assert {node.pool for node in scaling_of(report).nodes} == pools
    assert not report.pending


@pytest.mark.parametrize(
    ("more", "flags", "is_kept"),
    [
        pytest.param({}, {}, False, id="nothing keeps it"),
        pytest.param({"volumes": [{"name": "v", "emptyDir": {}}]}, {}, True, id="local storage"),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"skip_nodes_with_local_storage": False},
            False,
            id="local storage that may be lost",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "annotations": {
                    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "v"
                },
            },
            {},
            False,
            id="a volume that may be lost",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "annotations": {
                    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "w"
                },
            },
            {},
            True,
            id="another volume may be lost",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
            {},
            False,
            id="a volume in memory",
        ),
    ],
)
def test_pods_that_keep_a_node(more: dict[str, Any], flags: dict[str, Any], is_kept: bool) -> None:
    """Two nodes with a pod each, which would both fit on one."""
    objects = [
        make_workload("web", 1, **more),
        make_workload("full", 2, "3"),
        make_timeline(("2m", {"full": 0}), ("2m10s", {"web": 2})),
    ]

    report = run_scaled(objects, [make_pool(SMALL)], make_options(**flags), until_s=HOUR)

    left = sum(end is None for end in removals(report).values())
    assert left == (2 if is_kept else 1)


def test_options_of_a_group() -> None:
    slow = make_pool(SMALL, group_options={"scaledownunneededtime": 1800.0})
    objects = [make_workload("web", 4), make_timeline(("2m", {"web": 0}))]

    report = run_scaled(objects, [slow], make_options(), until_s=HOUR)

    assert removals(report) == {"p-1": 1960.0}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"scaledownunneededtime": "5m"}, {"scaledownunneededtime": 300.0}, id="time"),
        pytest.param(
            {"scaledowngpuutilizationthreshold": 0.3, "ignoredaemonsetsutilization": True},
            {"scaledowngpuutilizationthreshold": 0.3, "ignoredaemonsetsutilization": 1.0},
            id="a share and a truth",
        ),
        pytest.param({"scaledownunneededtime": "soon"}, None, id="no time"),
        pytest.param({"scaledowntime": "5m"}, None, id="no such option"),
    ],
)
def test_options_of_a_group_are_read(
    options: dict[str, Any], expected: dict[str, float] | None
) -> None:
    capacity = {"cpu": 4, "memory": "16Gi"}
    types = [{"name": "t", "capacity": capacity, "price": 1}]
    tree = {
        "apiVersion": "bayplan.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "p"},
        "spec": {"nodeTypes": types, "autoscalingOptions": options},
    }
    problems = Problems()

    pool = read_pool_document(tree, NO_TABLE, "here", problems)

    assert bool(len(problems)) == (expected is None)
    assert expected is None or pool.group_options == expected
