"""Several environments at once: in this process, in worker processes and on Ray."""

import importlib
import re
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

from bayplan import Cluster
from bayplan.errors import InputError
from bayplan.gym import PlacementEnv, make_vector
from bayplan.gym.__main__ import main, workload
from bayplan.gym.vector import _RemoteEnv

GO_ON, CUT, END = 0, 1, 2


class CountingEnv(gymnasium.Env[Any, Any]):
    """Observes its seed, -1 without one, and the steps of the episode, which an action may cut or end."""

    REWARDS: ClassVar = (0.5, 1.0, 2.0)

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1, 100, (2,), np.int64)
        self.action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._seed, self._steps = -1 if seed is None else seed, 0
        return self._observed(), dict(options or {})

    def step(self, action: Any) -> Any:
        self._steps += 1
        info = {"steps": self._steps}
        return self._observed(), self.REWARDS[int(action)], action == END, action == CUT, info

    def _observed(self) -> Any:
        return np.array([self._seed, self._steps])


class ActorHere:
    """An object whose methods are called as those of an actor, at once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=getattr(self._inner, name))


class RayHere:
    """The part of Ray that environments use; its actors are objects in this process."""

    def __init__(self) -> None:
        self.is_started, self.started, self.killed = True, list[Any](), list[Any]()

    def is_initialized(self) -> bool:
        return self.is_started

    def init(self, **settings: Any) -> None:
        self.started.append(settings)

    def remote(self, actor: Any) -> Any:
        return SimpleNamespace(remote=lambda *given: ActorHere(actor(*given)))

    def get(self, called: Any) -> Any:
        return called

    def kill(self, actor: ActorHere) -> None:
        self.killed.append(actor)


def make_env() -> PlacementEnv:
    return PlacementEnv(Cluster.of(*workload(5, 6)), reward="cpuUtilisation")


def rewards_of(env: Any, steps: int) -> list[list[float]]:
    """The rewards of agents that take the first of the best nodes."""
    observation, _ = env.reset(seed=1)
    found = []
    for _ in range(steps):
        actions = observation["scores"].argmax(axis=1)
        observation, reward, *_ = env.step(actions)
        found.append(reward.tolist())
    assert observation["scores"].shape == (2, 5)
    env.close()
    return found


@pytest.mark.parametrize(
    "workers", ["processes", pytest.param("ray", marks=pytest.mark.slow)]
)  # tests/sweeps starts Ray in every run
def test_workers_give_what_environments_in_this_process_give(workers: str) -> None:
    """Eight steps: an episode of six, the step that begins the next one, and one of that."""
    here = rewards_of(make_vector(make_env, 2, "none"), 8)
    there = rewards_of(make_vector(make_env, 2, workers), 8)
    np.testing.assert_allclose(there, here)
    assert here[6] == [0.0, 0.0], "the step after the end begins a new episode"
    assert all(value > 0 for value in (*here[5], *here[7]))


def test_an_unknown_kind_of_workers_is_named() -> None:
    with pytest.raises(InputError, match='expected processes, none or ray; got "threads"'):
        make_vector(make_env, 2, "threads")


def test_an_environment_in_a_worker_begins_anew_with_the_step_after_the_end() -> None:
    env = _RemoteEnv(CountingEnv)
    env.reset(7, None)

    cut = env.step(CUT)
    after = env.step(CUT)
    further = env.step(GO_ON)

    assert (cut[0].tolist(), cut[1:]) == ([7, 1], (1.0, False, True, {"steps": 1}))
    assert (after[0].tolist(), after[1:]) == ([-1, 0], (0.0, False, False, {}))
    assert (further[0].tolist(), further[1:]) == ([-1, 1], (0.5, False, False, {"steps": 1}))


def test_a_reset_of_an_ended_environment_in_a_worker_lets_the_next_step_count() -> None:
    env = _RemoteEnv(CountingEnv)
    env.reset(7, None)
    env.step(END)
    env.reset(8, None)

    observation, reward, *_ = env.step(GO_ON)

    assert (observation.tolist(), reward) == ([8, 1], 0.5)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> RayHere:
    """Actors in this process; `test_workers_give_…` has those of Ray, which take long to start."""
    here = RayHere()
    monkeypatch.setitem(sys.modules, "ray", here)
    return here


def test_environments_in_actors_give_what_environments_in_this_process_give(ray: RayHere) -> None:
    here = rewards_of(make_vector(make_env, 2, "none"), 8)
    there = rewards_of(make_vector(make_env, 2, "ray"), 8)

    np.testing.assert_allclose(there, here)
    assert len(ray.killed) == 2, "each environment had an actor, which is gone"


@pytest.mark.parametrize(
    ("seed", "seeds"),
    [
        pytest.param(5, [5, 6, 7], id="a single seed is that of the first"),
        pytest.param([9, None, 4], [9, -1, 4], id="each has its own"),
        pytest.param(None, [-1, -1, -1], id="none"),
    ],
)
@pytest.mark.usefixtures("ray")
def test_seeds_of_environments_in_actors(seed: Any, seeds: list[int]) -> None:
    env = make_vector(CountingEnv, 3, "ray")

    observation, infos = env.reset(seed=seed, options={"lot": 2})

    assert observation.tolist() == [[each, 0] for each in seeds]
    assert infos["lot"].tolist() == [2, 2, 2]


@pytest.mark.usefixtures("ray")
def test_each_actor_gets_its_action_and_has_its_place_in_what_a_step_returns() -> None:
    env = make_vector(CountingEnv, 3, "ray")
    env.reset(seed=5)

    observation, reward, is_end, is_cut, infos = env.step(np.array([GO_ON, CUT, END]))

    assert observation.tolist() == [[5, 1], [6, 1], [7, 1]]
    assert reward.tolist() == [0.5, 1.0, 2.0]
    assert is_end.tolist() == [False, False, True]
    assert is_cut.tolist() == [False, True, False]
    assert infos["steps"].tolist() == [1, 1, 1]


def test_the_spaces_of_environments_in_actors_are_those_of_one_and_of_all(ray: RayHere) -> None:
    env = make_vector(CountingEnv, 3, "ray")

    assert env.num_envs == 3
    assert env.single_action_space == CountingEnv().action_space
    assert env.observation_space.shape == (3, 2)
    assert env.action_space.shape == (3,)


@pytest.mark.parametrize(
    ("is_initialised", "started"),
    [
        pytest.param(True, [], id="a Ray that was initialised is taken"),
        pytest.param(
            False,
            [{"include_dashboard": False, "log_to_driver": False}],
            id="otherwise one is started on this machine",
        ),
    ],
)
def test_the_start_of_ray(ray: RayHere, is_initialised: bool, started: list[Any]) -> None:
    ray.is_started = is_initialised

    make_vector(CountingEnv, 1, "ray")

    assert ray.started == started


def test_without_ray_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(InputError, match=r"RayVectorEnv: expected ray to be installed .*\[ray\]"):
        make_vector(make_env, 2, "ray")


def test_without_gymnasium_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "bayplan.gym")

    with pytest.raises(ImportError, match=r"expected gymnasium .* 'bayplan\[gym\]'"):
        importlib.import_module("bayplan.gym")


def test_the_measurement_tells_the_steps_with_and_without_copies(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bayplan.gym", "--nodes", "3", "--pods", "4"]
    monkeypatch.setattr(sys, "argv", command)

    main()

    lines = capsys.readouterr().out.splitlines()
    pattern = r"3 nodes, copies=(True|False): [\d,]+ steps/s, reset \d+\.\d\d s"
    found = [re.fullmatch(pattern, line) for line in lines]
    assert [match and match[1] for match in found] == ["True", "False"]
