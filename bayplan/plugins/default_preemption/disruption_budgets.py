"""Disruption budgets: the number of pods that may be disrupted, and the pods that a budget protects.

Mirrors filterPodsWithPDBViolation of pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from ...api.pod import Pod
from ...api.workloads import PodDisruptionBudget
from ...framework.lister import Lister
from ...stamped_cache import StampedCache
from ...table import Bools, Ints
from ...table.pod_matrix import PodMatrix


class Budgets:
    """The disruption budgets of the cluster at one moment.

    The budgets that protect a pod depend on its namespace and labels, and are evaluated once for each distinct
    combination.
    """

    def __init__(
        self, listed: Iterable[PodDisruptionBudget] = (), stops_at_first: bool = False
    ) -> None:
        self.listed = list(listed)
        self._stops_at_first = stops_at_first
        self._in: dict[str, list[PodDisruptionBudget]] = {}
        for budget in self.listed:
            self._in.setdefault(budget.namespace, []).append(budget)
        self._of: StampedCache[Hashable, tuple[PodDisruptionBudget, ...]] = StampedCache(
            "disruption budgets", 65_536
        )

    def of(self, pod: Pod) -> Sequence[PodDisruptionBudget]:
        """The budgets that protect pods with these labels."""
        if pod.namespace not in self._in or not pod.labels:
            return ()
        key = (pod.namespace, frozenset(pod.labels.items()))
        found = self._of.get(key)
        if found is None:
            here = self._in[pod.namespace]
            found = self._of.put(key, tuple(budget for budget in here if protects(budget, pod)))
        return found

    def split(self, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Pods whose removal, one after the other, would exceed some budget, and the others."""
        if not self.listed:
            return [], list(pods)
        allowed: dict[int, int] = {}
        violating: list[Pod] = []
        harmless: list[Pod] = []
        for pod in pods:
            exceeds = self.exceeds(pod, allowed, self._stops_at_first)
            (violating if exceeds else harmless).append(pod)
        return violating, harmless

    def exceeds(self, pod: Pod, allowed: dict[int, int], stops_at_first: bool) -> bool:
        """Whether removing the pod exceeds a budget; `allowed` has the remaining disruptions by id of the budget."""
        exceeded = False
        for budget in self.of(pod):
            if pod.name not in budget.disrupted_pods:
                left = allowed.get(id(budget), budget.status.disruptions_allowed) - 1
                allowed[id(budget)] = left
                exceeded = exceeded or left < 0
                if exceeded and stops_at_first:
                    break  # later budgets keep their allowance
        return exceeded

    def exceeded(self, matrix: PodMatrix, rows: Ints, priority: int) -> Bools | None:
        """bool [rows, places]: removing the pod, after the more important ones below `priority`, exceeds a budget.

        None if that is true of no pod on these rows.
        """
        if not self.listed:
            return None
        lower = matrix.priority[rows] < priority
        labels = np.where(lower, matrix.labels[rows], 0)
        protected: dict[int, tuple[PodDisruptionBudget, list[int]]] = {}
        for number in np.unique(labels).tolist():
            sample = matrix.label_samples[number]
            for budget in self.of(sample) if sample is not None else ():
                protected.setdefault(id(budget), (budget, []))[1].append(number)
        if not protected:
            return None
        exceeded = np.zeros(lower.shape, dtype=np.bool_)
        if self._stops_at_first and len(protected) > 1:
            return self._exceeded_one_by_one(matrix, rows, exceeded, lower)
        for budget, numbers in protected.values():
            matched = np.isin(labels, numbers)
            if budget.disrupted_pods:
                for position, place in np.argwhere(matched):
                    pod = matrix.pods[rows[position]][place]
                    matched[position, place] = pod.name not in budget.disrupted_pods
            exceeded |= matched & (np.cumsum(matched, axis=1) > budget.status.disruptions_allowed)
        return exceeded

    def _exceeded_one_by_one(
        self, matrix: PodMatrix, rows: Ints, exceeded: Bools, lower: Bools
    ) -> Bools:
        """Fill in `exceeded` where it depends on the order of budgets."""
        for position, row in enumerate(rows.tolist()):
            pods = matrix.pods[row]
            places = [place for place in range(len(pods)) if lower[position, place]]
            violating = {id(pod) for pod in self.split([pods[place] for place in places])[0]}
            for place in places:
                exceeded[position, place] = id(pods[place]) in violating
        return exceeded


class BudgetFollower:
    """Caches the `Budgets` until a budget changes."""

    def __init__(self, stops_at_first: bool = False) -> None:
        self._lister: Lister | None = None
        self._version = -1
        self._stops_at_first = stops_at_first
        self._budgets = Budgets((), stops_at_first)

    def get(self, lister: Lister) -> Budgets:
        """The budgets that `lister` has."""
        if lister is not self._lister or lister.version != self._version:
            self._lister, self._version = lister, lister.version
            known, listed = self._budgets.listed, list(lister.list("PodDisruptionBudget"))
            if len(known) != len(listed) or any(
                a is not b for a, b in zip(known, listed, strict=True)
            ):
                self._budgets = Budgets(listed, self._stops_at_first)
        return self._budgets


def protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether preemption of pods like this one counts against the budget; an empty selector selects none here."""
    selector = budget.spec.selector
    is_empty = selector is None or selector.is_empty
    return bool(pod.labels) and not is_empty and budget.selects(pod.namespace, pod.labels)
