"""Attempt: the result of one scheduling attempt, and, on request, its complete account."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct

from ..api.pod import Pod
from ..framework import Code, PostFilterResult, Status
from ..framework.row_statuses import no_node_available


class Outcome(Enum):
    """Result of an attempt, or its last step so far."""

    BOUND = "bound"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    ERROR = "error"
    WAITING = "waiting"
    """A node was found; Permit plugins hold the pod back."""
    BINDING = "binding"
    """A node was found; PreBind or Bind is under way."""


class PluginScore(msgspec.Struct):
    """Points of one Score plugin for each feasible node, by node name."""

    plugin: str
    weight: int
    raw: dict[str, int]
    normalized: dict[str, int]


class Explanation(msgspec.Struct):
    """The verdicts on every node and the scores of every feasible one, by node name."""

    pre_filter: Status
    node_names: frozenset[str] | None
    """The nodes PreFilter narrowed the search to; None when it did not."""
    skipped_filter: list[str]
    filter: dict[str, Status]
    """Every node; SUCCESS where it is feasible. Empty when PreFilter refused the pod."""
    scores: list[PluginScore] = msgspec.field(default_factory=list)
    skipped_score: list[str] = msgspec.field(default_factory=list)
    totals: dict[str, int] = msgspec.field(default_factory=dict)
    post_filter: tuple[PostFilterResult, Status] | None = None
    """None when PostFilter did not run."""
    waits_for: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """For a pod that was refused: each plugin that refused it, and the events after which the pod is retried."""


class AttemptNotes(msgspec.Struct):
    """More about a decision than scheduling needs."""

    state_version: int
    """Number of changes of the table's rows before it."""
    runner_up: str = ""
    """The best of the other feasible nodes; "" if there is none or nodes were not scored."""
    runner_up_total: int | None = None
    refusals: dict[str, int] = {}
    """For a pod that fits nowhere: the number of nodes that each plugin refused first."""
    victims: tuple[str, ...] = ()
    """The pods that preemption evicts."""


class Attempt(Struct):
    """One attempt to schedule `pod`."""

    pod: Pod
    outcome: Outcome = Outcome.ERROR
    node_name: str = ""
    score: int | None = None
    """Total score of the chosen node; None when there was nothing to choose between."""
    message: str = ""
    """For a pod that was not bound: kube-scheduler's text in the event and the PodScheduled condition."""
    status: Status | None = None
    """For a pod that was not bound: the status the attempt ended with."""
    number: int = 1
    """Number of this attempt at the pod."""
    feasible_nodes: int = 0
    evaluated_nodes: int = 0
    from_nomination: bool = False
    fit_error: str = ""
    """The message without the part of PostFilter."""
    refusals: dict[str, int] = {}
    """For a member of a pod group that fits nowhere: the number of nodes per reason."""
    notes: AttemptNotes | None = None
    """More about the decision, if the scheduler notes it (`SchedulerSettings.notes_decisions`)."""
    nominated_node_name: str | None = None
    """The pod's nomination after the attempt: a node, "" for none, None for no change."""
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    was_handled: bool = False
    """Whether the binding cycle has handled the failure already."""
    explanation: Explanation | None = None
    group: Any = None
    """The `GroupAttempt` that this attempt was part of; None for a pod that is scheduled alone."""

    @property
    def is_failed(self) -> bool:
        return self.outcome in (Outcome.UNSCHEDULABLE, Outcome.ERROR)

    def fail(self, status: Status, nominated_node_name: str | None = None) -> None:
        """End without a node."""
        self.outcome = Outcome.UNSCHEDULABLE if status.is_rejected else Outcome.ERROR
        self.node_name = ""
        self.status = status
        self.message = status.message
        self.nominated_node_name = nominated_node_name

    def reject(self, status: Status) -> None:
        """End after a refusal by Reserve or Permit; kube-scheduler's message is about the chosen node only."""
        if status.is_rejected:
            self.unschedulable_plugins = frozenset({status.plugin})
            if status.code is Code.Pending:
                self.pending_plugins = self.unschedulable_plugins
            counted = dict.fromkeys(status.reasons, 1)
            status = Status(status.code, (no_node_available(1, counted),), status.plugin)
        self.fail(status, nominated_node_name="")
