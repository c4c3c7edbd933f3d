"""Situation: whether a pod fits on a node after some changes, and which plugins reject it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..api.node import Node
from ..api.pod import Pod
from ..errors import ConflictError, InputError
from ..framework import Code, CycleState, FilterPlugin, NodeInfo, Status
from ..framework.events import EXTENDER
from ..runtime import PluginRunError
from ..runtime.plugin_calls import ask_filter
from ..scheduler.all_refusals import OUTSIDE
from ..table import ALL
from ..trials import Step, StillCluster, TrialCluster
from .manifest_changes import ChangeKind, ObjectChange, ObjectRef, changed_object, decode


@dataclass(frozen=True, slots=True)
class Refused:
    """The rejections of the pod on the node: by PreEnqueue, PreFilter or Filter."""

    status: Status
    is_crowded: bool = False
    """Caused only by pods nominated to the node."""

    @property
    def plugin(self) -> str:
        return self.status.plugin


class Situation:
    """`subject` on `node_name`. The pod counts as pending; its spec.nodeName matters only to
    NodeName."""

    def __init__(
        self,
        view: TrialCluster,
        subject: Pod,
        node_name: str,
        kept: Collection[ObjectRef] = (),
    ) -> None:
        self.view = view
        self.kept = kept
        """Pods that stay on the node."""
        self.subject = subject
        self.node_name = node_name
        self._ref = ObjectRef.of(subject)

    def refusals(self, changes: Sequence[ObjectChange] = ()) -> list[Refused]:
        """All rejections of the pod once `changes` are made; empty when it fits.

        Changes that are impossible, or give an invalid object, count as a rejection without a
        plugin.
        """
        return self.refusals_after(self.subject, changes)

    def refusals_after(self, pod: Pod, changes: Sequence[ObjectChange]) -> list[Refused]:
        """The refusals of a cluster with changes already made, in which the subject is `pod`."""
        try:
            changed, steps = self._steps(pod, changes)
            with self.view.changed(steps):
                return self._judge(changed)
        except (InputError, ConflictError) as error:
            return [Refused(Status(Code.Error, (str(error),)))]

    @contextmanager
    def changed(self, changes: Sequence[ObjectChange]) -> Iterator[Pod]:
        """Apply `changes` to the cluster until the end of the block; yields the pod, which may have
        changed, too."""
        pod, steps = self._steps(self.subject, changes)
        with self.view.changed(steps):
            yield pod

    @property
    def node(self) -> Node:
        """The current node."""
        found = self.view.cluster.get("Node", "", self.node_name)
        assert isinstance(found, Node), "no change deletes the node"
        return found

    def _steps(self, pod: Pod, changes: Sequence[ObjectChange]) -> tuple[Pod, list[Step]]:
        """The changed pod, and the replaced objects."""
        steps: list[Step] = []
        by_object: dict[ObjectRef, list[ObjectChange]] = {}
        for change in changes:
            by_object.setdefault(change.object, []).append(change)
        for ref, own in by_object.items():
            if ref == self._ref:
                changed = changed_object(pod, own)
                assert isinstance(changed, Pod), "a field change keeps the kind"
                if self.view.cluster.get("Pod", pod.namespace, pod.name) is not None:
                    steps.append((pod.with_node(""), changed.with_node("")))
                pod = changed
            else:
                steps.append(_step(self.view.cluster, ref, own))
        return pod, [*steps, *self._other_holders(steps)]

    def _other_holders(self, steps: Sequence[Step]) -> list[Step]:
        """Pods that hold a host port of a deleted pod, replaced by themselves.

        A scheduler that sees a pod go takes its port for free, as kube-scheduler does, until another holder changes.
        """
        gone = [old for old, new in steps if new is None and isinstance(old, Pod)]
        freed = {(pod.node_name, port) for pod in gone for port in pod.spec.host_ports}
        if not freed:
            return []
        return [
            (pod, pod)
            for pod in self.view.cluster.list("Pod")
            if pod not in gone and any((pod.node_name, p) in freed for p in pod.spec.host_ports)
        ]

    def _judge(self, pod: Pod) -> list[Refused]:
        gate = self.view.gate(pod)
        if not gate.is_success:
            return [Refused(gate)]
        filtering, table = self.view.profile_of(pod).filtering, self.view.table
        state = CycleState()
        try:
            pre = filtering.run_pre_filters(state, pod, table)
            if not pre.status.is_success:
                return [Refused(pre.status)]
            node = table.node_at(table.row_of[self.node_name])
            found = []
            for plugin in filtering.filters:
                if plugin.name not in state.skip_filter:
                    status = _ask(plugin, state, pod, node)
                    if not status.is_success:
                        found.append(Refused(status.by(plugin.name)))
            if found:
                return found
            if pre.node_names is not None and self.node_name not in pre.node_names:
                plugins = " ".join(sorted(pre.narrowed_by))
                return [Refused(Status(Code.Unschedulable, (OUTSIDE.format(plugins),), plugins))]
            crowded = filtering.filter_with_nominated(state, pod, node)
            if not crowded.is_success:
                return [Refused(crowded, is_crowded=True)]
            # A plugin that fails on another node fails the whole attempt.
            filtering.run_filters(state, pod, table, ALL)
        except PluginRunError as failed:
            if failed.is_fault:
                raise
            return [Refused(failed.status)]
        return self._ask_extenders(pod)

    def _ask_extenders(self, pod: Pod) -> list[Refused]:
        """Extenders are called in the ordinary way, with all nodes."""
        if not self.view.has_extenders:
            return []
        attempt = self.view.ask(pod).decide()
        if attempt.status is not None and not attempt.status.is_rejected:
            return [Refused(attempt.status.by(EXTENDER))]
        told = attempt.explanation
        status = told.filter.get(self.node_name) if told is not None else None
        return [] if status is None or status.is_success else [Refused(status)]


def steps_of(cluster: StillCluster, changes: Sequence[ObjectChange]) -> list[Step]:
    """The replaced objects, each with its replacement; raises InputError when an object is missing."""
    by_object: dict[ObjectRef, list[ObjectChange]] = {}
    for change in changes:
        by_object.setdefault(change.object, []).append(change)
    return [_step(cluster, ref, own) for ref, own in by_object.items()]


def _step(cluster: StillCluster, ref: ObjectRef, changes: Sequence[ObjectChange]) -> Step:
    old = cluster.get(ref.kind, ref.namespace, ref.name)
    new = old
    for change in changes:
        if change.kind is ChangeKind.CREATE:
            new = decode(change.to)
        elif new is None:
            raise InputError(f"{ref.kind} {ref.key}: expected an object; got none")
        elif change.kind is ChangeKind.DELETE:
            new = None
        else:
            new = changed_object(new, [change])
    return old, new


def _ask(plugin: FilterPlugin, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
    try:
        return ask_filter(plugin, state, pod, node)
    except PluginRunError as failed:
        if failed.is_fault:
            raise
        return failed.status
