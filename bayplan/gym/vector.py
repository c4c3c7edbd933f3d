"""Vector: several environments at once: in this process, in worker processes, or on Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from ..errors import InputError, package_needed

MakeEnv: TypeAlias = Callable[[], gymnasium.Env[Any, Any]]
"""Makes one environment, in the worker."""


def make_vector(
    make_env: MakeEnv, count: int, workers: str = "processes"
) -> VectorEnv[Any, Any, Any]:
    """`count` environments as one; `workers` are `processes`, `none` (all here, in turn) or `ray`."""
    makers = [make_env] * count
    if workers == "processes":
        return AsyncVectorEnv(makers)
    if workers == "none":
        return SyncVectorEnv(makers)
    if workers == "ray":
        return RayVectorEnv(makers)
    raise InputError(f'make_vector: workers: expected processes, none or ray; got "{workers}"')


class _RemoteEnv:
    """An environment in a Ray worker. After its end the next step begins a new episode."""

    def __init__(self, make_env: MakeEnv) -> None:
        self._env, self._has_ended = make_env(), False

    def spaces(self) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        return self._env.observation_space, self._env.action_space

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        self._has_ended = False
        return self._env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._has_ended:
            return self.reset(None, None)[0], 0.0, False, False, {}
        observation, reward, is_end, is_cut, info = self._env.step(action)
        self._has_ended = is_end or is_cut
        return observation, float(reward), is_end, is_cut, info

    def close(self) -> None:
        self._env.close()


class RayVectorEnv(VectorEnv[Any, Any, Any]):
    """Environments in Ray actors, one each. Ray is started on this machine unless it was initialised before."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  # as gymnasium declares it

    def __init__(self, makers: Sequence[MakeEnv]) -> None:
        with package_needed("RayVectorEnv", "ray", "ray"):
            import ray
        self._ray = ray
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
        remote: Any = ray.remote(_RemoteEnv)
        self._workers = [remote.remote(make_env) for make_env in makers]
        self.num_envs = len(self._workers)
        observations, actions = ray.get(self._workers[0].spaces.remote())
        self.single_observation_space, self.single_action_space = observations, actions
        self.observation_space = batch_space(observations, self.num_envs)
        self.action_space = batch_space(actions, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in each; a single seed gives the environments this one and those after it."""
        if seed is None or isinstance(seed, int):
            seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        calls = [w.reset.remote(s, options) for w, s in zip(self._workers, seeds, strict=True)]
        results = self._ray.get(calls)
        infos: dict[str, Any] = {}
        for i, (_, info) in enumerate(results):
            infos = self._add_info(infos, info, i)
        return self._joined([observation for observation, _ in results]), infos

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One step in each; an episode that ended begins again with the next step."""
        each = iterate(self.action_space, actions)
        calls = [w.step.remote(action) for w, action in zip(self._workers, each, strict=True)]
        results = self._ray.get(calls)
        infos: dict[str, Any] = {}
        for i, result in enumerate(results):
            infos = self._add_info(infos, result[4], i)
        return (
            self._joined([result[0] for result in results]),
            np.array([result[1] for result in results], dtype=np.float64),
            np.array([result[2] for result in results], dtype=np.bool_),
            np.array([result[3] for result in results], dtype=np.bool_),
            infos,
        )

    def close_extras(self, **kwargs: Any) -> None:
        """End the actors, but not Ray."""
        for worker in self._workers:
            self._ray.kill(worker)

    def _joined(self, observations: list[Any]) -> Any:
        space = self.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, observations, empty)
