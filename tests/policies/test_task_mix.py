"""Fragmentation: the tables equal the definition, for any nodes and tasks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.gpus import GPU_MILLI, GPU_MODEL, is_valid, models_of
from bayplan.api.resources import CPU
from bayplan.policies.task_mix import GpuTaskMix, Task, task_of, typical_tasks
from bayplan.sim.measures.amounts import NodeAmounts
from bayplan.sim.measures.fragmentation import RequestMix
from bayplan.sim.measures.fragmentation import unusable as measured_unusable
from bayplan.sim.totals import PODS
from bayplan.testing.builders import make_pod
from tests.rig.random_examples import examples

WHOLE = 1000


def unusable_for(task: Task, milli_cpu: int, free: list[int], model: str) -> int:
    """The definition, for one task and one node."""
    if not task.gpu_milli or (task.models and model not in task.models):
        return sum(free)
    count = max(task.gpu_milli // WHOLE, 1)
    each = min(task.gpu_milli, WHOLE)
    enough = [left for left in free if left >= each]
    if milli_cpu < task.milli_cpu or len(enough) < count:
        return sum(free)
    return sum(free) - sum(enough)


def unusable(tasks: list[Task], milli_cpu: int, free: list[int], model: str = "") -> int:
    return sum(task.weight * unusable_for(task, milli_cpu, free, model) for task in tasks)


def by_tables(tasks: list[Task], milli_cpu: int, free: list[int], model: str = "") -> int:
    mix = GpuTaskMix(tasks)
    keys = mix.keys(np.array([milli_cpu]), np.array([mix.model_number(model)]))
    return int(mix.unusable(keys, np.array([free]))[0])


@pytest.mark.parametrize(
    ("task", "milli_cpu", "free", "amount"),
    [
        pytest.param(Task(0, 500), 0, [600, 500], 0, id="a share that fits on every GPU"),
        pytest.param(Task(0, 500), 0, [600, 400], 400, id="the GPU with less left is unusable"),
        pytest.param(Task(0, 700), 0, [600, 400], 1000, id="it fits on none: all is unusable"),
        pytest.param(Task(2000, 500), 1999, [600], 600, id="too little cpu: all is unusable"),
        pytest.param(Task(2000, 500), 2000, [600], 0, id="just enough cpu"),
        pytest.param(Task(1000, 0), 9000, [600], 600, id="a task without GPUs uses none"),
        pytest.param(Task(0, 1000), 0, [1000, 999], 999, id="a whole GPU must be free as a whole"),
        pytest.param(Task(0, 2000), 0, [1000, 999], 1999, id="one whole GPU is too few for two"),
        pytest.param(Task(0, 2000), 0, [1000, 1000, 10], 10, id="two of two"),
        pytest.param(Task(0, 2000), 0, [1000] * 3, 0, id="the third one is usable for the next"),
        pytest.param(Task(0, 500, frozenset({"A"})), 0, [600], 600, id="another model"),
        pytest.param(Task(0, 500, frozenset({"T4"})), 0, [600], 0, id="the right model"),
        pytest.param(Task(0, 500, weight=3), 0, [600, 400], 1200, id="weighted"),
    ],
)
def test_unusable_part_of_a_node(task: Task, milli_cpu: int, free: list[int], amount: int) -> None:
    assert unusable([task], milli_cpu, free, "T4") == amount
    assert by_tables([task], milli_cpu, free, "T4") == amount


MODELS = ("", "T4", "A10", "other")
cpus = st.integers(0, 6).map(lambda cores: cores * 500)
amounts = st.one_of(st.integers(0, 999), st.sampled_from([1000, 2000, 4000, 8000]))
some_models = st.frozensets(st.sampled_from(["T4", "A10", "G2"]), max_size=2)
tasks_lists = st.lists(
    st.builds(Task, cpus, amounts, some_models, st.integers(1, 5)), min_size=1, max_size=6
)
free_lists = st.lists(st.integers(0, 1000) | st.just(1000), min_size=1, max_size=8)


@settings(max_examples=examples(80))
@given(tasks=tasks_lists, milli_cpu=cpus, free=free_lists, model=st.sampled_from(MODELS))
def test_tables_follow_the_definition(
    tasks: list[Task], milli_cpu: int, free: list[int], model: str
) -> None:
    assert by_tables(tasks, milli_cpu, free, model) == unusable(tasks, milli_cpu, free, model)


@settings(max_examples=examples(80))
@given(tasks=tasks_lists, milli_cpu=cpus, free=free_lists)
def test_the_measure_of_runs_is_the_same(
    tasks: list[Task], milli_cpu: int, free: list[int]
) -> None:
    anywhere = [task._replace(models=frozenset()) for task in tasks]
    weight = sum(task.weight for task in anywhere)
    requests = [{CPU: task.milli_cpu, GPU_MILLI: task.gpu_milli} for task in anywhere]
    shares = [task.weight / weight for task in anywhere]
    offered = {CPU: milli_cpu, GPU_MILLI: WHOLE * len(free), PODS: 110}
    node = NodeAmounts(
        {name: np.array([amount]) for name, amount in offered.items()},
        {name: np.array([0]) for name in offered},
        np.array([True]),
    )

    mix = RequestMix(tuple(zip(requests, shares, strict=True)))
    found = measured_unusable(node, mix, GPU_MILLI, np.array([free]))

    assert weight * found.item() == pytest.approx(by_tables(anywhere, milli_cpu, free))


@settings(max_examples=examples(80))
@given(tasks=tasks_lists, milli_cpu=cpus, free=free_lists, milli=st.integers(1, 999))
def test_what_a_share_changes(
    tasks: list[Task], milli_cpu: int, free: list[int], milli: int
) -> None:
    mix = GpuTaskMix(tasks)
    keys = mix.keys(np.array([milli_cpu]))

    found = mix.unusable_with_share(keys, np.array([free]), milli)[0].tolist()

    for gpu, left in enumerate(free):
        if left >= milli:
            then = [*free[:gpu], left - milli, *free[gpu + 1 :]]
            assert found[gpu] == unusable(tasks, milli_cpu, then)


@settings(max_examples=examples(80))
@given(tasks=tasks_lists, milli_cpu=cpus, free=free_lists, count=st.integers(0, 8))
def test_what_whole_gpus_change(
    tasks: list[Task], milli_cpu: int, free: list[int], count: int
) -> None:
    whole = [gpu for gpu, left in enumerate(free) if left == WHOLE]
    if len(whole) < count:
        return
    mix = GpuTaskMix(tasks)
    keys = mix.keys(np.array([milli_cpu]))

    found = int(mix.unusable_with_whole(keys, np.array([free]), count)[0])

    then = [0 if gpu in whole[:count] else left for gpu, left in enumerate(free)]
    assert found == unusable(tasks, milli_cpu, then)


@settings(max_examples=examples(100))
@given(
    tasks=tasks_lists,
    nodes=st.lists(st.tuples(cpus, free_lists, st.sampled_from(MODELS)), min_size=1, max_size=4),
    milli=amounts,
    milli_cpu=cpus,
)
def test_the_fall_is_that_of_the_definition(
    tasks: list[Task],
    nodes: list[tuple[int, list[int], str]],
    milli: int,
    milli_cpu: int,
) -> None:
    mix = GpuTaskMix(tasks)
    width = max(len(free) for _, free, _ in nodes)
    free = np.array([[*free, *[0] * (width - len(free))] for _, free, _ in nodes])
    cpu = np.array([cpu for cpu, _, _ in nodes])
    models = np.array([mix.model_number(model) for _, _, model in nodes])

    found = mix.fallen(free, cpu, models, milli, milli_cpu).tolist()

    for fallen, (free_cpu, left, model) in zip(found, nodes, strict=True):
        before = unusable(tasks, free_cpu, left, model)
        after = [unusable(tasks, free_cpu - milli_cpu, then, model) for then in placed(left, milli)]
        if after:
            assert fallen == before - min(after)


def placed(free: list[int], milli: int) -> list[list[int]]:
    """Free amounts of each GPU after `milli` is allocated, for each distinct choice; empty if it does not fit."""
    if milli and milli < WHOLE:
        return [
            [*free[:gpu], left - milli, *free[gpu + 1 :]]
            for gpu, left in enumerate(free)
            if left >= milli
        ]
    whole, count = [gpu for gpu, left in enumerate(free) if left == WHOLE], milli // WHOLE
    if len(whole) < count:
        return []
    return [[0 if gpu in whole[:count] else left for gpu, left in enumerate(free)]]


def test_nodes_are_judged_each_by_itself() -> None:
    tasks = [Task(1000, 500, frozenset({"T4"})), Task(2000, 2000), Task(500, 0)]
    mix = GpuTaskMix(tasks)
    cases = [(0, [600, 0], "T4"), (3000, [1000, 1000], ""), (1500, [400, 700], "T4")]
    milli_cpus = np.array([milli_cpu for milli_cpu, _, _ in cases])
    models = np.array([mix.model_number(model) for _, _, model in cases])

    found = mix.unusable(mix.keys(milli_cpus, models), np.array([free for _, free, _ in cases]))

    assert found.tolist() == [unusable(tasks, *case) for case in cases]


def test_no_task_makes_nothing_unusable() -> None:
    assert by_tables([], 1000, [600, 1000]) == 0


def test_typical_tasks_are_the_most_frequent_ones() -> None:
    def pods(count: int, cpu: str, milli: int, memory: str = "1Gi") -> list:  # type: ignore[type-arg]
        requests: dict[str, int | str] = {"cpu": cpu, "memory": memory}
        if milli:
            requests[GPU_MILLI] = milli
        return [make_pod(f"p{cpu}{milli}{i}", requests=requests) for i in range(count)]

    kinds = [pods(2, "1", 0), pods(3, "4", 500), pods(3, "4", 500, "2Gi"), pods(2, "8", 1000)]
    listed = [pod.spec for kind in kinds for pod in kind]

    assert typical_tasks(listed) == [
        Task(4000, 500, weight=6),  # whatever their memory
        Task(8000, 1000, weight=2),  # of equally frequent ones the larger is first
        Task(1000, 0, weight=2),
    ]
    assert typical_tasks(listed, popularity=0.7) == [
        Task(4000, 500, weight=6),
        Task(8000, 1000, weight=2),
    ]
    assert typical_tasks([]) == []


def on_models(*terms: dict[str, list[str]]) -> dict[str, object]:
    """A required node affinity with these values of labels."""
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": key, "operator": "In", "values": values}
                            for key, values in term.items()
                        ]
                    }
                    for term in terms
                ]
            }
        }
    }


@pytest.mark.parametrize(
    ("fields", "models"),
    [
        pytest.param({}, set(), id="no selector"),
        pytest.param({"node_selector": {GPU_MODEL: "T4"}}, {"T4"}, id="by node selector"),
        pytest.param({"affinity": on_models({GPU_MODEL: ["T4", "A10"]})}, {"T4", "A10"}, id="In"),
        pytest.param(
            {"affinity": on_models({GPU_MODEL: ["T4"]}, {GPU_MODEL: ["P100"]})},
            {"T4", "P100"},
            id="either of two terms",
        ),
        pytest.param(
            {"affinity": on_models({GPU_MODEL: ["T4"]}, {"zone": ["a"]})},
            set(),
            id="a term without a model allows any",
        ),
    ],
)
def test_models_of_a_pod(fields: dict[str, object], models: set[str]) -> None:
    pod = make_pod(**fields)  # type: ignore[arg-type]

    assert models_of(pod.spec) == models
    assert task_of(pod.spec).models == models


@pytest.mark.parametrize(
    ("milli", "valid"),
    [(0, True), (1, True), (999, True), (1000, True), (1500, False), (8000, True)],
)
def test_amounts_above_one_gpu_are_whole(milli: int, valid: bool) -> None:
    assert is_valid(milli) == valid
