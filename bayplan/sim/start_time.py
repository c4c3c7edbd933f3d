"""Start time: the time of day at which a simulation begins."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from ..api.pod import Pod
from ..clock import EPOCH
from ..cluster.objects import ClusterObject


def start_time(objects: Iterable[ClusterObject]) -> datetime:
    """The latest time in the input, so that all of it is past."""
    newest = ""
    for obj in objects:
        newest = max(newest, obj.creation_timestamp or "")
        if isinstance(obj, Pod) and obj.status.start_time:
            newest = max(newest, obj.status.start_time)
    return (moment_of(newest) or EPOCH).replace(microsecond=0)


def moment_of(text: str | None) -> datetime | None:
    """The moment of a timestamp; None when it is invalid."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
