"""Environment: the environments, whose action is a node or a vector of score weights, and their common part."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import Any, TypeAlias

import gymnasium
import msgspec
import numpy as np
from gymnasium import spaces
from msgspec.structs import replace
from numpy.typing import NDArray

from ..api.node import Node
from ..errors import InputError
from ..manifests.timeline import InputObject
from ..notebook.cluster import Cluster, PluginLike
from ..notebook.questions import ConfigSource, Gates, settings_for
from ..runtime import ProfileRuntime
from ..scheduler import Attempt, QueuedPodInfo
from ..sim.settings import Settings
from ..table import NodeTable
from .episode import NO_ROW, Episode, PodToPlace
from .rewards import EpisodeStep, Reward, RewardMeter, make_meter

Observation: TypeAlias = dict[str, NDArray[Any]]
EnvWorkload: TypeAlias = Cluster | Callable[[np.random.Generator], Cluster]
"""A cluster with its pods, or a function that draws one for each episode. The nodes are the same in all of them."""

HIGHEST = np.iinfo(np.int64).max
SHARES = np.float32
ROUNDING = 1e-6
SCALE = 100
"""The weight of a Score plugin for an action of 1; weights are whole numbers."""


class UnitScale(msgspec.Struct, frozen=True):
    """The largest node of a workload, by which amounts become shares from 0 to 1, for networks."""

    resources: tuple[str, ...]
    largest: Mapping[str, int]
    """The most that a node offers of each resource."""
    max_pods: int

    @staticmethod
    def of(nodes: Sequence[Node], resources: Iterable[str]) -> UnitScale:
        """The scale of these nodes."""
        names = tuple(resources)
        most = {name: max(node.allocatable.get(name, 0) for node in nodes) or 1 for name in names}
        return UnitScale(names, most, max(node.allocatable.get("pods", 0) for node in nodes) or 1)

    def shares(self, columns: Mapping[str, NDArray[Any]], parts: Mapping[str, int]) -> Observation:
        """float32 columns: offers as shares of the largest node, uses as shares of their own node, the pod as shares
        of the largest node, parts such as GPUs as shares of the largest one (`parts` by resource).
        """
        found: Observation = {"live": columns["live"]}
        for name in self.resources:
            offered = columns[f"allocatable.{name}"]
            found[f"allocatable.{name}"] = _ratio(offered, self.largest[name])
            found[f"requested.{name}"] = _ratio(columns[f"requested.{name}"], offered)
        found["pod_count"] = _ratio(columns["pod_count"], columns["max_pods"])
        found["max_pods"] = _ratio(columns["max_pods"], self.max_pods)
        wanted = np.array([self.largest[name] for name in self.resources], dtype=np.int64)
        found["pod"] = _ratio(columns["pod"], wanted)
        for name, whole in parts.items():
            found[f"free.{name}"] = _ratio(columns[f"free.{name}"], whole)
        return found


def _ratio(amounts: NDArray[Any], whole: NDArray[Any] | int) -> NDArray[Any]:
    """float32: the amounts divided by `whole`; 0 where that is 0."""
    found = np.zeros(amounts.shape, dtype=SHARES)
    np.divide(amounts, whole, out=found, where=np.asarray(whole) > 0, casting="unsafe")
    return found


class SchedulingEnv(gymnasium.Env[Observation, Any]):
    """The scheduler with a cluster in memory; an episode is a run of the workload in virtual time.

    The observation has the columns of the node table, an entry per row: `allocatable.R` and `requested.R` for each
    resource R, `pod_count`, `max_pods`, `live`, and `pod`: the requests of the next pod, in the order of `resources`.
    With `copies=False` the columns are the table's own arrays, read-only, which change with the next step. `max_nodes`
    is for workloads in which nodes come later. Where a plugin of the profile accounts for parts of nodes, such as
    GPUs, `free.R` has what is free of each part (rows x parts). With `normalised=True` amounts are float32 shares
    (`UnitScale`).
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # as gymnasium declares it

    def __init__(
        self,
        workload: EnvWorkload,
        *,
        reward: Reward = "placed",
        config: ConfigSource = None,
        plugins: Iterable[PluginLike] = (),
        feature_gates: Gates = "",
        kubernetes_version: str = "",
        max_nodes: int | None = None,
        max_steps: int | None = None,
        copies: bool = True,
        normalised: bool = False,
    ) -> None:
        self._workload, self._reward = workload, reward
        self._copies, self._max_steps = copies, max_steps
        first = self._draw(np.random.default_rng(0))
        self._settings = settings_for(
            type(self).__name__,
            first,
            config=config,
            plugins=plugins,
            feature_gates=feature_gates,
            kubernetes_version=kubernetes_version,
        )
        self._check_sampling(self._settings)
        nodes = [obj for obj in first.objects if isinstance(obj, Node)]
        if not nodes:
            raise InputError(f"{type(self).__name__}: workload: expected nodes; got none")
        self.rows = max(len(nodes), max_nodes or 0)
        """The number of entries per column."""
        self.resources = tuple(dict.fromkeys(name for node in nodes for name in node.allocatable))
        self._parts = self._find_parts(first)
        """By resource that plugins divide into parts: the highest number of parts of a node, and the amount of a whole
        part.
        """
        self._scale = UnitScale.of(nodes, self.resources) if normalised else None
        self.observation_space = spaces.Dict(self._spaces())  # type: ignore[assignment]  # of any keys
        self.episode: Episode | None = None
        self._pod: Any = None
        """The last result of `_next_pod`."""
        self._meter: RewardMeter | None = None
        self._steps = 0
        self._columns: Observation = {}
        self._columns_at = (-1, -1)
        """Rows and capacity of the table that these columns are of."""

    # Methods that gymnasium calls

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode. The seed determines the workload, where it is drawn, and what plugins draw."""
        super().reset(seed=seed)
        cluster = self._draw(self.np_random)
        number = int(self.np_random.integers(2**31))
        self.episode = self._make_episode(cluster.objects, number)
        self._meter = make_meter(self._reward, self.episode)
        self._steps, self._columns_at = 0, (-1, -1)
        self._pod = self._next_pod(self.episode)
        return self._observe(), self._info()

    # For the environments

    def _make_episode(self, objects: Sequence[InputObject], seed: int) -> Episode:
        return Episode(list(objects), replace(self._settings, seed=seed))

    @abstractmethod
    def _next_pod(self, episode: Episode) -> PodToPlace | QueuedPodInfo | None:
        """Go on to the pod of the next step; None at the end."""

    def _spaces(self) -> dict[str, spaces.Space[Any]]:
        """The parts of the observation."""
        column = self._amounts((self.rows,))
        amounts = {
            f"{kind}.{name}": column
            for kind in ("allocatable", "requested")
            for name in self.resources
        }
        return {
            **amounts,
            "pod_count": column,
            "max_pods": column,
            "live": spaces.Box(0, 1, (self.rows,), np.bool_),
            "pod": self._amounts((len(self.resources),)),
            **{
                f"free.{name}": self._amounts((self.rows, count))
                for name, (count, _) in self._parts.items()
            },
        }

    def _amounts(self, shape: tuple[int, ...]) -> spaces.Box:
        """The space of amounts, or of shares."""
        if self._scale is not None:
            return spaces.Box(0, np.inf, shape, SHARES)
        return spaces.Box(0, HIGHEST, shape, np.int64)

    def _find_parts(self, cluster: Cluster) -> dict[str, tuple[int, int]]:
        """The resources that a plugin divides into parts, with the largest number of parts per node and their size."""
        if self._settings.config is None and not self._settings.plugins:
            return {}
        episode = self._make_episode(cluster.objects, 0)
        found = episode.free_parts()
        return {
            name: (parts.shape[1], int(parts.max(initial=1)))
            for name, parts in found.items()
            if parts.shape[1]
        }

    def _observe(self) -> Observation:
        """The columns as they are now, and the next pod."""
        columns = self._columns_now()
        found = {key: c.copy() for key, c in columns.items()} if self._copies else dict(columns)
        requests = self._pod.pod.requests if self._pod is not None else {}
        found["pod"] = np.array([requests.get(name, 0) for name in self.resources], dtype=np.int64)
        found |= self._observe_parts()
        if self._scale is None:
            return found
        return self._scale.shares(found, {name: whole for name, (_, whole) in self._parts.items()})

    def _observe_parts(self) -> Observation:
        """The free amounts of the parts of nodes, in the shape of the observation space."""
        if not self._parts:
            return {}
        assert self.episode is not None, "reset() comes first"
        found: Observation = {}
        for name, parts in self.episode.free_parts().items():
            count = self._parts.get(name, (0, 1))[0]
            if parts.shape[1] > count or len(parts) > self.rows:
                raise InputError(
                    f"{type(self).__name__}: workload: expected nodes with at most {count} parts of {name}, as in the "
                    f"first one; got {parts.shape[1]}"
                )
            column = found[f"free.{name}"] = np.zeros((self.rows, count), dtype=np.int64)
            column[: len(parts), : parts.shape[1]] = parts
        return found

    def _columns_now(self) -> Observation:
        """The columns in the length of the observation space: the table's own arrays where it has this length."""
        assert self.episode is not None, "reset() comes first"
        table = self.episode.table
        key = (table.size.rows, table.size.capacity)
        if key != self._columns_at:
            self._columns_at, self._columns = key, columns_of(table, self.resources)
        if len(table) == self.rows:
            return self._columns
        if len(table) < self.rows:
            return {name: _padded(column, self.rows) for name, column in self._columns.items()}
        raise InputError(
            f"{type(self).__name__}: max_nodes: expected a number that holds all nodes of the workload at any time; "
            f"got {self.rows} for {len(table)}"
        )

    def _info(self) -> dict[str, Any]:
        return {"pod": "" if self._pod is None else self._pod.pod.key}

    def _ended(self, step: EpisodeStep) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """The result of a step."""
        assert self._meter is not None, "reset() comes first"
        self._steps += 1
        reward = float(self._meter(step))
        is_cut = not step.is_end and self._steps == self._max_steps
        return self._observe(), reward, step.is_end, is_cut, self._info()

    def _check_sampling(self, settings: Settings) -> None:
        """Raise InputError when the configuration has the scheduler sample the nodes."""
        config = settings.config
        if config is None:
            return
        for profile in config.profiles:
            share = config.percentage_for(profile)
            if share is not None:
                raise InputError(
                    f"{type(self).__name__}: percentageOfNodesToScore: expected none, as the agent chooses among all "
                    f"nodes; got {share}"
                )

    def _draw(self, random: np.random.Generator) -> Cluster:
        found = self._workload if isinstance(self._workload, Cluster) else self._workload(random)
        if not isinstance(found, Cluster):
            raise TypeError(
                f"{type(self).__name__}: workload: expected a Cluster, or a function that returns one; got {found!r}"
            )
        return found


def columns_of(table: NodeTable, resources: Iterable[str]) -> Observation:
    """The table's own arrays, read-only; they are replaced only when the table grows."""
    found: Observation = {}
    for name in resources:
        found[f"allocatable.{name}"] = table.allocatable[name]
        found[f"requested.{name}"] = table.requested[name]
    return found | {"pod_count": table.pod_count, "max_pods": table.max_pods, "live": table.live}


def _padded(column: NDArray[Any], rows: int) -> NDArray[Any]:
    padded = np.zeros(rows, dtype=column.dtype)
    padded[: len(column)] = column
    return padded


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
