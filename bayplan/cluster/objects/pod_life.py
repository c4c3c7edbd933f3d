"""Pod life: the statuses that the API server and the kubelet write.

Equal statuses are one object: pods bound in the same second share theirs.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache

from msgspec.structs import replace

from ...api.pod import Pod, PodCondition, PodStatus
from ...api.pod_groups import GroupPreemptor
from ...api.pod_status import DISRUPTION_TARGET, POD_SCHEDULED
from ...api.wire.interning import shared
from ...clock import Clock, rfc3339
from ...framework.handle import preemptor_kind

PREEMPTION = "PreemptionByScheduler"


def timestamp(clock: Clock, later_s: float = 0) -> str:
    """The time of the clock, or some seconds later, in Kubernetes' format: whole seconds."""
    # To the microsecond: sums of seconds may end with .999999999.
    micros = math.floor((clock.timestamp() + later_s) * 1e6 + 0.5)
    return _formatted(micros // 1_000_000)


@lru_cache(maxsize=16)
def _formatted(seconds: int) -> str:
    """Seconds since 1970."""
    return rfc3339(datetime.fromtimestamp(seconds, UTC))


def moment_of(text: str | None) -> datetime | None:
    """The moment of a timestamp; None when it is invalid."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def running(pod: Pod, now: str) -> PodStatus:
    """The status of a pod that was just bound: scheduled, started, without a nomination."""
    return _running(pod.status, pod.generation, now)


@lru_cache(maxsize=1024)
def _running(status: PodStatus, generation: int, now: str) -> PodStatus:
    scheduled = PodCondition(type=POD_SCHEDULED, status="True", observed_generation=generation)
    started = replace(status, phase="Running", start_time=now, nominated_node_name="")
    return with_condition(started, scheduled)


def disrupted(pod: Pod, preemptor: Pod | GroupPreemptor) -> PodStatus:
    """The status of a preempted pod."""
    kind = preemptor_kind(preemptor)
    message = f"{preemptor.scheduler_name}: preempting to accommodate a higher priority {kind}"
    condition = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=PREEMPTION,
        message=message,
        observed_generation=pod.generation,
    )
    return with_condition(pod.status, condition)


def with_condition(status: PodStatus, condition: PodCondition) -> PodStatus:
    """The status with this condition, in place of another of its type."""
    others = (c for c in status.conditions or () if c.type != condition.type)
    return shared(replace(status, conditions=shared((*others, condition))))


def finished(pod: Pod, phase: str) -> PodStatus:
    """The status of a pod that has Succeeded or Failed."""
    return shared(replace(pod.status, phase=phase))
