"""Rewards: the reward of a step: a measure of the run, or a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..scheduler import Attempt
from ..sim.measures import measure_of, measure_run
from ..table import NodeTable
from .episode import Episode


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """The state after a step."""

    episode: Episode
    attempts: list[Attempt]
    """The attempts of the step that was rewarded, the agent's pods only."""
    is_end: bool

    @property
    def table(self) -> NodeTable:
        """The nodes of the scheduler, as columns."""
        return self.episode.table


Reward: TypeAlias = str | Callable[[EpisodeStep], float]
"""The name of a measure, or a function."""


RewardMeter: TypeAlias = Callable[[EpisodeStep], float]
"""Gives the reward of each step of one episode."""


def make_meter(reward: Reward, episode: Episode) -> RewardMeter:
    """The rewards of an episode; raises InputError when there is no measure of that name.

    `placed` and the measures of a resource that are read off the nodes (`cpuUtilisation`, `cpuAllocated`) are given
    step by step, as the change since the last one, so that the sum is the measure. Others are given at the end. A
    measure of which less is better counts negative.
    """
    if callable(reward):
        return reward
    measure = measure_of(reward)
    if reward == "placed":
        return _placed
    for end in ("Utilisation", "Allocated"):
        resource = reward.removesuffix(end)
        is_mean_or_peak = resource.endswith(("Mean", "Peak"))
        if reward.endswith(end) and not is_mean_or_peak:
            return _change_of_use(episode.table, resource, is_share=end == "Utilisation")
    sign = measure.direction or 1
    return lambda step: (
        sign * measure_run(step.episode.report()).get(reward, 0.0) if step.is_end else 0.0
    )


def _placed(step: EpisodeStep) -> float:
    return float(sum(not attempt.is_failed for attempt in step.attempts))


def _change_of_use(table: NodeTable, resource: str, is_share: bool) -> RewardMeter:
    """The change of the pods' use of a resource since the last step."""

    def use(table: NodeTable) -> float:
        live = table.live
        used = float(np.dot(table.requested[resource], live))
        if not is_share:
            return used
        offered = float(np.dot(table.allocatable[resource], live))
        return used / offered if offered else 0.0

    last = use(table)

    def reward(step: EpisodeStep) -> float:
        nonlocal last
        before, last = last, use(step.table)
        return last - before

    return reward
