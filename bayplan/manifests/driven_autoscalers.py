"""Driven autoscalers: a series of replicas that names a HorizontalPodAutoscaler becomes one of its workload.

The metrics of the autoscaler are not known here: the series has the replicas that it would want. Its `minReplicas` and
`maxReplicas` limit that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from msgspec.structs import replace

from ..api.workloads import HorizontalPodAutoscaler
from ..errors import InputError
from .timeline import SCALED_KINDS, Timeline, TimelineEvent, TimelineTarget, WorkloadScale

DEFAULT_MIN = 1
"""Kubernetes' default of minReplicas."""


class DrivenAutoscalers:
    """The autoscalers of an input; `apply` puts their workloads into timelines."""

    def __init__(self, autoscalers: Iterable[HorizontalPodAutoscaler]) -> None:
        self._known = {(one.namespace, one.name): one for one in autoscalers}
        self.driven: set[tuple[str, str]] = set()
        """Those that a series names."""
        self._limited: dict[str, tuple[int, int, int]] = {}

    def apply(self, timeline: Timeline) -> Timeline:
        """The timeline with changes of workloads for those of autoscalers; one that is not there stays as it is."""
        if not any(self._is_driven(scale) for event in timeline.events for scale in event.scale):
            return timeline
        return replace(timeline, events=tuple(map(self._event, timeline.events)))

    def notes(self) -> list[str]:
        """Differences of a series from its autoscaler."""
        return [
            f"{name} limits its series: {count:,} of its numbers of replicas are outside of {low} to {high}"
            for name, (count, low, high) in self._limited.items()
        ]

    def _is_driven(self, scale: WorkloadScale) -> bool:
        return (
            scale.ref.kind == HorizontalPodAutoscaler.kind
            and (scale.ref.namespace, scale.ref.name) in self._known
        )

    def _event(self, event: TimelineEvent) -> TimelineEvent:
        scale = tuple(self._scale(one) if self._is_driven(one) else one for one in event.scale)
        return replace(event, scale=scale)

    def _scale(self, scale: WorkloadScale) -> WorkloadScale:
        ref, key = scale.ref, (scale.ref.namespace, scale.ref.name)
        kind, name, low, high = read_autoscaler(self._known[key], str(ref))
        self.driven.add(key)
        replicas = min(max(scale.replicas, low), high)
        if replicas != scale.replicas:
            count = self._limited.get(str(ref), (0, low, high))[0] + 1
            self._limited[str(ref)] = count, low, high
        return WorkloadScale(TimelineTarget(kind, ref.namespace, name), replicas)


def read_autoscaler(autoscaler: HorizontalPodAutoscaler, label: str) -> tuple[str, str, int, int]:
    """Its target, minReplicas and maxReplicas; raises InputError, with the path, where it is wrong."""
    target = autoscaler.spec.scale_target_ref
    target = target if isinstance(target, Mapping) else {}
    kind, name = target.get("kind"), target.get("name")
    if kind not in SCALED_KINDS:
        _fail(label, "scaleTargetRef.kind", ", ".join(SCALED_KINDS), kind)
    if not isinstance(name, str) or not name:
        _fail(label, "scaleTargetRef.name", "the name of a workload", name)
    low, high = autoscaler.spec.min_replicas, autoscaler.spec.max_replicas
    low = DEFAULT_MIN if low is None else low
    if not isinstance(low, int) or isinstance(low, bool) or low < 0:
        _fail(label, "minReplicas", "a number of pods, 0 or more", low)
    if not isinstance(high, int) or isinstance(high, bool) or high < max(low, 1):
        _fail(label, "maxReplicas", f"a number of pods, {max(low, 1)} or more", high)
    return str(kind), str(name), int(low), int(high)


def _fail(label: str, path: str, expected: str, value: Any) -> NoReturn:
    shown = "none" if value is None else f'"{value}"' if isinstance(value, str) else value
    raise InputError(f"{label}: spec.{path}: expected {expected}; got {shown}")
