"""Gym: Gymnasium environments around the scheduler, for policies that are learned.

Contents: an episode, which is a simulation that stops at each pod (`episode.py`); the environments whose
action is a node or a vector of score weights (`environment.py`); rewards; environments in
workers and on Ray (`vector.py`). Imports: notebook, sim, scheduler, table, api. Never: a
placement rule, or a decision that differs from the scheduler's where the agent has no choice. Callers: users'
scripts.

Needs the extra `gym`: pip install 'bayplan[gym]'.
"""

try:
    import gymnasium  # noqa: F401  # the modules below need it; say so in one sentence
except ImportError as error:
    raise ImportError(
        "bayplan.gym: expected gymnasium to be installed (pip install 'bayplan[gym]'); got none"
    ) from error

from .environment import EnvWorkload, PlacementEnv, SchedulingEnv, WeightsEnv
from .episode import Episode, PodToPlace
from .rewards import EpisodeStep, Reward
from .vector import RayVectorEnv, make_vector

__all__ = [
    "Episode",
    "EpisodeStep",
    "PlacementEnv",
    "PodToPlace",
    "RayVectorEnv",
    "Reward",
    "SchedulingEnv",
    "WeightsEnv",
    "EnvWorkload",
    "make_vector",
]
