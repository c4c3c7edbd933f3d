"""Account: the explanation of one pod's scheduling result as plain data.

The shape is that of `bayplan explain -o json`, described in docs/output.md; fields are added,
never removed.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any

from msgspec import field

from ..api.own_documents import API_VERSION
from ..api.pod import Pod
from ..trials import AS_READ, SettledAnswer, Settlement
from .manifest_changes import Data, ObjectChange


class PodVerdict(StrEnum):
    """Scheduling state of a pod."""

    FITS = "fits"
    """The pod waits, and gets a node."""
    UNSCHEDULABLE = "unschedulable"
    """Pending; no node can run it."""
    GATED = "gated"
    """Held back before scheduling (gated)."""
    PLACED = "placed"
    """Assigned to a node."""
    FINISHED = "finished"
    """Succeeded or failed; needs no node."""
    ERROR = "error"
    """A plugin or an extender failed."""


class PodRef(Data, kw_only=True):
    """Identity of a pod."""

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0
    scheduler_name: str = ""

    @classmethod
    def of(cls, pod: Pod) -> PodRef:
        """The reference of `pod`."""
        return cls(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            priority=pod.priority,
            scheduler_name=pod.scheduler_name,
        )


class PodRefOnNode(Data, kw_only=True):
    """A pod, and its node if it has one."""

    namespace: str
    name: str
    node: str | None = None

    @classmethod
    def of(cls, pod: Pod) -> PodRefOnNode:
        """The reference of `pod`."""
        return cls(namespace=pod.namespace, name=pod.name, node=pod.node_name or None)

    def __str__(self) -> str:
        on = f" on {self.node}" if self.node else ""
        return f"{self.namespace}/{self.name}{on}"


class GroupRef(Data, kw_only=True):
    """The pod group of a pending pod, and why it waits."""

    name: str
    starts: bool
    """Whether the group would start, with this pod, if it were tried now."""
    cause: str = ""
    """Reason why it does not, in a sentence."""


class Refusal(Data, kw_only=True):
    """A plugin's rejection of a node, or of the pod as a whole."""

    plugin: str
    code: str
    reasons: list[str]


class RefusedNodes(Data, kw_only=True):
    """Nodes with equal rejections, listed in plugin order."""

    nodes: list[str]
    refusals: list[Refusal]


class WeightedPlugin(Data, kw_only=True):
    """A scoring plugin and its weight."""

    plugin: str
    weight: int


class ScoredNode(Data, kw_only=True):
    """A feasible node; `points` are normalised and weighted, `raw` is the plugin's own score."""

    name: str
    total: int
    points: dict[str, int]
    raw: dict[str, int]


class Ahead(Data, kw_only=True):
    """Points of one node minus those of another by one plugin."""

    plugin: str
    points: int


class Choice(Data, kw_only=True):
    """Reason why the best node won."""

    node: str
    total: int
    equals: int
    """Number of nodes with that total; with more than one, the scheduler picks at random."""
    runner_up: str | None = None
    margin: int = 0
    """Difference in points."""
    ahead: list[Ahead] = field(default_factory=list)
    """Contribution of each plugin, largest first; plugins without a difference are left out."""
    from_nomination: bool = False
    """The pod is nominated to the node, which is used without comparing scores."""


class PreemptionVictims(Data, kw_only=True):
    """The victims that preemption would evict."""

    node: str | None
    victims: list[PodRef] = field(default_factory=list)
    pdb_violations: int = 0
    message: str = ""


class Alternative(Data, kw_only=True):
    """Changes that reach a goal."""

    goal: str
    changes: list[ObjectChange]


class RemedyStep(Data, kw_only=True):
    """The changes that would lift one plugin's rejection."""

    plugin: str
    goal: str
    changes: list[ObjectChange]
    alternatives: list[Alternative] = field(default_factory=list)


class Counterfactual(Data, kw_only=True):
    """Changes that let the pod run on a node; each of them is necessary."""

    node: str
    fits: bool
    """The pod fits on the node after all changes, verified by running the plugins again."""
    steps: list[RemedyStep] = field(default_factory=list)
    unknown: list[Refusal] = field(default_factory=list)
    """Rejections without a known remedy; the steps address the others."""

    @property
    def changes(self) -> list[ObjectChange]:
        """All changes, in the order in which to make them."""
        return [change for step in self.steps for change in step.changes]


class RunnerUp(Data, kw_only=True):
    """Changes that would let the second-best node win."""

    node: str
    gap: int
    """Points it is behind."""
    ways: list[Alternative] = field(default_factory=list)
    """Alternatives; each was verified to let it win."""


class PodExplanation(SettledAnswer, Data, kw_only=True):
    """The complete account of one pod."""

    api_version: str = API_VERSION
    kind: str = "PodExplanation"
    pod: PodRef
    verdict: PodVerdict
    node: str | None = None
    """Node of the pod; for a pending pod, the node it would get."""
    message: str = ""
    """kube-scheduler's message in the event and the PodScheduled condition."""
    settled: Settlement = AS_READ
    """Result for the waiting pods before the question."""
    remarks: list[str] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    """For a pod that fits nowhere: facts behind the rejections, such as a cordoned zone that a
    spread constraint counts as an empty one."""
    group: GroupRef | None = None
    """For a pending member of a pod group that is scheduled as a whole."""
    gate: Refusal | None = None
    """PreEnqueue plugins that hold the pod back."""
    pre_filter: Refusal | None = None
    """Plugins that rejected the pod before any node was filtered."""
    node_count: int = 0
    feasible_nodes: int = 0
    choice: Choice | None = None
    score_plugins: list[WeightedPlugin] = field(default_factory=list)
    scores: list[ScoredNode] = field(default_factory=list)
    """Best first."""
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """Plugins without effect: at `filter` and at `score`."""
    refused: list[RefusedNodes] = field(default_factory=list)
    """Nearest first: nodes with the fewest and smallest rejections."""
    preemption: PreemptionVictims | None = None
    counterfactuals: list[Counterfactual] = field(default_factory=list)
    """Changes that would let the pod run, fewest first: on the nearest nodes for a pod that fits
    nowhere, else on the requested nodes, and on its own node if that would reject it today."""
    runner_up: RunnerUp | None = None
    """For a pod with a node: changes that would let the second-best node win."""
    waits_for: dict[str, list[str]] = field(default_factory=dict)
    """For each plugin that rejected the pod, the events that may requeue it."""
    alike: list[PodRefOnNode] = field(default_factory=list)
    """Other pods of the workload with an equal spec that also have a node, or are pending for the same reason."""

    def keep_nodes(self, names: Collection[str]) -> None:
        """Remove the parts about other nodes."""
        kept = set(names)
        self.scores = [node for node in self.scores if node.name in kept]
        for group in self.refused:
            group.nodes = [name for name in group.nodes if name in kept]
        self.refused = [group for group in self.refused if group.nodes]

    def headline(self) -> str:
        """`shop/web-7 is unschedulable, 0 of 3 nodes fit`."""
        where = f" on {self.node}" if self.node else ""
        fit = f"{self.feasible_nodes:,} of {self.node_count:,} nodes fit"
        return f"{self.pod.namespace}/{self.pod.name}: {self.verdict.value}{where}, {fit}"

    def shown_rows(self) -> list[dict[str, Any]]:
        """The nodes, best first, and the remedies with which the pod could run."""
        ways = [
            {"node": one.node, "what would help": "; ".join(step.goal for step in one.steps)}
            for one in self.counterfactuals
        ]
        return [*ways, *self.frame_rows()]

    def frame_rows(self) -> list[dict[str, Any]]:
        """One row per node: its points by plugin, or its rejections."""
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
