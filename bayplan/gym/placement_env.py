"""Placement env: an environment whose action is the node of the next pod."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..errors import InputError
from .environment import SHARES, Observation, SchedulingEnv
from .episode import NO_ROW, Episode, PodToPlace
from .rewards import EpisodeStep


class PlacementEnv(SchedulingEnv):
    """Each step places one pod: the action is the row of a node.

    Besides the columns the observation has `mask` (int8 per row: the pod fits) and `scores` (int64 per row: the
    scheduler's own totals, -1 where it does not fit). `info["action_mask"]` is the mask, too, for
    `action_space.sample`. For a row that does not fit the scheduler's choice is taken, the reward is less by `penalty`,
    and `info` has `is_valid` False. Pods that fit nowhere, name their node, or belong to a pod group are no steps: they
    go as always.
    """

    def __init__(self, workload: Any, *, penalty: float = 1.0, **options: Any) -> None:
        super().__init__(workload, **options)
        self._penalty, self._is_valid = penalty, True
        self.action_space = spaces.Discrete(self.rows)

    @property
    def node_names(self) -> list[str]:
        """The node of each row."""
        assert self.episode is not None, "reset() comes first"
        return list(self.episode.table.names)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Place the pod on the node of the row `action`."""
        episode, found = self.episode, self._pod
        if episode is None or found is None:
            raise RuntimeError("PlacementEnv.step: expected reset() before; the episode has ended")
        row, fits = self._row(action), found.mask
        attempt = episode.place(found, row if row < len(fits) and fits[row] else NO_ROW)
        chosen = episode.table.names[row] if row < len(fits) else ""
        self._is_valid = attempt is not None and attempt.node_name == chosen
        self._pod = self._next_pod(episode)
        attempts = [] if attempt is None else [attempt]
        result = self._ended(EpisodeStep(episode, attempts, is_end=self._pod is None))
        if self._is_valid:
            return result
        observation, reward, *others = result
        return observation, reward - self._penalty, *others  # type: ignore[return-value]  # the rest of a tuple of five

    def _row(self, action: Any) -> int:
        """The row that the action names; raises InputError when there is none of this number."""
        try:
            row = index(action)
        except TypeError:
            row = -1
        if not 0 <= row < self.rows:
            raise InputError(
                f"PlacementEnv.step: action: expected a row from 0 to {self.rows - 1}; got {action!r}"
            )
        return row

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode, up to its first pod that fits somewhere."""
        self._is_valid = True
        return super().reset(seed=seed, options=options)

    def _next_pod(self, episode: Episode) -> PodToPlace | None:
        return episode.next_pod()

    def _spaces(self) -> dict[str, spaces.Space[Any]]:
        return {
            **super()._spaces(),
            "mask": spaces.Box(0, 1, (self.rows,), np.int8),
            "scores": spaces.Box(-1, 2**62, (self.rows,), np.int64)
            if self._scale is None
            else spaces.Box(-1, np.inf, (self.rows,), SHARES),
        }

    def _observe(self) -> Observation:
        found = super()._observe()
        found["mask"] = self._mask()
        scores = found["scores"] = np.full(self.rows, -1)
        if self._pod is not None:
            np.maximum(self._pod.scores, -1, out=scores[: len(self._pod.scores)])
        if self._scale is not None and self.episode is not None:
            highest = self.episode.highest_score or 1
            found["scores"] = np.where(scores < 0, -1, scores / highest).astype(SHARES)
        return found

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "action_mask": self._mask(), "is_valid": self._is_valid}

    def _mask(self) -> NDArray[np.int8]:
        """int8 per row: the pod fits."""
        found = np.zeros(self.rows, np.int8)
        if self._pod is not None:
            found[: len(self._pod.mask)] = self._pod.mask
        return found
