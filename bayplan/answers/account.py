"""Account: the answer to "why": what is said of one pod, as plain data.

The shape is that of `bayplan explain -o json`, described in docs/explain.md, and only ever grows.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import field

from ..api.own_documents import API_VERSION
from ..sim.frames import make_frame
from .changes import Change
from .data import Data


class Verdict(StrEnum):
    """How it stands with a pod."""

    FITS = "fits"
    """It waits, and would get a node if it were tried now."""
    UNSCHEDULABLE = "unschedulable"
    """It waits, and no node can run it."""
    GATED = "gated"
    """It is held back before it is tried."""
    PLACED = "placed"
    """It is on a node."""
    FINISHED = "finished"
    """It ran to its end, and needs no node."""
    ERROR = "error"
    """A plugin or an extender failed."""


class PodRef(Data, kw_only=True):
    """Which pod."""

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0
    scheduler_name: str = ""


class Refusal(Data, kw_only=True):
    """What one plugin said against a node, or against the pod as a whole."""

    plugin: str
    code: str
    reasons: list[str]


class RefusedNodes(Data, kw_only=True):
    """Nodes that are refused alike, with everybody who refuses them, in the order of the plugins."""

    nodes: list[str]
    refusals: list[Refusal]


class ScorePlugin(Data, kw_only=True):
    """A plugin that gave points, and what its points count."""

    plugin: str
    weight: int


class ScoredNode(Data, kw_only=True):
    """A node that can run the pod; `points` are normalised and weighted, `raw` is what the plugin began with."""

    name: str
    total: int
    points: dict[str, int]
    raw: dict[str, int]


class Ahead(Data, kw_only=True):
    """By how many points a plugin has one node ahead of another; negative: behind."""

    plugin: str
    points: int


class Choice(Data, kw_only=True):
    """Why the best node is the best."""

    node: str
    total: int
    equals: int
    """How many nodes have that total; more than one: it is drawn by lot."""
    runner_up: str | None = None
    margin: int = 0
    """Points between the two."""
    ahead: list[Ahead] = field(default_factory=list)
    """Where they come from, the largest share first; plugins that see no difference are left out."""
    from_nomination: bool = False
    """It is the node the pod is nominated to, which is taken without comparing."""


class Preemption(Data, kw_only=True):
    """Who would be pushed out to make room."""

    node: str | None
    victims: list[PodRef] = field(default_factory=list)
    pdb_violations: int = 0
    message: str = ""


class Alternative(Data, kw_only=True):
    """Another way to the same end."""

    goal: str
    changes: list[Change]


class Step(Data, kw_only=True):
    """What would change the mind of one plugin."""

    plugin: str
    goal: str
    changes: list[Change]
    alternatives: list[Alternative] = field(default_factory=list)


class Counterfactual(Data, kw_only=True):
    """What would have to be different for the pod to run on a node; none of it can be left out."""

    node: str
    fits: bool
    """Judged again with all the changes made, the pod fits on the node."""
    steps: list[Step] = field(default_factory=list)
    unknown: list[Refusal] = field(default_factory=list)
    """Refusals against which nothing is known; the steps are for the others."""

    @property
    def changes(self) -> list[Change]:
        """All that has to be changed, in the order in which to do it."""
        return [change for step in self.steps for change in step.changes]


class RunnerUp(Data, kw_only=True):
    """What it would take for the next best node to win."""

    node: str
    gap: int
    """Points it is short of."""
    ways: list[Alternative] = field(default_factory=list)
    """Each of them, judged again, lets it win."""


class PodExplanation(Data, kw_only=True):
    """The whole account of one pod."""

    api_version: str = API_VERSION
    kind: str = "PodExplanation"
    pod: PodRef
    verdict: Verdict
    node: str | None = None
    """Where the pod is; for one that waits, where it would go."""
    message: str = ""
    """What kube-scheduler would write into the event and the PodScheduled condition."""
    remarks: list[str] = field(default_factory=list)
    gate: Refusal | None = None
    """Who holds the pod back before it is tried."""
    pre_filter: Refusal | None = None
    """Who refused the pod without a look at the nodes."""
    node_count: int = 0
    feasible_nodes: int = 0
    choice: Choice | None = None
    score_plugins: list[ScorePlugin] = field(default_factory=list)
    scores: list[ScoredNode] = field(default_factory=list)
    """Best first."""
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """Plugins that had nothing to say: at `filter` and at `score`."""
    refused: list[RefusedNodes] = field(default_factory=list)
    """The nearest first: those with the fewest and smallest refusals."""
    preemption: Preemption | None = None
    counterfactuals: list[Counterfactual] = field(default_factory=list)
    """What would let it run, the least to change first: for a pod that fits nowhere on the nearest nodes, for others on
    those nodes that were asked about, and on their own, if it would refuse them today."""
    runner_up: RunnerUp | None = None
    """For a pod that has a node, or would get one: what would let the next best one win."""
    waits_for: dict[str, list[str]] = field(default_factory=dict)
    """For each plugin that refused the pod, the events that may bring it back."""

    def keep_nodes(self, names: Collection[str]) -> None:
        """Leave out what is said of other nodes."""
        kept = set(names)
        self.scores = [node for node in self.scores if node.name in kept]
        for group in self.refused:
            group.nodes = [name for name in group.nodes if name in kept]
        self.refused = [group for group in self.refused if group.nodes]

    def to_dict(self) -> dict[str, Any]:
        """The account as plain dicts and lists."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document

    def node_rows(self) -> list[dict[str, Any]]:
        """A row per node: its points by plugin, or who refuses it and why."""
        scored = [
            {"node": node.name, "fits": True, "total": node.total, **node.points}
            for node in self.scores
        ]
        refused = [
            {
                "node": name,
                "fits": False,
                "refused_by": ", ".join(refusal.plugin for refusal in group.refusals),
                "reason": "; ".join(r for refusal in group.refusals for r in refusal.reasons),
            }
            for group in self.refused
            for name in group.nodes
        ]
        return scored + refused

    def to_frame(self) -> Any:
        """The nodes, best and nearest first, as a pandas DataFrame."""
        return make_frame(self.node_rows())
