"""Shapes: nodes for traces that do not list any, of a shape that the user describes."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count as numbers
from math import ceil

from ...api.pod_stages import DURATION
from ...api.text.durations import parse_duration
from ...api.text.name_faults import is_label_value, is_qualified_name
from ...api.text.quantity import is_amount, parse_quantity
from ...errors import InputError
from ...manifests.timeline import CREATED_AT
from .trace_manifests import MAX_PODS, Manifest, make_node

HEADROOM = 1.2
"""Nodes per node that the peak of the requests would fill."""
EXPECTED = (
    "expected RESOURCE=AMOUNT, label:KEY=VALUE and count=NUMBER, separated by commas, such as "
    "count=20,cpu=64,memory=256Gi"
)


@dataclass(frozen=True)
class NodeShape:
    """Nodes of one shape: their number, or None for as many as the pods need."""

    resources: dict[str, str]
    labels: dict[str, str]
    count: int | None = None

    def takes(self, pod: Manifest) -> bool:
        """Whether the labels are those that the pod requires."""
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
        return all(
            self.labels.get(expression["key"]) in expression.get("values", ())
            for term in required.get("nodeSelectorTerms", ())
            for expression in term["matchExpressions"]
        )


def parse_shape(text: str, pods_per_node: int | None = None) -> NodeShape:
    """Parse a text such as `count=20,cpu=64,memory=256Gi,label:zone=a`; raises InputError for another form.

    Nodes of a shape without `pods` take `pods_per_node`, or as many as nodes of traces do.
    """
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}
    number: int | None = None
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        key = name.removeprefix("label:")
        if key != name and is_qualified_name(key) and is_label_value(value):
            labels[key] = value
        elif name == "count" and value.isascii() and value.isdigit():
            number = int(value)
        elif is_qualified_name(name) and name != "count" and is_amount(value):
            resources[name] = value
        else:
            raise InputError(f'--node: {EXPECTED}; got "{part}"')
    if not resources:
        raise InputError(f'--node: {EXPECTED}; got "{text}"')
    return NodeShape({"pods": str(pods_per_node or MAX_PODS), **resources}, labels, number)


def shaped_nodes(shapes: Iterable[NodeShape], pods: Iterator[Manifest]) -> Iterator[Manifest]:
    """Yield the nodes of the shapes.

    Of a shape without a number there are as many as the pods that it takes request at once, at their peak, and a fifth
    more, for pods do not fill nodes without gaps. A pod counts for the first shape that takes it.
    """
    shapes = list(shapes)
    found = [shape.count for shape in shapes]
    if None in found:
        found = _needed(shapes, pods)
    number = numbers()
    for shape, how_many in zip(shapes, found, strict=True):
        for _ in range(how_many or 0):
            yield make_node(f"node-{next(number)}", shape.resources, shape.labels)


def _needed(shapes: list[NodeShape], pods: Iterator[Manifest]) -> list[int | None]:
    """The number of nodes of each shape."""
    arrivals: list[list[tuple[float, float, dict[str, float]]]] = [[] for _ in shapes]
    cache: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for pod in pods:
        place = next((i for i, shape in enumerate(shapes) if shape.takes(pod)), None)
        if place is None or shapes[place].count is not None:
            continue
        notes = pod["metadata"].get("annotations", {})
        created_s = parse_duration(notes.get(CREATED_AT, "0")) or 0.0
        lasts_s = parse_duration(notes.get(DURATION, "")) or float("inf")
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        key = tuple(requests.items())
        amounts = cache.get(key)
        if amounts is None:
            given = (("pods", "1"), *key)
            amounts = {name: float(parse_quantity(text)) for name, text in given}
            cache[key] = amounts
        arrivals[place].append((created_s, created_s + lasts_s, amounts))
    return [
        shape.count if shape.count is not None else _peak(shape, came)
        for shape, came in zip(shapes, arrivals, strict=True)
    ]


def _peak(shape: NodeShape, arrivals: list[tuple[float, float, dict[str, float]]]) -> int:
    """The number of nodes for the largest sum of requests at one time; at least one."""
    arrivals.sort(key=lambda each: each[0])
    leaving: list[tuple[float, int, dict[str, float]]] = []
    used: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for i, (created_s, end_s, amounts) in enumerate(arrivals):
        while leaving and leaving[0][0] <= created_s:
            used.subtract(heapq.heappop(leaving)[2])
        heapq.heappush(leaving, (end_s, i, amounts))
        for name, amount in amounts.items():
            used[name] += amount  # type: ignore[assignment]  # NumPy scalars
            peak[name] = max(peak[name], used[name])
    offered = {name: float(parse_quantity(text)) for name, text in shape.resources.items()}
    shares = (peak[name] / offered[name] for name in peak if offered.get(name))
    return max(1, ceil(max(shares, default=0.0) * HEADROOM))
