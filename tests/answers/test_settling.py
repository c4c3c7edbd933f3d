"""One notion of now: questions are about the cluster after its waiting pods were placed, as simulate does."""

from typing import Any

import pytest

from bayplan.answers import explain
from bayplan.answers.account import PodVerdict
from bayplan.answers.capacity import find_capacity
from bayplan.answers.pod_kinds import PodKind
from bayplan.answers.rebalance import plan_rebalance
from bayplan.answers.stage import Stage
from bayplan.answers.what_if import Cordon, ask_what_if
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.sim import Simulation, SimulationReport
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_object, make_pod
from bayplan.trials import Settlement, TrialCluster
from tests.rig.objects import owned, stored

ZONES = ("a", "b", "c")
ZONE = "topology.kubernetes.io/zone"
GPU = "example.com/gpu"


def make_workload(kind: str, name: str, replicas: int, cpu: str, **spec: Any) -> Any:
    """A workload in namespace shop, whose pods ask for `cpu`; `spec` is the rest of the template's."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    sizes: dict[str, Any] = {"replicas": replicas}
    if kind == "Job":
        sizes = {"parallelism": replicas, "completions": replicas}
        template["spec"]["restartPolicy"] = "Never"
    elif kind == "DaemonSet":
        sizes = {}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    return make_object(
        kind, name, namespace="shop", spec={**sizes, **selector, "template": template}
    )


def spread(app: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }


def apart(app: str) -> dict[str, Any]:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def make_shop() -> list[Any]:
    """A cluster with everything that makes pods wait: 24 nodes in three zones, workloads of all kinds, preemption."""
    objects: list[Any] = [
        make_object("PriorityClass", "high", value=1000),
        make_object("PriorityClass", "low", value=-10),
    ]
    for number in range(21):
        zone = ZONES[number % 3]
        objects.append(make_node(f"node-{number}", zone=zone, cpu="8", memory="32Gi"))
    gpu = [make_node(f"gpu-{z}", zone=z, extended={GPU: 4}, taints=["gpu=:NoSchedule"]) for z in ZONES]  # fmt: skip
    tolerant = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    running = [
        make_pod(f"batch-{n}", namespace="shop", cpu="3", priority=-10, node_name=f"node-{n % 21}")
        for n in range(30)
    ]
    return [
        *objects,
        *gpu,
        *(owned(pod, "batch-1") for pod in running),
        make_workload("Deployment", "web", 12, "1", topologySpreadConstraints=[spread("web")]),
        make_workload("Deployment", "cache", 26, "500m", affinity=apart("cache")),
        make_workload("Deployment", "api", 14, "2", priorityClassName="high"),
        make_workload("StatefulSet", "db", 5, "2"),
        make_workload("DaemonSet", "logs", 0, "250m"),
        make_workload("Job", "train", 3, "2", **tolerant, nodeSelector={ZONE: "a"}),
        make_pod("index", namespace="shop", cpu="50"),
        make_pod("gated", namespace="shop", gates=["example.com/approval"]),
        make_object(
            "PodDisruptionBudget",
            "web",
            namespace="shop",
            spec={"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
        ),
    ]


def settled_view(objects: list[Any], as_is: bool = False) -> TrialCluster:
    stage = Stage(objects, as_is=as_is)
    stage.begin()
    return stage.view()


@pytest.fixture(scope="module")
def shop() -> tuple[SimulationReport, TrialCluster]:
    return Simulation(make_shop()).run(), settled_view(make_shop())


def test_simulate_and_explain_agree_about_every_pod(
    shop: tuple[SimulationReport, TrialCluster],
) -> None:
    report, view = shop
    by_key = {result.pod.key: result for result in report.pods}
    assert report.placed
    assert report.pending
    assert report.preempted

    told = {pod.key: explain(view, pod, nearest=0) for pod in view.pods()}

    assert set(by_key) <= set(told)
    for key, account in told.items():
        result = by_key.get(key)
        if result is None:
            assert account.verdict is PodVerdict.PLACED, key
        elif result.is_placed:
            assert (account.verdict, account.node) == (
                PodVerdict.FITS,
                result.attempt.node_name,
            ), key
        else:
            waits = PodVerdict.GATED if "gated" in key else PodVerdict.UNSCHEDULABLE
            assert account.verdict is waits, key


def test_an_explanation_says_what_became_of_the_waiting_pods(
    shop: tuple[SimulationReport, TrialCluster],
) -> None:
    report, view = shop

    account = explain(view, view.pods()[0], nearest=0)

    assert account.settled == Settlement(
        waiting=len(report.pods), placed=len(report.placed), preempted=len(report.preempted)
    )


def test_a_pod_that_preempts_names_its_victims(
    shop: tuple[SimulationReport, TrialCluster],
) -> None:
    report, view = shop
    victim, preemptor = report.preempted[0]
    pod = stored(view.cluster, Pod, preemptor.name, preemptor.namespace)

    account = explain(view, pod, nearest=0)

    assert account.preemption is not None
    assert victim.name in [ref.name for ref in account.preemption.victims]


SMALL: list[Any] = [
    make_node("a", cpu="4"),
    make_node("b", cpu="4"),
    make_pod("runs", cpu="1", node_name="a"),
    make_pod("waits", cpu="3"),
    make_pod("huge", cpu="9"),
]


def test_as_is_no_pod_is_placed_before_the_question() -> None:
    view = settled_view(SMALL, as_is=True)

    account = explain(view, stored(view.cluster, Pod, "waits"))

    assert account.settled == Settlement(waiting=2, as_is=True)
    assert (account.verdict, account.node) == (PodVerdict.FITS, "b")
    assert not stored(view.cluster, Pod, "waits").node_name


@pytest.mark.parametrize(
    ("as_is", "fits"),
    [
        pytest.param(False, 4, id="the pod that waits takes three of the cores"),
        pytest.param(True, 7, id="as it was read all cores are free but one"),
    ],
)
def test_capacity_is_about_the_same_moment(as_is: bool, fits: int) -> None:
    answer = find_capacity(SMALL, [PodKind("one", make_pod("one", cpu="1"))], as_is=as_is)

    assert answer.fits == fits
    assert answer.settled == Settlement(waiting=2, placed=0 if as_is else 1, as_is=as_is)


def test_a_change_is_made_to_the_settled_cluster_or_to_the_one_that_was_read() -> None:
    settled = ask_what_if(SMALL, [Cordon(("b",))])
    as_read = ask_what_if(SMALL, [Cordon(("b",))], as_is=True)

    assert [change.key for change in settled.pods] == []
    assert (list(settled.pending_before), list(settled.pending_after)) == (
        ["default/huge"],
        ["default/huge"],
    )
    assert [(change.key, change.now.node) for change in as_read.pods] == [("default/waits", "a")]
    assert settled.settled.placed == 1
    assert as_read.settled.as_is


@pytest.mark.parametrize("as_is", [False, True])
def test_a_plan_of_moves_says_which_moment_it_is_about(as_is: bool) -> None:
    plan = plan_rebalance(SMALL, as_is=as_is)

    assert plan.settled == Settlement(waiting=2, placed=0 if as_is else 1, as_is=as_is)


def test_a_tie_after_a_change_does_not_depend_on_the_ties_before_it() -> None:
    nodes = [make_node(f"node-{n}", zone="a") for n in range(8)]
    read: list[Any] = [*nodes, *(make_pod(f"p{n}", cpu="100m") for n in range(8))]
    stage = Stage(read, Settings(seed=5))
    stage.begin()
    placed = [pod for pod in stage.cluster.list("Pod") if pod.node_name]

    first = ask_what_if(read, [Cordon(("node-0",))], Settings(seed=5))
    again = ask_what_if([*nodes, *placed], [Cordon(("node-0",))], Settings(seed=5))

    assert [change.to_dict() for change in first.pods] == [c.to_dict() for c in again.pods]


@pytest.mark.parametrize(
    ("settlement", "text"),
    [
        pytest.param(Settlement(), "", id="no pod waited"),
        pytest.param(Settlement(waiting=1, placed=1), "after placing 1 waiting pod", id="one"),
        pytest.param(
            Settlement(waiting=1500, placed=1200, preempted=3),
            "after placing 1,200 of 1,500 waiting pods, preempting 3",
            id="some are placed, with preemption",
        ),
        pytest.param(
            Settlement(waiting=2), "after trying 2 waiting pods: none fits", id="none fits"
        ),
        pytest.param(
            Settlement(waiting=2, as_is=True),
            "about the cluster as it was read, in which 2 pods wait",
            id="as it was read",
        ),
    ],
)
def test_the_settlement_in_words(settlement: Settlement, text: str) -> None:
    assert settlement.text == text


def test_a_timeline_is_no_moment() -> None:
    timeline = make_object("Timeline", "", events=[{"at": "1s", "remove": ["node/a"]}])

    with pytest.raises(InputError, match="expected a cluster at one moment; got a Timeline"):
        settled_view([make_node("a"), timeline])


def test_a_view_has_the_cache_of_its_stage_and_leaves_it_as_it_was() -> None:
    stage = Stage([*make_shop()])
    stage.begin()
    before = stage.totals()
    view = stage.view()
    placed = next(pod for pod in view.pods() if pod.node_name)
    pending = next(pod for pod in view.pods() if not pod.node_name)

    told = [explain(view, pod) for pod in (placed, pending)]
    alone = TrialCluster([obj for kind in view.cluster.kinds() for obj in view.cluster.list(kind)])

    assert view.table is stage.simulation.scheduler.cache.table
    assert stage.totals() == before
    for account, pod in zip(told, (placed, pending), strict=True):
        again = explain(alone, pod)
        assert [node.total for node in account.scores] == [node.total for node in again.scores]
        assert account.refused == again.refused


def test_a_pod_that_fits_by_now_and_that_no_event_retries_is_pending_with_a_note() -> None:
    """The hint of kube-scheduler for new pods does not read the namespace selectors of affinity."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = make_object("Pod", "web", namespace="shop", spec={"affinity": affinity})
    db = make_pod("db", namespace="data", labels={"app": "db"})
    data = make_object("Namespace", "data", metadata={"labels": {"team": "a"}})
    view = settled_view([make_node("n"), data, web, db])

    told = explain(view, stored(view.cluster, Pod, "web", "shop"))

    assert told.verdict is PodVerdict.UNSCHEDULABLE
    assert told.feasible_nodes == 1
    assert any("kube-scheduler tries it again after five minutes" in one for one in told.remarks)
