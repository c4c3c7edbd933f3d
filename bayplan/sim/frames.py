"""Frames: rows of plain values as a pandas DataFrame, where pandas is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..api.node import ZONE, Node
from ..api.pod import Pod
from ..api.pod_groups import labelled_group_of, pod_group_of
from ..api.pod_workload import workload_of
from ..errors import InputError

T = TypeVar("T")


def chosen(what: str, rows: Mapping[str, Callable[[], T]]) -> T:
    """The rows called `what`; raises InputError for another name."""
    if what not in rows:
        raise InputError(f'to_frame: expected {" or ".join(rows)}; got "{what}"')
    return rows[what]()


def make_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A DataFrame with one line per row; raises InputError when pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise InputError(
            "frames: expected pandas to be installed (pip install 'bayplan[notebook]'); got none"
        ) from None
    return pandas.DataFrame(list(rows))


def pod_columns(pod: Pod) -> dict[str, Any]:
    """Owner, pod group, labels and requests of a pod; cpu in milli, others in whole units."""
    kind, name = workload_of(pod)
    return {
        "owner": None if pod.controller is None else f"{kind}/{name}",
        "group": pod_group_of(pod) or labelled_group_of(pod),
        "labels": dict(pod.labels),
        **pod.requests,
    }


def zone_of(node: Node) -> str | None:
    """The zone that the node's labels name."""
    return node.labels.get(ZONE)
