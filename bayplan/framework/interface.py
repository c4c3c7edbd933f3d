"""Interface: the extension points, one class each. A plugin inherits from those it takes part in.

Mirrors staging/src/k8s.io/kube-scheduler/framework/interface.go. The order in which they run is in
`scheduler/cycle.py`; the effect of a status on the cycle is in `runtime/`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from enum import Enum
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import msgspec

from ..amounts.domain_rules import DomainRules
from ..amounts.rules import NO_RULES, AmountRules
from ..api.custom import CustomResource
from ..api.pod import Pod, PodSpec
from ..api.pod_groups import PodGroup
from ..errors import InputError
from ..table import FIRST_ROW, Ints, NodeInfo, NodeTable, Rows, RowValues
from .answer_checks import (
    check_each_score,
    check_scores,
    check_status,
    check_type,
    check_verdict,
)
from .cycle_state import CycleState
from .events import ANY_EVENT, EventWithHint
from .placement import GroupTrial, Placement, PodGroupAssignments, PodGroupInfo, TryGroup
from .status import SKIP, SUCCESS, Status
from .verdict import Verdict
from .victims import Victims

if TYPE_CHECKING:
    from .diagnosis import Diagnosis
    from .handle import Handle

T = TypeVar("T", bound=msgspec.Struct)


class Scope(Enum):
    """Dependencies of a plugin's verdict or raw score on a node, besides the pod."""

    CLUSTER = "cluster"
    """The answer may depend on anything: the plugin is called for every pod."""
    GROUPS = "groups of nodes"
    """Counts of pods on groups of nodes: one node of each group is judged, see `Plugin.row_groups`."""
    NODE_ROW = "node row"
    """The node and the pods on it (specs, labels, annotations; not their status): judged again on changed rows."""
    NODE_OBJECT = "node object"
    """The node alone, not its pods: judged again only on nodes that changed."""


CLUSTER, GROUPS = Scope.CLUSTER, Scope.GROUPS
NODE_ROW, NODE_OBJECT = Scope.NODE_ROW, Scope.NODE_OBJECT


class Settled(NamedTuple):
    """Results that are valid for every pod of one spec, in any cluster."""

    pre_filter: Status | None = None
    """SKIP or SUCCESS if `pre_filter` always returns that; it is then only called for pods with nodeName."""
    pre_score: Status | None = None
    """SKIP or SUCCESS if `pre_score` always returns that; it is then not called."""
    commits: bool = True
    """Whether Reserve, Permit or PreBind may have work; if not, they are not called. May depend on the cluster: it
    is called again when `cluster_key` changes.
    """


NOT_SETTLED = Settled()
PASSES_PRE_FILTER = Settled(pre_filter=SUCCESS)
SKIPS_PRE_FILTER = Settled(pre_filter=SKIP)


class Plugin:
    """Base of every plugin. `handle` is set before the first call."""

    name: ClassVar[str] = ""
    scope: ClassVar[Scope] = CLUSTER
    reads_whole_objects: ClassVar[bool] = False
    """Whether it calls `handle.whole`: pods and nodes are then kept with all of their fields, which takes memory."""
    custom_resources: ClassVar[tuple[CustomResource, ...]] = ()
    """Kinds of objects that it reads with `handle.custom_objects`, or waits for in `events_to_register`."""
    args_type: ClassVar[type[msgspec.Struct] | None] = None
    """The type of its arguments, one of which the class is then made with; see `typed_args`."""
    handle: Handle

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        """Make the plugin from its `pluginConfig` args: keyword arguments of the class, or its `args_type`."""
        make: Callable[..., Self] = cls
        if cls.args_type is not None:
            plugin = make(typed_args(cls.args_type, args))
        else:
            plugin = make(**args) if isinstance(args, dict) else make()
        plugin.handle = handle
        return plugin

    def spec_key(self, spec: PodSpec) -> Hashable | None:
        """The part of the pod's spec that an answer depends on: pods with equal keys share it. Not called for CLUSTER.

        By default None, that is, the answer may depend on the whole pod, its labels, namespace, owners, annotations
        and claims included. For GROUPS, labels, namespace and owners always count, too. The names of claims are empty
        in `spec` (`PodSpec.template`).
        """
        return None

    def cluster_key(self, table: NodeTable) -> Hashable:
        """The facts beyond the row that a NODE_ROW or NODE_OBJECT answer depends on; when it changes, all rows are
        stale.

        For GROUPS: the facts beyond the table that the columns depend on; without this method `row_groups` is called
        again after any change of an object.
        """
        return None

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues] | DomainRules | None:
        """For GROUPS: the columns by which the plugin distinguishes nodes for pods of the class of `pod`.

        Nodes with equal values get equal answers from Filter and Score, and `normalize` depends on the set of scores,
        not on how often each occurs. An empty list if the plugin has no effect on such pods, neither in Filter nor in
        Score. None if it reads more than columns. `DomainRules` are the columns, with rules that replace Filter and
        Score. Called again when a namespace, the affinity terms of pods on nodes or `cluster_key` change, and when a
        node changes, unless `DomainRules.nodes_key` of every plugin is the same. The values of a row change only with
        the row.
        """
        return None

    def free_parts(self, table: NodeTable) -> Mapping[str, Ints]:
        """For the measures of a simulation: free amounts of the parts of nodes, such as single GPUs, by resource. int64
        per row of the table and part, 0 for parts that a node does not have.

        By default the free amount of a node is one part. Called once, at the end of a run.
        """
        return {}

    def settled(self, spec: PodSpec) -> Settled:
        """Results of the plugin's PreFilter, PreScore, Reserve, Permit and PreBind that follow from the spec alone.

        A method that is not called writes nothing to the CycleState. Called once for pods that differ in the claims
        they name; `commits` also for all pods of a DaemonSet, whose specs differ in the node that they name.
        """
        return NOT_SETTLED

    def amount_rules(self, pod: Pod) -> AmountRules:
        """For NODE_ROW: rules on amounts that replace Filter and Score for such pods.

        A rule is None if its method depends on more than amounts. With `scores_by_more`, Score depends on more than the
        row for such pods, and is called for each of them; the answer may depend on facts of the cluster that
        `cluster_key` includes.
        """
        return NO_RULES

    def events_to_register(self) -> Sequence[EventWithHint]:
        """The events that may make a pod this plugin refused schedulable; by default any.

        The resource of an event is one of `events.RESOURCES`, or the name of one of `custom_resources`.
        """
        return ANY_EVENT


class PreEnqueuePlugin(Plugin):
    """Holds pods back before they enter the queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Return SUCCESS to admit the pod to the queue; any other status holds it until one of the plugin's events."""


class QueuedPod(Protocol):
    """A pod in the queue, as QueueSort sees it."""

    pod: Pod
    timestamp: float
    """Time when it was added, or returned from its last attempt, in seconds since 1970."""
    initial_attempt_timestamp: float | None
    """Time when it first was ready."""


class QueueSortPlugin(Plugin):
    """Orders the active queue. Implement `sort_key`, or `less`, which costs a call per comparison."""

    def less(self, first: QueuedPod, second: QueuedPod) -> bool:
        """Whether `first` is scheduled before `second`."""
        return bool(self.sort_key(first) < self.sort_key(second))

    def sort_key(self, queued: QueuedPod) -> Any:
        """A value by which pods are sorted."""
        return cmp_to_key(self._compare)(queued)

    def _compare(self, first: QueuedPod, second: QueuedPod) -> int:
        if check_type(self.less(first, second), bool, "a bool"):
            return -1
        return int(check_type(self.less(second, first), bool, "a bool"))


class PreFilterResult(msgspec.Struct, frozen=True):
    """Success; only the named nodes need to be tried."""

    node_names: frozenset[str]


class PreFilterPlugin(Plugin):
    """Prepares Filter, refuses a pod no node can run, or narrows the nodes to look at."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status | PreFilterResult:
        """Return SKIP if Filter of this plugin has no effect on `pod`."""


class SettledPreFilter(PreFilterPlugin):
    """A PreFilter whose result is that of `settled`."""

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status | PreFilterResult:
        return self.settled(pod.spec).pre_filter or SUCCESS


class PreFilterExtensions:
    """For PreFilter plugins whose state depends on the pods on nodes: a what-if adds and removes pods."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        """Adjust the state kept for `pod`, now that `added` is on `node`."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        """Adjust the state kept for `pod`, now that `removed` is no longer on `node`."""


class FilterPlugin(Plugin):
    """Refuses nodes that cannot run the pod. Implement `filter_rows`, `filter_node`, or both."""

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        """Judge `rows` of `table` at once; the answer has their length and order."""
        judge = self.filter_node
        return Verdict.from_statuses(
            [check_status(judge(state, pod, node)) for node in table.nodes_at(rows)]
        )

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node. A what-if calls this on an edited copy of a node."""
        return check_verdict(self.filter_rows(state, pod, node.as_table(), FIRST_ROW), 1).status(0)

    def looks_at(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        """Whether the filter's result for `pod` on a node can depend on whether `other` is on the node.

        May only read the class of `other`, and whether it is being deleted. PreFilter has run for `pod`.
        """
        return True


class Preemption(msgspec.Struct):
    """The account of a search for pods to preempt, by node name. Call `complete` before reading the entries of
    nodes.
    """

    candidates: dict[str, Victims] = msgspec.field(default_factory=dict)
    rejected: dict[str, Status] = msgspec.field(default_factory=dict)
    """Nodes where preempting every pod of lower priority would not have helped."""
    reasons: Counter[str] = msgspec.field(default_factory=Counter)
    """The number of nodes per reason. If there is a candidate, nodes that were tried are not counted."""
    fill_in: Callable[[Preemption], None] | None = None
    """Adds the nodes that were judged together and not one by one. It must not refer to the account: the reference
    cycle would keep the statuses of all nodes in memory until the next garbage collection.
    """
    chosen: Victims | None = None
    is_held: bool = False
    """Whether the chosen pods are evicted only if the group of the pod then fits."""
    cleared: list[Pod] = msgspec.field(default_factory=list)
    """Pods whose nomination to the chosen node was cleared."""

    def complete(self) -> None:
        """Add the entries of `fill_in`."""
        if self.fill_in is not None:
            self.fill_in(self)


class PostFilterResult(msgspec.Struct, frozen=True):
    """The pod's nomination after PostFilter: None keeps it, "" clears it."""

    nominated_node_name: str | None = None
    preemption: Preemption | None = None


class PostFilterPlugin(Plugin):
    """Tries to make room for a pod that fits nowhere."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        """Return SUCCESS if the pod is nominated and will fit once room is made."""


class PreScorePlugin(Plugin):
    """Prepares Score, once the feasible nodes are known."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        """Return SKIP if Score of this plugin has no effect on `pod`. `rows` are the feasible nodes.

        For GROUPS, `rows` are one of each group, and `state.row_counts` has the number of nodes that each of them
        stands for.
        """


class ScorePlugin(Plugin):
    """Ranks the feasible nodes. Implement `score_rows`, `score_node`, or both."""

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        """Score `rows` of `table` at once: one int64 per row, in their order."""
        score = self.score_node
        return check_each_score(score(state, pod, node) for node in table.nodes_at(rows))

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score one node."""
        return int(check_scores(self.score_rows(state, pod, node.as_table(), FIRST_ROW), 1)[0])

    def normalize(self, scores: Ints) -> Ints:
        """Bring the raw scores of all feasible nodes into MIN_SCORE..MAX_SCORE.

        It is called with sample scores at the start, to see whether it matters how often a score occurs.
        """
        return scores

    def normalize_rows(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, scores: Ints
    ) -> Ints:
        """Normalise scores with the nodes that have them: `rows`, in the same order."""
        return self.normalize(scores)


class ReservePlugin(Plugin):
    """Claims resources for the pod on the chosen node; `unreserve` gives them back and may be called twice."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Reserve resources; any status but SUCCESS ends the attempt."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo `reserve`, also when it never ran."""


class PermitPlugin(Plugin):
    """Approves, denies or delays the binding of a pod."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        """Return a status, and for Wait the seconds after which the pod is rejected."""


class PreBindPlugin(Plugin):
    """Prepares the binding of the pod. May block or be `async def`.

    Neighbours that `allow_parallel` run at the same time. On a real cluster an `async def` method runs between the
    attempts to schedule other pods, and may read the same data; a plain method may block and has a thread of its own.
    """

    allow_parallel: ClassVar[bool] = False

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return SKIP if `pre_bind` has nothing to do for this pod."""
        return SUCCESS

    @abstractmethod
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        """Prepare the binding; any status but SUCCESS ends the attempt."""


class BindPlugin(Plugin):
    """Binds the pod to its node. May block or be `async def`, as PreBind."""

    @abstractmethod
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status]:
        """Bind the pod; SKIP leaves it to the next bind plugin. May be `async def`."""


class PostBindPlugin(Plugin):
    """Runs after a pod was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Called after the pod was bound."""


class PlacementGeneratePlugin(Plugin):
    """Proposes sets of nodes for a pod group, which is then tried on each of them. A profile has at most one."""

    @abstractmethod
    def generate_placements(
        self, state: CycleState, group: PodGroupInfo, parent: Placement
    ) -> Sequence[Placement] | Status:
        """Return parts of `parent`, each with a unique name; a Status that is not SUCCESS ends the cycle of the
        group.
        """


class PlacementScorePlugin(Plugin):
    """Ranks the placements on which the group fits."""

    @abstractmethod
    def score_placement(
        self, state: CycleState, group: PodGroupInfo, assigned: PodGroupAssignments
    ) -> int:
        """Score a placement by the nodes that the members would get there."""

    def normalize_placement_scores(self, scores: Ints) -> Ints:
        """Bring the raw scores of all placements into MIN_SCORE..MAX_SCORE."""
        return scores


class PodGroupPostFilterPlugin(Plugin):
    """Tries to make room for a pod group that does not fit, by preempting pods anywhere in the cluster."""

    helps_groups = True
    """False if it does nothing for groups in the release that the profile is of."""

    @abstractmethod
    def post_filter_group(
        self, group: PodGroup, pods: Sequence[Pod], trial: GroupTrial, try_group: TryGroup
    ) -> tuple[Sequence[Pod], Status]:
        """Return the preempted pods, and SUCCESS if the group fits after their removal."""


class PlacementFeasiblePlugin(Plugin):
    """Determines whether a pod group fits with some of its members on nodes, while they are tried."""

    @abstractmethod
    def placement_feasible(self, group: PodGroup, placed: int, left: int) -> Status:
        """Return Wait if the group may fit once more of the `left` members are placed; Unschedulable if it cannot."""


EXTENSION_POINTS: dict[str, type[Plugin]] = {
    "pre_enqueue": PreEnqueuePlugin,
    "queue_sort": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
    "placement_generate": PlacementGeneratePlugin,
    "placement_score": PlacementScorePlugin,
}
"""The extension points by their name in code; the configuration spells them in camelCase."""


def typed_args(kind: type[T], args: Any) -> T:
    """`args` as `kind`: unchanged, the defaults for None, or converted from a mapping; InputError if it is invalid."""
    if isinstance(args, kind):
        return args
    try:
        return msgspec.convert({} if args is None else args, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"args: {error}") from error
