"""Weights env: an environment whose action is a vector of score weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..errors import InputError
from ..runtime import ProfileRuntime
from ..scheduler import Attempt, QueuedPodInfo
from .environment import Observation, SchedulingEnv
from .episode import Episode
from .rewards import EpisodeStep

ROUNDING = 1e-6
SCALE = 100
"""The weight of a Score plugin for an action of 1; weights are whole numbers."""


class WeightsEnv(SchedulingEnv):
    """Each step sets weights and places `pods_per_step` pods with them; 0 places all pods in one step.

    The action has a number from 0 to 1 for each Score plugin of the profile, in the order of `names`: 1 is the weight
    100. With `plugin`, it has a number from -1 to 1 for each of the `weights` of that plugin, which are set as an
    array.
    """

    def __init__(
        self,
        workload: Any,
        *,
        profile: str = "default-scheduler",
        plugin: str | None = None,
        pods_per_step: int = 100,
        **options: Any,
    ) -> None:
        super().__init__(workload, **options)
        self._profile, self._plugin, self._batch = profile, plugin, pods_per_step
        runtime = self._runtime(self._make_episode(self._draw(np.random.default_rng(0)).objects, 0))
        if plugin is None:
            self.names = tuple(each.name for each, _ in runtime.scoring.scores)
            """Meaning of each number of the action."""
        else:
            self.names = tuple(str(i) for i in range(len(self._weights_of(runtime))))
        low = 0 if plugin is None else -1
        self.action_space = spaces.Box(low, 1, (len(self.names),), np.float64)

    def step(
        self, action: NDArray[np.float64]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Place the next pods with the weights `action`."""
        episode, found = self.episode, self._pod
        if episode is None or found is None:
            raise RuntimeError("WeightsEnv.step: expected reset() before; the episode has ended")
        self._apply(episode, self._checked(action))
        attempts: list[Attempt] = []
        while found is not None and (not self._batch or len(attempts) < self._batch):
            attempt = episode.simulation.try_pod(found)
            if attempt is not None:
                attempts.append(attempt)
            found = self._next_pod(episode)
        self._pod = found
        return self._ended(EpisodeStep(episode, attempts, is_end=found is None))

    def _checked(self, action: Any) -> NDArray[np.float64]:
        """The action as numbers; raises InputError when it is not in the action space, but for rounding."""
        numbers = np.asarray(action, dtype=np.float64)
        space = self.action_space
        assert isinstance(space, spaces.Box), "made so above"
        low, high = space.low.min(), space.high.max()
        is_within = np.all((numbers >= low - ROUNDING) & (numbers <= high + ROUNDING))
        if numbers.shape != space.shape or not is_within:
            raise InputError(
                f"WeightsEnv.step: action: expected {len(self.names)} numbers from {low:g} to {high:g}; got {action!r}"
            )
        return np.clip(numbers, low, high)

    def _next_pod(self, episode: Episode) -> QueuedPodInfo | None:
        return episode.simulation.next_pod()

    def _apply(self, episode: Episode, action: NDArray[np.float64]) -> None:
        decider, profile = episode.simulation.scheduler.decider, self._runtime(episode)
        if self._plugin is None:
            weights = np.rint(action * SCALE).astype(np.int64).tolist()
            decider.set_score_weights(dict(zip(self.names, weights, strict=True)), profile)
            return
        plugin: Any = profile.plugins[self._plugin]
        plugin.weights = action
        decider.forget(profile)

    def _runtime(self, episode: Episode) -> ProfileRuntime:
        profiles = episode.simulation.scheduler.profiles
        if self._profile not in profiles:
            known = ", ".join(profiles)
            raise InputError(
                f'WeightsEnv: profile: expected one of the configuration ({known}); got "{self._profile}"'
            )
        return profiles[self._profile]

    def _weights_of(self, runtime: ProfileRuntime) -> Any:
        plugin = runtime.plugins.get(str(self._plugin))
        if plugin is None or not hasattr(plugin, "weights"):
            found = "no such plugin" if plugin is None else "one without"
            raise InputError(
                f'WeightsEnv: plugin: expected a plugin of the profile with an attribute "weights"; got {found}: '
                f"{self._plugin}"
            )
        return plugin.weights
