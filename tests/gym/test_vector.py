"""Several environments at once: in this process, in worker processes and on Ray."""

from typing import Any

import numpy as np
import pytest

from bayplan import Cluster
from bayplan.errors import InputError
from bayplan.gym import PlacementEnv, make_vector
from bayplan.gym.__main__ import workload


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
