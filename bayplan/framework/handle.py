"""Handle: the scheduler's interface for its plugins."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from ..api.custom import CustomObject, CustomResource
from ..api.meta import KubeObject
from ..api.node import Node
from ..api.pod import Pod, PodCondition
from ..api.pod_groups import GroupPreemptor, PodGroup
from ..api.wire.whole import whole
from ..clock import Clock, SystemClock
from ..errors import ApiError, PluginError
from ..observe.scheduler_metrics import SchedulerMetrics
from ..releases.feature_gates import DEFAULT_GATES, FeatureGates
from ..releases.release import Release
from ..table import Ints, NodeInfo, NodeTable
from ..table.what_if import WhatIf
from .cycle_state import CycleState
from .faults import PluginFaults
from .group_options import GroupOptions
from .lister import Follower, Lister
from .status import SUCCESS, Status, failure

if TYPE_CHECKING:
    from .victims import Victims


class CustomObjects:
    """The objects of one custom resource, as the cluster has them now. `name` is `plural.version.group`."""

    def __init__(self, name: str, lister: Lister) -> None:
        self.name = name
        self._lister = lister
        self._follower = Follower(lister)
        self._version = 0

    def get(self, name: str, namespace: str = "") -> CustomObject | None:
        """One object, or None; a cluster-scoped one has no namespace."""
        found: CustomObject | None = self._lister.get(self.name, namespace, name)
        return found

    def list(self, namespace: str | None = None) -> list[CustomObject]:
        """All objects, in `namespace` when given."""
        return list(self._lister.list(self.name, namespace))

    @property
    def version(self) -> int:
        """Changes when an object of the resource does; a possible value of `Plugin.cluster_key`."""
        changes = self._follower.changes()
        if changes is None or any(key.kind == self.name for key in changes):
            self._version += 1
        return self._version


Object = TypeVar("Object", bound=KubeObject)


class Client(Protocol):
    """The effects a plugin may have on the cluster; by default none."""

    def bind(self, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Bind the pod; raises ApiError when the cluster refuses. May be `async def`."""
        return None

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> Awaitable[None] | None:
        """Delete `victim` to make room for `preemptor`; no error if it was deleted already. May be `async def`."""
        return None

    def clear_nomination(self, pod: Pod) -> None:
        """Take the nominated node out of the pod's status."""
        self.patch_status(pod, None, "")

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set a condition of the pod and its nominated node, each unless None; writes nothing if nothing changes."""
        return None

    def record_event(self, event: PodEvent) -> None:
        """Write an event about a pod."""
        return None

    def update(self, obj: Object) -> Object | Awaitable[Object]:
        """Write a changed object (a volume or a claim) and return it as stored; may be `async def`.

        Raises ConflictError when the object was changed by another client since it was read, NotFoundError when it is
        gone. Our objects leave out fields that do not affect placement: over a network, send only differences.
        """
        return obj

    def update_status(self, obj: Object) -> Object | Awaitable[Object]:
        """Write the status of a changed object, which the API server stores separately, and return it as stored."""
        return obj

    def create(self, obj: Object) -> Object | Awaitable[Object]:
        """Write a new object, which may leave its name to the cluster, and return it as stored."""
        return obj

    def delete(self, obj: KubeObject) -> Awaitable[None] | None:
        """Remove an object; raises NotFoundError if there is none."""
        return None


def outcome_of(write: Callable[..., Any], *args: Any) -> Status | Awaitable[Status]:
    """The outcome of a call of a client, at once or to await."""
    try:
        answer = write(*args)
    except ApiError as error:
        return failure(error)
    if answer is None:
        return SUCCESS
    return _awaited(answer) if isinstance(answer, Awaitable) else SUCCESS


async def _awaited(answer: Awaitable[Any]) -> Status:
    try:
        await answer
    except ApiError as error:
        return failure(error)
    return SUCCESS


class PodEvent(Struct, frozen=True, gc=False):
    """An event as `kubectl describe pod` shows it (events.k8s.io/v1)."""

    regarding: Pod
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str = ""
    related: Pod | PodGroup | None = None


class Nominator(Protocol):
    """Nominated pods per node; there are none by default."""

    def __bool__(self) -> bool:
        """Whether a pod is nominated to some node."""
        return False

    @property
    def version(self) -> int:
        """Changes whenever a nomination does."""
        return 0

    def changed_since(self, version: int) -> Iterable[str] | None:
        """Nodes whose nominated pods changed after `version`; None if that is no longer recorded."""
        return ()

    def node_of(self, pod: Pod) -> str:
        """The node that `pod` is nominated to; "" when it is not."""
        return ""

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """Pods nominated to the node."""
        return []

    def node_names(self) -> list[str]:
        """The nodes that some pod is nominated to."""
        return []

    def delete(self, pod: Pod) -> None:
        """End the nomination of `pod`."""
        return None


class FilterRunner(Protocol):
    """The profile's filters, for plugins that judge what-ifs."""

    def filter_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, with and without the pods nominated to it."""

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, what_if: WhatIf) -> None:
        """Put `added` on the node and call the PreFilter plugins."""

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Take `removed` off the node and call the PreFilter plugins."""

    def tell_added(self, state: CycleState, pod: Pod, added: Pod, what_if: WhatIf) -> None:
        """Call the PreFilter plugins for a pod that was put on the node."""

    def tell_removed(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Call the PreFilter plugins for a pod that was taken off the node."""


class WaitingPod(Protocol):
    """A pod that Permit plugins hold back."""

    pod: Pod

    @property
    def pending_plugins(self) -> list[str]:
        """The plugins that still hold the pod back."""

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of `plugin`; it goes on to PreBind when no plugin holds it any more."""

    def reject(self, plugin: str, message: str) -> bool:
        """Refuse the pod; returns whether that was the first decision."""

    def preempt(self, plugin: str, message: str) -> bool:
        """Preempt the waiting pod, which is retried as after an error. Returns whether this is the first decision
        about it.
        """


class WaitingPods(Protocol):
    """The pods that wait on Permit, of all profiles."""

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod with this uid, or None."""

    def __iter__(self) -> Iterator[WaitingPod]: ...


class PodGroups(Protocol):
    """The groups of pods, by default none; a key is `PodGroup` or `label`, namespace and name."""

    def members(self, key: tuple[str, str, str]) -> list[Pod]:
        """The pods of the group, in order of appearance."""
        return []

    def member_count(self, key: tuple[str, str, str]) -> int:
        """Number of pods of the group."""
        return 0

    def waiting(self, key: tuple[str, str, str]) -> Mapping[str, Pod]:
        """The members without a node, by uid."""
        return {}

    def placed_count(self, key: tuple[str, str, str]) -> int:
        """Number of members with a node, assumed or bound."""
        return 0

    def has_placed(self) -> bool:
        """Whether a member of a PodGroup has a node."""
        return False

    def kept_count(self, key: tuple[str, str, str]) -> int:
        """Number of members with a node, without members that are on trial in a scheduling cycle of the group."""
        return 0


class NoPodGroups(PodGroups):
    """No pod belongs to a group."""


class PreBinding(Protocol):
    """The pods whose PreBind is under way."""

    def cancel(self, uid: str, reason: str) -> bool:
        """Stop a pod before it is bound; False when it is not in PreBind, or past it."""


class PreemptionExtenders(Protocol):
    """The extenders that take part in preemption."""

    def are_interested(self, pod: Pod) -> bool:
        """Whether an extender takes part in preemption for `pod`."""

    def choose_victims(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """The candidates that they accept, by node name; ExtenderError if one fails that is not ignorable."""


class Executor(Protocol):
    """Executor of slow work, beside the scheduling of other pods."""

    def run(
        self, work: Callable[[], Status | Awaitable[Status]], finished: Callable[[Status], None]
    ) -> None:
        """Do `work`, then call `finished` with its result on the scheduler's thread."""


RunBlocking = Callable[[Callable[[], "Status | Awaitable[Status]"]], "Status | Awaitable[Status]"]


def run_here(work: Callable[[], Status | Awaitable[Status]]) -> Status | Awaitable[Status]:
    """Run blocking work at once, for virtual time, in which nothing blocks."""
    return work()


async def sleep(seconds: float) -> None:
    """Wait on the running loop; asyncio is imported where it is used."""
    import asyncio

    await asyncio.sleep(seconds)


class EmptyLister(Lister):
    """A cluster with nothing but nodes and pods."""


class NoNominations(Nominator):
    """A nominator without nominations."""


class NoClient(Client):
    """A client that writes nothing, for judging without a cluster."""


@dataclass(slots=True)
class Pause:
    """While `count` is above 0, no pod is tried."""

    count: int = 0
    ended: Callable[[Status], None] | None = None
    """Ends the attempt that paused the others. The argument is the result of the work that it waited for."""


@dataclass
class Handle:
    """The services a plugin is given; the same object for all plugins of a profile."""

    table: NodeTable
    profile_name: str = "default-scheduler"
    clock: Clock = field(default_factory=SystemClock)
    lister: Lister = field(default_factory=EmptyLister)
    client: Client = field(default_factory=NoClient)
    nominator: Nominator = field(default_factory=NoNominations)
    random: random.Random = field(default_factory=lambda: random.Random(0))
    feature_gates: FeatureGates = field(default_factory=lambda: DEFAULT_GATES)
    pod_groups: PodGroups = field(default_factory=NoPodGroups)
    group_options: GroupOptions = field(default_factory=GroupOptions)
    """Differences from kube-scheduler in the scheduling of pod groups; GangScheduling sets them from its arguments."""
    waiting_pods: WaitingPods | None = None
    pre_binding: PreBinding | None = None
    executor: Executor | None = None
    run_blocking: RunBlocking = run_here
    """Runs work that may block outside the scheduler's thread; the result is to be awaited."""
    activate: Callable[[Iterable[Pod]], None] = lambda pods: None
    """Bring waiting pods back to the active queue at once."""
    activate_members: Callable[[Mapping[str, Pod]], None] = lambda pods: None
    """The same for members of a pod group, by uid; those that are being scheduled are left out."""
    forget_answers: Callable[[], None] = lambda: None
    """Drop the cached answers of the profile's plugins after a parameter of one of them changed. Call it in Reserve or
    later, so that no pod is judged with both values.
    """
    pause: Pause = field(default_factory=Pause)
    """Holds back the next attempt during slow work within this one."""
    sleep: Callable[[float], Awaitable[None]] = sleep
    """Wait for a number of seconds of the loop's time, real or virtual; only within `async def` PreBind and Bind."""
    filters: FilterRunner | None = None
    """Set once the profile's plugins are made."""
    extenders: PreemptionExtenders | None = None
    """None when no extender takes part in preemption."""
    node_order: Callable[[], Ints] | None = None
    """The rows of all nodes in the order in which kube-scheduler would list them; None for the order of the table."""
    metrics: SchedulerMetrics = field(default_factory=SchedulerMetrics)
    """Counters for plugins; `metrics.add` takes metrics of its own."""
    faults: PluginFaults = field(default_factory=PluginFaults)
    """Record of errors in the code of plugins that fail no pod."""
    shared: dict[str, Any] = field(default_factory=dict)
    """State that plugins share, by name: one for all profiles of a scheduler."""
    keeps_whole_objects: bool = True
    """Whether pods and nodes are stored with all of their fields; the scheduler sets it by the declarations of its
    plugins.
    """

    custom_resources: Mapping[str, CustomResource] | None = None
    """Resources that the plugins of the scheduler declare, by name; None if anything may be read, as in a test of one
    plugin.
    """
    _custom_objects: dict[str, CustomObjects] = field(default_factory=dict)

    @property
    def release(self) -> Release:
        """The facts of the release of kube-scheduler that is reproduced."""
        return self.feature_gates.release

    def custom_objects(self, name: str) -> CustomObjects:
        """The objects of a custom resource, `foos.v1.example.com`.

        Raises PluginError unless a plugin of the scheduler has it in its `custom_resources`.
        """
        if self.custom_resources is not None and name not in self.custom_resources:
            known = ", ".join(self.custom_resources) or "none"
            raise PluginError(
                f'handle.custom_objects: expected a name in custom_resources ({known}); got "{name}"'
            )
        if name not in self._custom_objects:
            self._custom_objects[name] = CustomObjects(name, self.lister)
        return self._custom_objects[name]

    def whole(self, obj: Pod | Node) -> dict[str, Any]:
        """The pod or node as a manifest with all fields, those included that our types leave out.

        As stored, with the changes since it was read; without `metadata.managedFields`. Raises PluginError unless a
        plugin of the scheduler declares `reads_whole_objects`.
        """
        if not self.keeps_whole_objects:
            raise PluginError(
                "handle.whole: expected a plugin with `reads_whole_objects = True`; got none"
            )
        return whole(obj)


def gates_of(plugin: object) -> FeatureGates:
    """The feature gates that a plugin decides by; the default ones before it has a handle, as in a test."""
    handle: Handle | None = getattr(plugin, "handle", None)
    return DEFAULT_GATES if handle is None else handle.feature_gates


def release_of(plugin: object) -> Release:
    """The release that a plugin decides for."""
    return gates_of(plugin).release


def preemptor_kind(preemptor: Pod | GroupPreemptor) -> str:
    """The name of the preemptor's kind in kube-scheduler's messages."""
    return "podgroup" if isinstance(preemptor, GroupPreemptor) else "pod"


def preempted_event(
    victim: Pod, preemptor: Pod | GroupPreemptor, in_memory: bool = False
) -> PodEvent:
    """The event about a pod that was preempted; a group preempts in the whole cluster, not on a node."""
    where = "cluster" if isinstance(preemptor, GroupPreemptor) else victim.node_name
    note = f"Preempted by {preemptor_kind(preemptor)} {preemptor.uid} on node {where}"
    return PodEvent(
        regarding=victim,
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"{note} (in kube-scheduler memory)." if in_memory else note,
        reporting_controller=preemptor.scheduler_name,
        related=preemptor,
    )
