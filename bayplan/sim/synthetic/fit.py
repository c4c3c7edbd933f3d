"""Fit: a model whose workloads resemble the pods of a trace.

The rate and the time of day come from the times of creation, bursts from the gaps between them, requests from the kinds
that occur, durations from the more likely of a lognormal and a Pareto distribution.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import atan2, cos, hypot, log, pi, sin
from statistics import fmean, median, pstdev
from typing import Any

from ...api.node import HOSTNAME, ZONE, Node
from ...api.own_documents import API_VERSION
from ...api.pod import Pod
from ...api.pod_stages import DURATION
from ...api.text.durations import format_duration, parse_duration
from ...api.text.quantity import format_quantity
from ...errors import InputError
from ...manifests.timeline import CREATED_AT, InputObject
from .model import KIND
from .processes import DAY_S, HOUR_S

MAX_KINDS = 50
"""Limit on the kinds of requests in a model; the most frequent ones are used."""
OWN_DURATION = 30
"""Number of pods from which on a kind gets its own durations."""
GAP_SHARE = 0.1
"""Part of the mean gap below which two arrivals belong to one burst."""
BURSTY = 1.5
"""Ratio of variance to mean of the arrivals per window above which there are bursts; 1 for a Poisson process."""
SMALLEST_BURST = 3
RAYLEIGH = 6.0
"""Twice the number of arrivals times the squared resultant above which a time of day counts: 95 % confidence."""


def fit_model(objects: Iterable[InputObject]) -> dict[str, Any]:
    """The model of nodes and pods as plain data, as a WorkloadModel is written; raises InputError without pods."""
    nodes: list[Node] = []
    pods: list[Pod] = []
    for obj in objects:
        if isinstance(obj, Node):
            nodes.append(obj)
        elif isinstance(obj, Pod):
            pods.append(obj)
    times = sorted(_created_s(pod) for pod in pods)
    if len(times) < 2 or times[-1] <= times[0]:
        raise InputError(
            f"fit: expected pods that are created at different times ({CREATED_AT}); got {len(times)} pods"
        )
    span_s = (times[-1] - times[0]) * len(times) / (len(times) - 1)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "duration": format_duration(span_s),
        "nodes": _nodes(nodes),
        "arrivals": _arrivals([at_s - times[0] for at_s in times], span_s),
        "jobs": _jobs(pods),
    }


def _created_s(pod: Pod) -> float:
    return parse_duration(pod.annotations.get(CREATED_AT, "0s")) or 0.0


def _nodes(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """Equal nodes by their amounts and labels."""
    counts: Counter[tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]] = Counter()
    for node in nodes:
        own = {k: v for k, v in node.labels.items() if k != HOSTNAME}
        counts[tuple(sorted(node.allocatable.items())), tuple(sorted(own.items()))] += 1
    found = []
    for (amounts, labels), count in counts.items():
        resources = {name: format_quantity(amount, name) for name, amount in amounts}
        entry: dict[str, Any] = {"count": count, "resources": resources}
        if others := {k: v for k, v in labels if k != ZONE}:
            entry["labels"] = others
        if zone := dict(labels).get(ZONE):
            entry["zones"] = [zone]
        found.append(entry)
    return found


def _arrivals(times: Sequence[float], span_s: float) -> dict[str, Any]:
    """The rate per hour, with the time of day and bursts where they are certain enough."""
    found: dict[str, Any] = {"perHour": round(len(times) / span_s * HOUR_S, 3)}
    groups = [[at_s] for at_s in times]
    if _is_bursty(times, span_s):
        groups = _groups(times, GAP_SHARE * span_s / len(times))
        large = [group for group in groups if len(group) >= SMALLEST_BURST]
        if large:
            found |= _bursts(large, len(times), span_s / HOUR_S)
    swing, peak_s = _day([group[0] for group in groups], span_s)
    return found | ({"diurnal": {"swing": swing, "peak": format_duration(peak_s)}} if swing else {})


def _day(times: Sequence[float], span_s: float) -> tuple[float, float]:
    """The swing of the rate over the day, and when it is highest; zeros for less than two days, or without evidence."""
    whole = span_s // DAY_S * DAY_S
    used = [at_s for at_s in times if at_s < whole]
    if whole < 2 * DAY_S or not used:
        return 0.0, 0.0
    angles = [2 * pi * at_s / DAY_S for at_s in used]
    x, y = fmean(map(cos, angles)), fmean(map(sin, angles))
    if 2 * len(used) * (x * x + y * y) < RAYLEIGH:
        return 0.0, 0.0
    return round(min(2 * hypot(x, y), 1.0), 3), (atan2(y, x) / (2 * pi) * DAY_S) % DAY_S


def _is_bursty(times: Sequence[float], span_s: float) -> bool:
    """Whether arrivals vary from window to window more than a Poisson process; slow changes do not count."""
    windows = max(len(times) // 10, 2)
    counts = Counter(min(int(at_s / span_s * windows), windows - 1) for at_s in times)
    numbers = [counts[i] for i in range(windows)]
    steps = fmean((one - other) ** 2 for one, other in pairwise(numbers)) / 2
    return steps > BURSTY * fmean(numbers)


def _groups(times: Iterable[float], gap_s: float) -> list[list[float]]:
    """Arrivals with smaller gaps than this between them."""
    groups: list[list[float]] = []
    for at_s in times:
        if groups and at_s - groups[-1][-1] <= gap_s:
            groups[-1].append(at_s)
        else:
            groups.append([at_s])
    return groups


def _bursts(groups: Sequence[Sequence[float]], total: int, hours: float) -> dict[str, Any]:
    """The bursts, and the rate of the jobs in none of them."""
    jobs = sum(map(len, groups))
    bursts = {
        "perHour": round(len(groups) / hours, 4),
        "jobs": round(jobs / len(groups), 2),
        "within": format_duration(max(median(each[-1] - each[0] for each in groups), 1)),
    }
    return {"perHour": round((total - jobs) / hours, 3), "bursts": bursts}


def _jobs(pods: Iterable[Pod]) -> list[dict[str, Any]]:
    """Kinds of jobs: the most frequent requests by namespace, priority and labels of nodes."""
    kinds: dict[tuple[Any, ...], list[Pod]] = defaultdict(list)
    for pod in pods:
        selector = tuple(sorted((pod.spec.node_selector or {}).items()))
        requests = tuple(sorted(pod.requests.items()))
        kinds[pod.namespace, pod.spec.priority, selector, requests].append(pod)
    frequent = sorted(kinds.items(), key=lambda each: -len(each[1]))[:MAX_KINDS]
    everything = [pod for _, members in frequent for pod in members]
    shared = _duration(everything)
    found = []
    for number, ((namespace, priority, selector, requests), members) in enumerate(frequent):
        amounts = {name: format_quantity(amount, name) for name, amount in requests if amount}
        entry: dict[str, Any] = {
            "name": f"kind{number}",
            "share": len(members),
            "namespace": namespace,
            "requests": amounts,
        }
        own = _duration(members) if len(members) >= OWN_DURATION else shared
        if own is not None:
            entry["duration"] = own
        if priority:
            entry["priority"] = priority
        if selector:
            entry["nodeSelector"] = dict(selector)
        found.append(entry)
    return found


def _duration(pods: Iterable[Pod]) -> dict[str, Any] | None:
    """The distribution under which the durations are most likely; None when no pod ends."""
    texts = [pod.annotations.get(DURATION) for pod in pods]
    seconds = [value for text in texts if text and (value := parse_duration(text))]
    if not seconds:
        return None
    logs = [log(value) for value in seconds]
    sigma = pstdev(logs)
    if sigma < 1e-9:
        return {"values": [format_duration(seconds[0])]}
    least, centre = min(logs), fmean(logs)
    alpha = 1 / (centre - least)
    of_lognormal = -log(sigma * (2 * pi) ** 0.5) - 0.5
    of_pareto = log(alpha) + alpha * least - alpha * centre
    longest = format_duration(max(seconds))
    if of_pareto > of_lognormal:
        shape = {"min": format_duration(min(seconds)), "alpha": round(alpha, 4), "max": longest}
        return {"pareto": shape}
    middle = format_duration(median(seconds))
    return {"lognormal": {"median": middle, "sigma": round(sigma, 4), "max": longest}}
