"""Release metrics: the metrics that not every release of kube-scheduler has.

`missing_metrics` of a release names those that it does not have; the others are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .families import CounterFamily, Family, HistogramFamily, ReadCounter, ReadGauge
from .scheduler_metrics import SchedulerMetrics
from .series import exponential_buckets


def follow_release(metrics: SchedulerMetrics, missing: Collection[str]) -> None:
    """Show the metrics of a release, and hide those that are `missing` in it."""
    shown = {family.name for family in metrics.families}
    for family in _families(metrics):
        if family.name not in missing and family.name not in shown:
            metrics.add(family)
    metrics.hide(missing)


def _families(metrics: SchedulerMetrics) -> Iterator[Family]:
    """The metrics that v1.36 does not have."""
    yield ReadGauge(
        "scheduler_scheduler_cache_size{type}",
        "Nodes, pods and assumed pods in the cache.",
        source=lambda: metrics.cache_size.source(),
    )
    yield ReadGauge(
        "scheduler_queued_entities{queue,type}",
        "Entries of the queue by its part: pods that are not in a pod group, and pod groups.",
        source=lambda: metrics.queued_entities(),
    )
    yield ReadCounter(
        "scheduler_queue_incoming_entities_total{queue,event,type}",
        "Entries that entered a part of the queue, by event.",
        source=lambda: metrics.incoming_entities(),
    )
    yield CounterFamily(
        "scheduler_pre_queueing_hint_evaluations_total{plugin,result}",
        "How often an event was narrowed to the pods it concerns before the hints; always empty here.",
    )
    yield CounterFamily(
        "scheduler_batch_rescore_attempts_total{profile}",
        "How often the node of an equal pod before was scored again; always empty here.",
    )
    yield HistogramFamily(
        "scheduler_batch_rescore_duration_seconds{profile}",
        "Time to score such a node again; always empty here.",
        exponential_buckets(0.00001, 2, 12),
    )
    yield ReadCounter(
        "dynamic_resource_allocation_resourceclaim_creates_total{status,admin_access,owner_api_group,owner_api_kind}",
        "ResourceClaims created for extended resources, by result.",
        source=lambda: {
            (*labels, "false", "", "Pod"): n for labels, n in metrics.claim_creates.read().items()
        },
    )
