"""Capacity: how many more pods fit, in which mix, and which resource runs out."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.answers import capacity as capacity_module
from bayplan.answers.capacity import Capacity, find_capacity
from bayplan.answers.pod_kinds import PodKind, read_pod_kinds
from bayplan.errors import InputError
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.random_examples import examples


def capacity(objects: list[Any], *pods: Any, **options: Any) -> Capacity:
    kinds = [pod if isinstance(pod, PodKind) else PodKind(pod.name, pod) for pod in pods]
    return find_capacity(objects, kinds, **options)


def test_copies_are_placed_until_one_does_not_fit() -> None:
    objects = [
        make_node("a", cpu="4"),
        make_node("b", cpu="2"),
        make_node("c", unschedulable=True),
        make_pod("runs", cpu="1", node_name="a"),
    ]

    found = capacity(objects, make_pod("p", cpu="1"))

    (kind,) = found.kinds
    assert (found.fits, found.rounds, found.is_limited) == (5, 5, False)
    assert dict(kind.nodes) == {"a": 3, "b": 2}
    assert dict(kind.refusals) == {"Insufficient cpu": 2, "node(s) were unschedulable": 1}
    assert found.bottleneck == "cpu"
    assert found.histogram() == {3: 1, 2: 1, 0: 1}
    (cpu,) = [room for room in found.resources if room.resource == "cpu"]
    assert (cpu.before, cpu.after, cpu.free, cpu.allocatable) == (1000, 6000, 4000, 10000)


def test_a_taint_is_named_where_the_nodes_with_the_resource_have_it() -> None:
    gpus = {"example.com/gpu": 4}
    tainted = [
        make_node(f"g{i}", extended=gpus, taints=["example.com/gpu:NoSchedule"]) for i in range(2)
    ]

    found = capacity(
        [*tainted, make_node("a", cpu="1")], make_pod("p", cpu="2", requests={"example.com/gpu": 1})
    )

    assert (found.fits, found.bottleneck) == (0, "")
    assert found.obstacle == (
        "2 nodes that have what it requests: node(s) had untolerated taint(s)"
    )
    assert found.to_dict()["obstacle"] == found.obstacle


def test_a_resource_that_no_node_has_is_the_bottleneck() -> None:
    found = capacity([make_node("a")], make_pod("p", requests={"example.com/gpu": 1}))

    assert (found.bottleneck, found.obstacle) == ("example.com/gpu", "")


def test_only_whole_mixes_are_counted() -> None:
    large = PodKind("large", make_pod("large", cpu="2"))
    small = PodKind("small", make_pod("small", cpu="1"), 2)

    found = capacity([make_node("a", cpu="7"), make_node("b", cpu="4")], large, small)

    assert (found.rounds, [kind.fits for kind in found.kinds]) == (2, [2, 4])
    assert found.first_refused == "small"
    assert [kind.fits_alone for kind in found.kinds] == [True, True]
    assert found.bottleneck == "cpu"


@pytest.mark.parametrize(
    ("nodes", "fits"),
    [
        pytest.param(("a",), 4, id="one node by its name"),
        pytest.param(("a", "b"), 8, id="two nodes"),
        pytest.param(("disk=ssd",), 8, id="a label"),
        pytest.param(("disk=ssd", "b"), 4, id="a label and a name"),
    ],
)
def test_copies_can_be_restricted_to_nodes(nodes: tuple[str, ...], fits: int) -> None:
    objects = [
        make_node("a", cpu="4"),
        make_node("b", cpu="4", labels={"disk": "ssd"}),
        make_node("c", cpu="4", labels={"disk": "ssd"}),
    ]

    assert capacity(objects, make_pod("p", cpu="1"), nodes=nodes).fits == fits


def test_copies_do_not_preempt_and_come_after_pending_pods() -> None:
    objects = [
        make_node("a", cpu="4"),
        make_pod("low", cpu="2", node_name="a"),
        make_pod("waits", cpu="1"),
    ]

    found = capacity(objects, make_pod("high", cpu="1", priority=1000))

    assert found.fits == 1


def test_the_search_stops_at_the_limit() -> None:
    found = capacity([make_node("a", cpu="4")], make_pod("p", cpu="1"), limit=2)

    assert (found.fits, found.is_limited, found.bottleneck) == (2, True, "")


def test_a_reason_other_than_a_resource_is_reported() -> None:
    found = capacity([make_node("a")], make_pod("p", host_ports=[80]))

    assert (found.fits, found.bottleneck) == (1, "")
    assert list(found.kinds[0].refusals.values()) == [1]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 8)), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(1, 3),
)
@settings(max_examples=examples(25))
def test_the_answer_fits_and_one_more_pod_does_not(
    sizes: list[tuple[int, int]], cpu: int, memory: int
) -> None:
    nodes = [make_node(f"n{i}", cpu=str(c), memory=f"{m}Gi") for i, (c, m) in enumerate(sizes)]
    pod = make_pod("p", cpu=str(cpu), memory=f"{memory}Gi")

    fits = capacity(nodes, pod).fits

    copies = [pod.replace(name=f"p{i}", uid=f"p{i}") for i in range(fits + 1)]
    assert len(Simulation([*nodes, *copies[:-1]]).run().pending) == 0
    assert len(Simulation([*nodes, *copies]).run().pending) == 1


ZONE = "topology.kubernetes.io/zone"
SELECTOR = {"matchLabels": {"app": "p"}}
ANTI = {"labelSelector": SELECTOR, "topologyKey": ZONE}
KINDS: dict[str, dict[str, Any]] = {
    "amounts": {},
    "tolerates": {"tolerations": ["gpu"]},
    "prefers nodes": {
        "node_affinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "preference": {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]},
                }
            ]
        }
    },
    "prefers to spread": {
        "spread": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": SELECTOR,
            }
        ]
    },
    "must spread": {
        "spread": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": SELECTOR,
            }
        ]
    },
    "one per zone": {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ANTI]}}
    },
    "host port": {"host_ports": [80]},
    "gated": {"spec": {"schedulingGates": [{"name": "wait"}]}},
}


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.booleans(), st.integers(0, 3)),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(sorted(KINDS)),
    st.booleans(),
)
@settings(max_examples=examples(50), deadline=None)
def test_counted_copies_are_those_that_the_scheduler_places(
    sizes: list[tuple[int, str, bool, int]], kind: str, is_kept_away: bool
) -> None:
    objects: list[Any] = [
        make_node(
            f"n{i}",
            cpu=str(cpu),
            pods=5,
            labels={ZONE: zone},
            taints=["gpu:NoSchedule"] if gpu else [],
        )
        for i, (cpu, zone, gpu, _) in enumerate(sizes)
    ]
    keeps: dict[str, Any] = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ANTI]}}
    }
    objects += [
        make_pod(f"r{i}-{j}", cpu="500m", node_name=f"n{i}", **(keeps if is_kept_away else {}))
        for i, (_, _, _, running) in enumerate(sizes)
        for j in range(running)
    ]
    pod = make_pod("p", cpu="700m", labels={"app": "p"}, **KINDS[kind])

    counted = capacity(objects, pod)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacity_module._Filling, "_counts", lambda filling: None)
        placed = capacity(objects, pod)
    assert counted.to_dict() == placed.to_dict()


def test_copies_are_counted_without_a_limit_and_without_placing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [make_node(f"n{i}", cpu="64", pods=1000) for i in range(250)]
    monkeypatch.setattr(capacity_module._Filling, "_place", None)

    found = capacity(nodes, make_pod("p", cpu="100m"))

    assert (found.fits, found.is_limited) == (160_000, False)


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: c}]}\n"


def test_a_pod_of_a_cron_job_is_a_kind(tmp_path: Path) -> None:
    container = "{name: c, image: i, resources: {requests: {cpu: '3'}}}"
    (tmp_path / "c.yaml").write_text(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: report}\nspec: {schedule: '0 2 * * *', "
        "jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: ["
        f"{container}"
        "]}}}}}\n"
    )

    (kind,) = read_pod_kinds([str(tmp_path / "c.yaml")])

    assert kind.pod.requests["cpu"] == 3000


def test_kinds_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD)
    template = "{metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: c}]}}"
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, namespace: shop}\n"
        f"spec: {{selector: {{matchLabels: {{app: w}}}}, template: {template}}}"
    )
    (tmp_path / "w.yaml").write_text(deployment)

    first, second = read_pod_kinds([str(tmp_path / "a.yaml"), f"{tmp_path}/w.yaml:3"])

    assert (first.pod.name, first.ratio) == ("p", 1)
    assert (second.pod.key, second.pod.labels, second.ratio) == ("shop/w", {"app": "w"}, 3)


def test_pods_of_a_folder_are_a_mix(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(POD)
    (tmp_path / "two.yaml").write_text(POD + "---\n" + POD.replace("p}", "q}"))
    (tmp_path / "none.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: 'n'}")

    kinds = read_pod_kinds([f"{tmp_path}:2"])

    names = [f"{tmp_path}/one.yaml", "pod/default/p", "pod/default/q"]
    assert [(kind.name, kind.ratio) for kind in kinds] == [(name, 2) for name in names]


SPARK = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {generateName: pi-}
spec: {driver: {cores: 1}, executor: {cores: 2, instances: 3}}
"""
REFERENCE = """
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec: {workloadRef: {kind: Deployment, name: web}}
"""


def test_templates_of_a_custom_workload_are_in_the_proportion_of_its_pods(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SPARK)

    kinds = read_pod_kinds([f"{tmp_path}/s.yaml:2"])

    found = [(kind.pod.name, kind.pod.requests["cpu"], kind.ratio) for kind in kinds]
    assert found == [("pi-driver", 1000, 2), ("pi-exec", 2000, 6)]


def test_copies_do_not_collide_with_pods_of_a_controller() -> None:
    objects = [make_node("a", cpu="4"), make_pod("db-1"), make_pod("db-2")]

    assert capacity(objects, PodKind("db", make_pod("db", cpu="1"), 2)).fits == 4


@pytest.mark.parametrize(
    ("text", "suffix", "problem"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: 'n'}", "", "got none", id="none"
        ),
        pytest.param(REFERENCE, "", "got none", id="a workload whose pods another one makes"),
        pytest.param(POD, ":0", "expected a ratio of at least 1; got 0", id="ratio zero"),
    ],
)
def test_a_file_without_a_pod_is_rejected(
    tmp_path: Path, text: str, suffix: str, problem: str
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text)

    with pytest.raises(InputError, match=problem):
        read_pod_kinds([f"{file}{suffix}"])


@pytest.mark.parametrize(
    ("pod", "options", "problem"),
    [
        pytest.param(
            make_pod("p", spec={"schedulerName": "other"}),
            {},
            'p: spec.schedulerName: expected one of default-scheduler; got "other"',
            id="an unknown scheduler",
        ),
        pytest.param(
            make_pod("p", spec={"priorityClassName": "gold"}),
            {},
            "spec.priorityClassName: expected a PriorityClass",
            id="an unknown priority class",
        ),
        pytest.param(make_pod("p"), {"nodes": ["b"]}, 'got "b"; there are a', id="an unknown node"),
    ],
)
def test_invalid_input_is_reported(pod: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        capacity([make_node("a")], pod, **options)

    assert problem in str(caught.value)


def test_a_quota_ends_the_search_and_is_the_reason() -> None:
    quota = make_object("ResourceQuota", "q", spec={"hard": {"requests.cpu": "3"}})
    pod = make_pod("p", cpu="1")

    found = find_capacity([make_node("n", cpu="16"), quota], [PodKind("p", pod)])

    assert found.rounds == 3
    assert found.kinds[0].message == (
        'pods "p-copy-4" is forbidden: exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=3, '
        "limited: requests.cpu=3"
    )


def test_a_limit_range_sets_the_size_of_the_copies() -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "2"}}]
    pod = make_object("Pod", "p", spec={"containers": [{"name": "c", "image": "i"}]})

    found = find_capacity(
        [make_node("n", cpu="16"), make_object("LimitRange", "r", spec={"limits": limits})],
        [PodKind("p", pod)],
    )

    assert found.rounds == 8
