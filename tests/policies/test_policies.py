"""The policies on shares of GPUs: preferences of each, by hand, and invariants of all."""

from bisect import bisect_right
from collections import defaultdict
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from bayplan.api.gpus import GPU_INDEX, GPU_MILLI, GPU_MODEL
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.config.load import load_config
from bayplan.errors import ConfigError, InputError
from bayplan.framework import CLUSTER, CycleState
from bayplan.policies import (
    FGD,
    GpuBestFit,
    GpuClustering,
    GpuDotProduct,
    GpuPacking,
    GpuRandom,
    GpuShare,
)
from bayplan.policies.fgd import LISTED_STEPS
from bayplan.policies.gpu_share import INVALID, NO_ROOM
from bayplan.policies.ledger import GpuLedger, fullest
from bayplan.sim import Simulation
from bayplan.table import ALL, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

TASKS = [
    {"milliCpu": 4000, "gpuMilli": 500, "weight": 3},
    {"milliCpu": 2000, "gpuMilli": 2000, "models": ["T4"]},
    {"milliCpu": 1000, "weight": 2},
    {"gpuMilli": 1000},
]
POLICIES: list[Any] = [
    pytest.param(FGD, {"tasks": TASKS}, id="FGD"),
    pytest.param(FGD, None, id="FGD by the pods on nodes"),
    pytest.param(GpuBestFit, {"milliCpu": 64_000, "gpuMilli": 2000}, id="GpuBestFit"),
    pytest.param(GpuClustering, None, id="GpuClustering"),
    pytest.param(GpuDotProduct, None, id="GpuDotProduct"),
    pytest.param(GpuPacking, None, id="GpuPacking"),
    pytest.param(GpuRandom, None, id="GpuRandom"),
    pytest.param(GpuShare, None, id="GpuShare"),
]


def gpu_node(name: str, gpus: int, cpu: str = "64", model: str = "") -> Node:
    labels = {GPU_MODEL: model} if model else {}
    extended = {GPU_MILLI: gpus * 1000} if gpus else {}
    return make_node(name, cpu=cpu, extended=extended, labels=labels)


def gpu_pod(name: str, milli: int, cpu: str = "4", node_name: str = "", **more: Any) -> Pod:
    requests: dict[str, int | str] = {"cpu": cpu, **({GPU_MILLI: milli} if milli else {})}
    return make_pod(name, requests=requests, node_name=node_name, **more)


def some_table() -> NodeTable:
    return make_table(
        gpu_node("two", 2, model="T4"),
        gpu_node("idle", 2, model="A10"),
        gpu_node("one", 1, cpu="8"),
        gpu_node("none", 0),
        gpu_node("eight", 8, cpu="96"),
        pods=[
            gpu_pod("a", 400, node_name="two"),
            gpu_pod("b", 700, node_name="two"),
            gpu_pod("c", 1000, node_name="eight"),
            gpu_pod("d", 2000, node_name="eight"),
            gpu_pod("e", 250, node_name="eight"),
            gpu_pod("f", 0, node_name="one"),
        ],
    )


SOME_PODS = [gpu_pod(f"p{milli}", milli) for milli in (0, 300, 600, 1000, 1500, 2000, 8000)]


@pytest.mark.parametrize(("policy", "args"), POLICIES)
def test_conformance(policy: Any, args: Any) -> None:
    check_conformance(policy, SOME_PODS, some_table(), args)


@pytest.mark.parametrize(("policy", "args"), POLICIES)
def test_filter_goes_by_each_gpu(policy: Any, args: Any) -> None:
    table = some_table()
    plugin = policy.from_args(args, make_handle(table))

    def feasible(milli: int) -> list[bool]:
        pod = gpu_pod("p", milli)
        return list(plugin.filter_rows(CycleState(), pod, table, ALL).feasible.tolist())

    # free: two 600 and 300, idle 1000 twice, one 1000, none, eight 1000 five times and one 750
    assert feasible(0) == [True, True, True, True, True]
    assert feasible(600) == [True, True, True, False, True]
    assert feasible(700) == [False, True, True, False, True]
    assert feasible(2000) == [False, True, False, False, True]
    assert feasible(6000) == [False, False, False, False, False]


def test_refusals_say_whether_preemption_can_help() -> None:
    table = some_table()
    plugin = GpuShare.from_args(None, make_handle(table))

    verdict = plugin.filter_rows(CycleState(), gpu_pod("p", 2000), table, ALL)
    statuses = [verdict.status(row).code.name for row in range(5)]
    invalid = plugin.filter_rows(CycleState(), gpu_pod("p", 1500), table, ALL)

    assert statuses == [
        "Unschedulable",
        "Success",
        "UnschedulableAndUnresolvable",
        "UnschedulableAndUnresolvable",
        "Success",
    ]
    assert verdict.histogram() == {NO_ROOM: 3}
    assert invalid.histogram() == {INVALID: 5}


def points(policy: Any, args: Any, pod: Pod, *nodes: Node, pods: tuple[Pod, ...] = ()) -> list[int]:
    table = make_table(*nodes, pods=pods)
    plugin = policy.from_args(args, make_handle(table))
    return list(plugin.score_rows(CycleState(), pod, table, ALL).tolist())


@pytest.mark.parametrize(
    ("tasks", "milli", "expected"),
    [
        # 600 of 1000 left for tasks of half a GPU: nothing is unusable before, 600 - 300 after
        pytest.param([{"gpuMilli": 500}], 300, 42, id="0.3 of a GPU more is unusable"),
        # 400 is left of the used GPU either way; the share takes 100 of that
        pytest.param([{"gpuMilli": 900}], 100, 52, id="0.1 less: it takes what is unusable"),
        pytest.param([{"gpuMilli": 500}], 1000, 50, id="a whole GPU of two changes nothing"),
        pytest.param([{"gpuMilli": 2000}], 1000, 26, id="it takes one of two wanted together"),
        pytest.param(
            [{"milliCpu": 64_000}], 1000, 73, id="for tasks without GPUs, all is unusable"
        ),
    ],
)
def test_fgd_by_hand(tasks: list[dict[str, Any]], milli: int, expected: int) -> None:
    nodes = {
        300: (gpu_node("n", 1), (gpu_pod("a", 400, node_name="n"),)),
        100: (gpu_node("n", 1), (gpu_pod("a", 600, node_name="n"),)),
        1000: (gpu_node("n", 2), ()),
    }
    node, pods = nodes[milli]

    found = points(FGD, {"tasks": tasks}, gpu_pod("p", milli, cpu="1"), node, pods=pods)

    assert found == [expected]


def test_fgd_counts_cpu() -> None:
    """With 6 of 8 cores for the pod, the tasks for 4 cores do not fit any more: all that is free is unusable."""
    tasks = [{"milliCpu": 4000, "gpuMilli": 500}]
    node = gpu_node("n", 1, cpu="8")

    assert points(FGD, {"tasks": tasks}, gpu_pod("p", 0, cpu="6"), node) == [26]  # 1 GPU more
    assert points(FGD, {"tasks": tasks}, gpu_pod("p", 0, cpu="4"), node) == [50]


def test_fgd_counts_models() -> None:
    tasks = [{"gpuMilli": 1000, "models": ["T4"]}]
    nodes = (gpu_node("a", 1, model="T4"), gpu_node("b", 1, model="A10"), gpu_node("c", 1))

    # On the T4, of which 700 would be left: 0.7 more unusable; elsewhere 0.3 of 1 is unusable no longer.
    assert points(FGD, {"tasks": tasks}, gpu_pod("p", 300), *nodes) == [33, 57, 57]


def test_fgd_chooses_the_gpu_with_the_best_gradient() -> None:
    """Wanted are halves: 600 free, of which 300 would be left, are worse to touch than 1000 free, of which 700 are."""
    table = make_table(gpu_node("n", 2), pods=[gpu_pod("a", 400, node_name="n")])
    plugin = FGD.from_args({"tasks": [{"gpuMilli": 500}]}, make_handle(table))

    assert plugin.choose([600, 1000], gpu_pod("p", 300), 0) == (1,)
    assert GpuShare().choose([600, 1000], gpu_pod("p", 300), 0) == (0,)


@settings(max_examples=60)
@given(
    used=st.lists(st.integers(0, 1000), min_size=1, max_size=6),
    milli=st.integers(1, 999),
    cpu=st.sampled_from(["1", "6", "62"]),
    model=st.sampled_from(["", "T4"]),
)
def test_fgd_gives_out_the_gpu_that_the_points_are_for(
    used: list[int], milli: int, cpu: str, model: str
) -> None:
    """The points of a node are those of its best GPU, and `choose` returns that GPU."""
    on_gpus = [
        gpu_pod(f"u{i}", amount, "0", "n", annotations={GPU_INDEX: str(i)})
        for i, amount in enumerate(used)
        if amount
    ]
    table = make_table(gpu_node("n", len(used), model=model), pods=on_gpus)
    plugin = FGD.from_args({"tasks": TASKS}, make_handle(table))
    pod, free = gpu_pod("p", milli, cpu), [1000 - amount for amount in used]
    found = plugin.score_rows(CycleState(), pod, table, ALL).tolist()

    TableWriter(table).add_pod(pod.with_node("n"))
    chosen = plugin.choose(free, pod, 0)

    assert len(chosen) == (1 if max(free) >= milli else 0)
    for gpu in chosen:
        cores = {"1": 1000, "6": 6000, "62": 62_000}[cpu]
        mix, models, nodes = plugin._mix, np.array([1 if model else 0]), np.array([free])
        before = mix.unusable(mix.keys(np.array([64_000]), models), nodes)[0]
        keys = mix.keys(np.array([64_000 - cores]), models)
        fallen = before - mix.unusable_with_share(keys, nodes, milli)[0][gpu]
        assert bisect_right(LISTED_STEPS, fallen / (mix.weight * 1000)) == found[0]


def test_fgd_takes_its_tasks_from_the_pods_on_nodes() -> None:
    table = make_table(gpu_node("n", 2), gpu_node("m", 2), pods=[gpu_pod("a", 500, node_name="n")])
    plugin = FGD.from_args(None, make_handle(table))

    first = plugin.cluster_key(table)
    found = plugin.score_rows(CycleState(), gpu_pod("p", 600), table, ALL).tolist()

    assert found == [40, 40]  # of a GPU, 0.4 become unusable for halves
    assert plugin.cluster_key(table) == first


def test_best_fit_by_hand() -> None:
    """Left on `a`: 56 of 128 cores and 600 of 8000, half each: 25.6 percent."""
    pod = gpu_pod("p", 400, cpu="8")

    found = points(GpuBestFit, None, pod, gpu_node("a", 1), gpu_node("b", 8, cpu="128"))

    assert found == [74, 5]


def test_dot_product_by_hand() -> None:
    """On `a`: 64/128 x 64/128 and 1000/8000 x 500/8000, half of it: 12.9 percent."""
    pod = gpu_pod("p", 500, cpu="64")

    found = points(GpuDotProduct, None, pod, gpu_node("a", 1), gpu_node("b", 8, cpu="128"))

    assert found == [87, 71]


def test_packing_by_hand() -> None:
    nodes = (gpu_node("used", 2), gpu_node("full", 2), gpu_node("idle", 2), gpu_node("large", 8))
    pods = (gpu_pod("a", 400, node_name="used"), gpu_pod("b", 1000, node_name="full"))

    # used: 600 of a GPU are left, 6 points less than 100; full: a free GPU of a used node; then idle nodes
    assert points(GpuPacking, None, gpu_pod("p", 300), *nodes, pods=pods) == [94, 49, 31, 25]
    assert points(GpuPacking, None, gpu_pod("p", 1000), *nodes, pods=pods) == [49, 49, 31, 25]
    assert points(GpuPacking, None, gpu_pod("p", 0), *nodes, pods=pods) == [0, 0, 0, 0]


def test_clustering_by_hand() -> None:
    nodes = [gpu_node(name, 2) for name in ("alone", "mixed", "idle", "other")]
    pods = (
        gpu_pod("a", 400, node_name="alone"),
        gpu_pod("b", 400, node_name="mixed"),
        gpu_pod("c", 1000, node_name="mixed"),
        gpu_pod("d", 1000, node_name="other"),
    )

    # 25 points times the use of 8 GPUs: 6.4, 7.4, 6 and 7 of them, as 2 is the capacity of a node
    assert points(GpuClustering, None, gpu_pod("p", 300), *nodes, pods=pods) == [95, 73, 43, 21]
    assert points(GpuClustering, None, gpu_pod("p", 2000), *nodes, pods=pods) == [20, 23, 43, 21]
    assert points(GpuClustering, None, gpu_pod("p", 0), *nodes, pods=pods) == [0, 0, 0, 0]


def test_share_by_hand() -> None:
    nodes, pods = (gpu_node("a", 2), gpu_node("b", 2)), (gpu_pod("x", 400, node_name="a"),)

    assert points(GpuShare, None, gpu_pod("p", 300), *nodes, pods=pods) == [70, 30]
    assert points(GpuShare, None, gpu_pod("p", 0), *nodes, pods=pods) == [100, 100]


def test_random_draws_among_feasible_nodes_and_gpus() -> None:
    table = make_table(*[gpu_node(f"n{i}", 4) for i in range(4)])
    plugin = GpuRandom.from_args(None, make_handle(table))
    rows = np.array([1, 3])
    drawn, gpus = set(), set()
    for _ in range(60):
        state, pod = CycleState(), gpu_pod("p", 300)
        plugin.pre_score(state, pod, table, rows)
        scores = plugin.score_rows(state, pod, table, ALL).tolist()
        assert sorted(scores) == [0, 0, 0, 100]
        drawn.add(scores.index(100))
        gpus.add(plugin.choose([1000, 200, 300, 0], pod, 1))

    assert drawn == {1, 3}
    assert gpus == {(0,), (2,)}
    assert plugin.choose([100], gpu_pod("p", 300), 1) == ()


@pytest.mark.parametrize(
    ("policy", "args", "text"),
    [
        pytest.param(FGD, {"popularity": 0}, "popularity: expected a number above 0", id="none"),
        pytest.param(FGD, {"tasks": [{"weight": 0}]}, r"tasks\[0\]: expected amounts", id="weight"),
        pytest.param(
            FGD, {"tasks": [{"gpuMilli": 1500}]}, "gpuMilli: expected at most 1000", id="1.5 GPUs"
        ),
        pytest.param(FGD, {"task": []}, "unknown field `task`", id="unknown argument"),
        pytest.param(
            GpuBestFit, {"milliCpu": 0}, "milliCpu: expected a number above 0", id="no cpu"
        ),
        pytest.param(GpuBestFit, {"milliCpu": "x"}, "Expected `int`", id="not a number"),
    ],
)
def test_wrong_arguments_are_named(policy: Any, args: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        policy.from_args(args, make_handle())


def configured(name: str, tmp_path: Any, args: Any = None) -> Any:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: default-scheduler\n  plugins:\n"
        f"    multiPoint: {{enabled: [{{name: {name}, weight: 10}}]}}\n"
        + (f"  pluginConfig: [{{name: {name}, args: {args}}}]\n" if args else "")
    )
    return load_config(file)


@pytest.mark.parametrize(("policy", "args"), POLICIES)
def test_configuration_that_names_it_is_enough(policy: Any, args: Any, tmp_path: Any) -> None:
    pods = [gpu_pod(f"p{i}", 600) for i in range(3)]

    report = Simulation([gpu_node("n", 2), *pods], configured(policy.name, tmp_path, args)).run()

    assert (len(report.placed), len(report.pending)) == (2, 1)
    assert NO_ROOM in report.pending[0].attempt.message


def test_wrong_arguments_in_a_configuration(tmp_path: Any) -> None:
    config = configured("FGD", tmp_path, "{popularity: 2}")

    with pytest.raises(ConfigError, match='initializing plugin "FGD": args: popularity'):
        Simulation([gpu_node("n", 2)], config)


amounts = st.one_of(st.integers(1, 999), st.sampled_from([0, 1000, 2000]))


@pytest.mark.parametrize(("policy", "args"), POLICIES)
@settings(max_examples=5)
@given(
    gpus=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    wanted=st.lists(amounts, min_size=1, max_size=16),
    running=st.lists(amounts, max_size=3),
)
def test_no_gpu_is_allocated_twice(
    policy: Any, args: Any, gpus: list[int], wanted: list[int], running: list[int]
) -> None:
    nodes = [gpu_node(f"n{i}", count) for i, count in enumerate(gpus)]
    before = [gpu_pod(f"r{i}", milli, node_name="n0") for i, milli in enumerate(running)]
    pods = [gpu_pod(f"p{i}", milli, cpu="1") for i, milli in enumerate(wanted)]
    simulation = Simulation([*nodes, *before, *pods], plugins=[policy])

    report = simulation.run()

    ledger = GpuLedger.of(simulation.scheduler.profiles["default-scheduler"].handle)
    used: defaultdict[tuple[str, int], int] = defaultdict(int)
    placed = [(result.pod, result.attempt.node_name) for result in report.placed]
    for pod, node_name in [*placed, *((pod, "n0") for pod in before)]:
        milli = pod.requests.get(GPU_MILLI, 0)
        given_out = ledger.gpus_of(pod)
        assert len(given_out) == (max(milli // 1000, 1) if milli else 0) or pod in before
        for gpu in given_out:
            used[node_name, gpu] += min(milli, 1000)
    assert all(amount <= 1000 for amount in used.values())
    for result in report.pending:  # no pod that fits is left pending
        milli = result.pod.requests.get(GPU_MILLI, 0)
        for i, count in enumerate(gpus):
            free = [1000 - used[f"n{i}", gpu] for gpu in range(count)]
            assert not fullest(free, milli) or _lacks_amounts(simulation, i, milli)


def _lacks_amounts(simulation: Simulation, row: int, milli: int) -> bool:
    """Whether NodeResourcesFit refuses the pod: running pods without room on a GPU count in sums alone."""
    table = simulation.scheduler.profiles["default-scheduler"].handle.table
    left = table.allocatable[GPU_MILLI][row] - table.requested[GPU_MILLI][row]
    return bool(left < milli)


@pytest.mark.parametrize(
    ("policy", "args"), [param for param in POLICIES if param.id != "GpuRandom"]
)
@settings(max_examples=5)
@given(
    wanted=st.lists(st.tuples(amounts, st.sampled_from(["1", "4", "9"])), min_size=1, max_size=16),
    seed=st.integers(0, 3),
)
def test_engine_and_reference_place_alike(
    policy: Any, args: Any, wanted: list[tuple[int, str]], seed: int
) -> None:
    nodes = [gpu_node("a", 2, cpu="16"), gpu_node("b", 4, model="T4"), gpu_node("c", 1, cpu="8")]
    pods = [gpu_pod(f"p{i}", milli, cpu=cpu) for i, (milli, cpu) in enumerate(wanted)]

    class Slow(policy):  # type: ignore[misc]
        """The policy without cached results."""

        name, scope = f"Slow{policy.name}", CLUSTER

    found = []
    for kind in (policy, Slow):
        report = Simulation([*nodes, *pods], seed=seed, plugins=[kind]).run()
        found.append({r.pod.name: r.attempt.node_name for r in report.placed})

    assert found[0] == found[1]


def test_fgd_scores_all_nodes_by_the_same_tasks() -> None:
    """A case in which the tasks are read again while pods are placed."""
    wanted = [(4000, "9"), (0, "9"), (600, "1"), (500, "4"), (500, "4"), (600, "1"), (2000, "4")]
    wanted += [(250, "1"), (500, "1"), (600, "4")]

    test_engine_and_reference_place_alike.hypothesis.inner_test(FGD, None, wanted, 0)


def test_measures_of_a_run_know_what_is_free_of_each_gpu() -> None:
    nodes = [make_node("a", extended={GPU_MILLI: 2000}), make_node("b")]
    pods = [make_pod(f"p{i}", requests={GPU_MILLI: 600}) for i in range(2)]
    name = f"{GPU_MILLI}Fragmentation"

    assert Simulation([*nodes, *pods]).run().measures()[name] == 0, "800 of one node are free"
    found = Simulation([*nodes, *pods], plugins=[GpuShare]).run()
    assert found.measures()[name] == 1, "400 of each GPU are"
    assert found.parts[GPU_MILLI].tolist() == [[400, 400], [0, 0]]
