"""Neglect: pods that wait at the end of a run, though a node that could be launched would take them.

An invariant of every run with an autoscaler, checked with the filters of the scheduler on new nodes, apart from how
either autoscaler plans.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..api.pod import Pod
from ..planning.shadow import ShadowScheduler
from ..sim.autoscaling_record import NeglectedPod
from .launch_options import PROBE, ChoiceKey, LaunchOption, LaunchOptions, choice_key
from .pool_nodes import PoolUse


def neglected_pods(
    pods: Iterable[Pod], options: LaunchOptions, shadow: ShadowScheduler, use: PoolUse
) -> list[NeglectedPod]:
    """The pods that no node takes that exists or boots, and a new one would that its pool may have."""
    pods = list(pods)
    options.learn(pods)
    open_options = [one for one in options.all if use.allows(one.pool, one.type)]
    answers: dict[ChoiceKey, LaunchOption | None] = {}
    found = []
    for pod in pods:
        key = choice_key(pod)
        if key not in answers:
            able = [one for one in open_options if options.choice(pod).accepts[one.number]]
            answers[key] = _taker(pod, able, shadow)
        taker = answers[key]
        if taker is not None:
            found.append(NeglectedPod(pod.key, taker.pool.name, taker.type.name, taker.zone))
    return found


def _taker(pod: Pod, options: list[LaunchOption], shadow: ShadowScheduler) -> LaunchOption | None:
    """The first option whose new node would take the pod; None if there is none, or an existing node takes it.

    Each is tried alone: a further node could be a further domain of a spread. Of a pool in a zone the largest is tried.
    """
    if not options or (shadow.totals(pod) >= 0).any():
        return None
    largest: dict[tuple[str, str], LaunchOption] = {}
    for one in options:
        key = one.pool.name, one.zone
        if key not in largest or largest[key].size < one.size:
            largest[key] = one
    for one in largest.values():
        name = f"{PROBE}{one.number}"
        objects = one.make_objects(name, is_shadow=True)
        shadow.put(objects)
        is_taken = bool(shadow.totals(pod)[shadow.table.row_of[name]] >= 0)
        shadow.drop(objects)
        if is_taken:
            return one
    return None
