"""The environments: observations, effects of actions, and rewards of an agent."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bayplan import Cluster
from bayplan.errors import InputError
from bayplan.framework import MAX_SCORE, ScorePlugin
from bayplan.gym import EpisodeStep, PlacementEnv, WeightsEnv
from bayplan.gym.episode import AgentChoice
from bayplan.scheduler import FirstByName, Inquiry, TieBreak
from bayplan.sim import Simulation
from bayplan.table import NodeTable
from tests.rig.trees import node_tree, pod_tree

check_env = pytest.importorskip("gymnasium.utils.env_checker").check_env
PODS = 40
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def numbered_node(i: int, **spec: Any) -> dict[str, Any]:
    cpu, labels = str(4 + i % 3), {"zone": "ab"[i % 2]}
    return node_tree(f"node-{i:02}", cpu, memory="16Gi", pods="20", labels=labels, **spec)


def numbered_pod(i: int, cpu: str = "", **spec: Any) -> dict[str, Any]:
    cpu, memory = cpu or f"{200 + 150 * (i % 4)}m", f"{512 * (1 + i % 3)}Mi"
    labels = {"app": "abc"[i % 3]}
    return pod_tree(f"pod-{i:02}", cpu, memory=memory, metadata={"labels": labels}, **spec)


def spread(i: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "abc"[i % 3]}}
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": selector}]}


def workload(count: int = PODS) -> Iterator[dict[str, Any]]:
    yield from (numbered_node(i) for i in range(6))
    yield numbered_node(6, unschedulable=True)
    yield from (numbered_pod(i, **(spread(i) if i % 5 == 0 else {})) for i in range(count))
    yield numbered_pod(98, cpu="500")  # fits nowhere
    yield numbered_pod(99, nodeName="node-01")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.of(*workload())


def run(env: PlacementEnv, choose: Any, seed: int = 0) -> tuple[float, int]:
    """One episode; the sum of the rewards and the number of steps."""
    observation, _ = env.reset(seed=seed)
    total, steps, is_end = 0.0, 0, False
    while not is_end:
        observation, reward, is_end, is_cut, _ = env.step(choose(observation))
        total, steps = total + reward, steps + 1
        assert not is_cut
    return total, steps


def best(observation: dict[str, Any]) -> int:
    return int(observation["scores"].argmax())


@pytest.mark.parametrize(
    "make_env",
    [
        pytest.param(lambda c: PlacementEnv(c), id="a node is the action"),
        pytest.param(lambda c: PlacementEnv(c, reward="cpuUtilisation"), id="paid by a measure"),
        pytest.param(lambda c: PlacementEnv(c, max_nodes=9), id="rows for nodes that come later"),
        pytest.param(lambda c: WeightsEnv(c, pods_per_step=9), id="weights are the action"),
        pytest.param(lambda c: PlacementEnv(c, normalised=True), id="shares instead of amounts"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*render.*", "ignore:.*Box observation.*")
def test_the_environment_passes_the_check_of_gymnasium(cluster: Cluster, make_env: Any) -> None:
    check_env(make_env(cluster), skip_render_check=True)


def test_an_agent_that_takes_the_best_node_places_pods_as_the_scheduler_does(
    cluster: Cluster,
) -> None:
    env = PlacementEnv(cluster)
    total, steps = run(env, best)
    simulation = Simulation(cluster.objects, ties=FirstByName())
    simulation.run()
    alone = {pod.key: pod.node_name for pod in simulation.cluster.list("Pod")}
    assert env.episode is not None
    learned = {pod.key: pod.node_name for pod in env.episode.simulation.cluster.list("Pod")}
    assert learned == alone
    assert steps == total == PODS, "the pod that fits nowhere and the one with a node are no steps"


def test_each_pod_is_on_the_node_that_the_agent_chose(cluster: Cluster) -> None:
    env, random, chosen = PlacementEnv(cluster), np.random.default_rng(3), {}
    observation, info = env.reset(seed=0)
    is_end = False
    while not is_end:
        row = int(random.choice(np.flatnonzero(observation["mask"])))
        chosen[info["pod"]] = env.node_names[row]
        observation, _, is_end, _, info = env.step(row)
        assert info["is_valid"]
    assert env.episode is not None
    pods = {pod.key: pod.node_name for pod in env.episode.simulation.cluster.list("Pod")}
    assert chosen == {key: node for key, node in pods.items() if key in chosen}
    assert len(chosen) > PODS / 2


def test_the_choice_is_also_taken_where_the_plugins_are_called_one_by_one() -> None:
    class First(TieBreak):
        def choose(self, tied: Any, rows: Any, table: Any, search: Any) -> int:
            return int(tied[0])

    choice, rows, tied = AgentChoice(First()), np.array([2, 5, 7]), np.array([0, 2])
    table, search = NodeTable(), SimpleNamespace(order=rows)
    choice.row = 5
    assert choice.choose(tied, rows, table, search) == 1
    choice.row = 6
    assert choice.choose(tied, rows, table, search) == 0, "it does not fit: the first of the best"


def test_the_mask_has_the_nodes_that_the_filters_accept(cluster: Cluster) -> None:
    env, random = PlacementEnv(cluster), np.random.default_rng(4)
    observation, info = env.reset(seed=0)
    is_end, refused = False, 0
    while not is_end:
        episode = env.episode
        assert episode is not None
        queued = episode.simulation.cluster.get("Pod", *info["pod"].split("/"))
        assert queued is not None
        asked = Inquiry(episode.simulation.scheduler, queued)
        expected = np.zeros(env.rows, np.int8)
        expected[episode.table.numbers(asked.rows)] = 1
        np.testing.assert_array_equal(observation["mask"], expected)
        np.testing.assert_array_equal(info["action_mask"], expected)
        refused += int((expected == 0).sum())
        row = int(random.choice(np.flatnonzero(expected)))
        observation, _, is_end, _, info = env.step(row)
    assert refused > PODS, "the cordoned node at each step, and others"


def test_a_row_that_does_not_fit_costs_the_penalty_and_the_pod_is_placed_all_the_same(
    cluster: Cluster,
) -> None:
    env = PlacementEnv(cluster, penalty=5.0)
    env.reset(seed=0)
    cordoned = env.node_names.index("node-06")
    _, reward, _, _, info = env.step(cordoned)
    assert (reward, info["is_valid"]) == (1.0 - 5.0, False)
    assert env.episode is not None
    assert env.episode.table.pod_count.sum() == 2, "the pod, and the one that has a node"


def test_without_copies_the_observation_is_the_table_itself(cluster: Cluster) -> None:
    env = PlacementEnv(cluster, copies=False)
    observation, _ = env.reset(seed=0)
    assert env.episode is not None
    column = env.episode.table.requested["cpu"]
    assert np.shares_memory(observation["requested.cpu"], column)
    assert not observation["requested.cpu"].flags.writeable
    before = int(observation["requested.cpu"].sum())
    env.step(best(observation))
    assert int(observation["requested.cpu"].sum()) > before, "it changes with the step"
    kept, _ = PlacementEnv(cluster).reset(seed=0)
    assert not np.shares_memory(kept["requested.cpu"], column)


def test_the_observation_has_the_columns_of_the_nodes_and_the_requests_of_the_pod(
    cluster: Cluster,
) -> None:
    env = PlacementEnv(cluster)
    observation, info = env.reset(seed=0)
    assert env.resources == ("cpu", "memory", "pods")
    assert observation["allocatable.cpu"].tolist() == [4000, 5000, 6000, 4000, 5000, 6000, 4000]
    assert observation["requested.cpu"].sum() == 200 + 150 * 3, "of the pod that has a node"
    assert info["pod"] == "default/pod-00"
    assert observation["pod"].tolist() == [200, 512 * 2**20, 0]
    assert observation["live"].all()


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        pytest.param("placed", lambda m: m["placed"], id="pods placed, one by one"),
        pytest.param(
            "cpuUtilisation", lambda m: m["cpuUtilisation"], id="a share of the nodes, as it grows"
        ),
        pytest.param(
            "memoryAllocated", lambda m: m["memoryAllocated"], id="an amount on the nodes"
        ),
        pytest.param("pending", lambda m: -m["pending"], id="less is better: negative, at the end"),
        pytest.param(
            "memoryFragmentation",
            lambda m: -m["memoryFragmentation"],
            id="fragmentation at the end",
        ),
    ],
)
def test_the_rewards_add_up_to_the_measure(reward: str, expected: Any) -> None:
    from bayplan.sim.measures import measure_run

    cluster = Cluster.of(*(each for each in workload() if "99" not in each["metadata"]["name"]))
    env = PlacementEnv(cluster, reward=reward)
    total, _ = run(env, best)
    assert env.episode is not None
    assert total == pytest.approx(expected(measure_run(env.episode.report())))
    assert total != 0


def test_a_reward_may_be_a_function_of_the_state(cluster: Cluster) -> None:
    def emptiest(step: EpisodeStep) -> float:
        assert len(step.attempts) == 1
        return float(step.table.pod_count.max())

    total, steps = run(PlacementEnv(cluster, reward=emptiest), best)
    assert total > steps


def test_equal_seeds_give_equal_episodes_and_the_workload_is_drawn() -> None:
    def draw(random: np.random.Generator) -> Cluster:
        return Cluster.of(*workload(int(random.integers(5, 30))))

    env = PlacementEnv(draw)
    counts = [run(env, best, seed)[1] for seed in (1, 2, 1, 3)]
    assert counts[0] == counts[2]
    assert len(set(counts)) > 1


@pytest.mark.parametrize("action", [9999, -1, 7, 1.5, None])
def test_a_row_that_does_not_exist_is_refused(cluster: Cluster, action: Any) -> None:
    env = PlacementEnv(cluster)
    env.reset(seed=0)
    with pytest.raises(InputError, match="action: expected a row from 0 to 6; got"):
        env.step(action)


@pytest.mark.parametrize("action", [[2.0], [float("nan")], [0.5, 0.5]])
def test_weights_outside_of_the_action_space_are_refused(cluster: Cluster, action: Any) -> None:
    env = WeightsEnv(cluster)
    env.reset(seed=0)
    numbers = np.full(len(env.names), action[0]) if len(action) == 1 else action
    with pytest.raises(InputError, match=r"expected \d+ numbers from 0 to 1"):
        env.step(numbers)


def test_a_normalised_observation_has_shares(cluster: Cluster) -> None:
    plain, env = PlacementEnv(cluster), PlacementEnv(cluster, normalised=True)
    amounts, _ = plain.reset(seed=0)
    shares, _ = env.reset(seed=0)
    for _ in range(20):
        row = int(amounts["scores"].argmax())
        amounts, *_ = plain.step(row)
        shares, *_ = env.step(row)
    used = amounts["requested.cpu"] / amounts["allocatable.cpu"]
    np.testing.assert_allclose(shares["requested.cpu"], used, rtol=1e-6)
    assert shares["allocatable.cpu"].tolist() == pytest.approx(
        [4 / 6, 5 / 6, 1, 4 / 6, 5 / 6, 1, 4 / 6]
    )
    assert int(shares["scores"].argmax()) == int(amounts["scores"].argmax())
    assert 0 < shares["scores"].max() <= 1
    assert all(shares[key].dtype == np.float32 for key in shares if key not in ("live", "mask"))


GPU_CONFIG = {
    **CONFIG,
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}]}}}],
}


@pytest.mark.parametrize("normalised", [False, True])
def test_the_observation_has_each_gpu_where_a_plugin_accounts_for_it(normalised: bool) -> None:
    gpu = "bayplan.dev/gpu-milli"
    nodes = [node_tree(f"n{i}", "8", extended={gpu: f"{2 - i}000"}) for i in range(2)]
    resources = {"requests": {gpu: "300"}, "limits": {gpu: "300"}}
    container = {"name": "main", "image": "a", "resources": resources}
    pods = [pod_tree(f"p{i}", containers=[container]) for i in range(2)]
    env = PlacementEnv(Cluster.of(*nodes, *pods), config=GPU_CONFIG, normalised=normalised)
    observation, _ = env.reset(seed=0)
    whole = 1 if normalised else 1000
    assert observation[f"free.{gpu}"].tolist() == [[whole, whole], [whole, 0]]
    observation, *_ = env.step(1)
    assert observation[f"free.{gpu}"][1].tolist() == pytest.approx([0.7 * whole, 0])
    assert env.observation_space.contains(observation)


def test_max_steps_cuts_an_episode(cluster: Cluster) -> None:
    env = PlacementEnv(cluster, max_steps=2)
    observation, _ = env.reset(seed=0)
    assert env.step(best(observation))[2:4] == (False, False)
    assert env.step(best(observation))[2:4] == (False, True)


def test_nodes_that_come_later_need_rows() -> None:
    waits = numbered_pod(60, cpu="3900m")
    late = [
        {
            **numbered_node(i),
            "metadata": {"name": f"late-{i}", "annotations": {"bayplan.dev/created-at": "5s"}},
        }
        for i in (1, 2)
    ]
    objects = [numbered_node(0), *late, waits, {**waits, "metadata": {"name": "second"}}]
    few = PlacementEnv(Cluster.of(*objects), max_nodes=2)
    few.rows = 2
    env = PlacementEnv(Cluster.of(*objects), max_nodes=4)
    observation, _ = env.reset(seed=0)
    assert observation["live"].tolist() == [True, False, False, False]
    observation, *_ = env.step(0)
    assert observation["live"].tolist() == [True, True, True, False]
    assert observation["mask"].tolist() == [0, 1, 1, 0]
    few.reset(seed=0)
    with pytest.raises(InputError, match="max_nodes: expected a number that holds all nodes"):
        few.step(0)


@pytest.mark.parametrize(
    ("make_env", "message"),
    [
        pytest.param(
            lambda c: PlacementEnv(Cluster.of(numbered_pod(0))),
            "expected nodes; got none",
            id="no node",
        ),
        pytest.param(
            lambda c: PlacementEnv(c, reward="speed").reset(),
            "expected the name of a measure",
            id="a measure that does not exist",
        ),
        pytest.param(
            lambda c: PlacementEnv(c, config={**CONFIG, "percentageOfNodesToScore": 50}),
            "percentageOfNodesToScore: expected none, as the agent chooses among all nodes; got 50",
            id="a configuration that samples nodes",
        ),
        pytest.param(
            lambda c: WeightsEnv(c, profile="mine"),
            r'expected one of the configuration \(default-scheduler\); got "mine"',
            id="a profile that does not exist",
        ),
        pytest.param(
            lambda c: WeightsEnv(c, plugin="NodeName"),
            'with an attribute "weights"; got one without: NodeName',
            id="a plugin without weights",
        ),
    ],
)
def test_wrong_arguments_are_named(cluster: Cluster, make_env: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_env(cluster)


def test_a_step_before_reset_or_after_the_end_is_an_error(cluster: Cluster) -> None:
    env = PlacementEnv(cluster)
    with pytest.raises(RuntimeError, match=r"expected reset\(\) before"):
        env.step(0)
    run(env, best)
    with pytest.raises(RuntimeError, match=r"expected reset\(\) before"):
        env.step(0)


# Weights


class ByName(ScorePlugin):
    """Prefers the nodes whose weights are high."""

    name = "ByName"
    weights = (0.0,) * 7

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return int(MAX_SCORE * max(self.weights[int(node.name[-2:])], 0))


def nodes_of(env: WeightsEnv) -> dict[str, str]:
    assert env.episode is not None
    return {pod.key: pod.node_name for pod in env.episode.simulation.cluster.list("Pod")}


def test_weights_have_the_effect_of_a_configuration_with_them(cluster: Cluster) -> None:
    env = WeightsEnv(cluster, pods_per_step=0)
    env.reset(seed=5)
    wanted = dict.fromkeys(env.names, 0.01) | {"NodeResourcesBalancedAllocation": 0.9}
    _, reward, is_end, _, _ = env.step(np.array([wanted[name] for name in env.names]))
    assert (reward, is_end) == (PODS, True)
    plugins = {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": name, "weight": round(wanted[name] * 100)} for name in env.names],
    }
    config = {
        **CONFIG,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": {"score": plugins}}],
    }
    same = WeightsEnv(cluster, pods_per_step=0, config=config)
    same.reset(seed=5)
    assert same.episode is not None
    while (queued := same._pod) is not None:  # without an action: the configuration's own weights
        same.episode.simulation.try_pod(queued)
        same._pod = same.episode.simulation.next_pod()
    assert nodes_of(env) == nodes_of(same)
    other = WeightsEnv(cluster, pods_per_step=0)
    other.reset(seed=5)
    other.step(np.full(len(other.names), 0.01))
    assert nodes_of(env) != nodes_of(other)


def test_weights_of_a_plugin_are_in_effect_from_the_next_pod_on(cluster: Cluster) -> None:
    env = WeightsEnv(cluster, plugin="ByName", plugins=[ByName], pods_per_step=2)
    env.reset(seed=0)
    scorers = {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
    assert env.episode is not None
    scheduler = env.episode.simulation.scheduler
    profile = scheduler.profiles["default-scheduler"]
    scheduler.decider.set_score_weights(dict.fromkeys(scorers, 0), profile)
    for row in (3, 4):
        weights = np.zeros(7)
        weights[row] = 1
        env.step(weights)
    placed = [pod for pod, node in nodes_of(env).items() if node in ("node-03", "node-04")]
    assert len(placed) >= 3
    assert len(env.names) == 7
