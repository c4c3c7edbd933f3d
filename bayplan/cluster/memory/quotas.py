"""Quotas: the use of a namespace's ResourceQuotas by its pods and claims, and the quota that refuses a new object.

Mirrors CheckRequest of k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go and the evaluators of
pkg/quota/v1/evaluator/core for pods and claims. Messages are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from ...api.containers import Container
from ...api.limits import EXISTS, ResourceQuota, ScopeRequirement
from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.resources import QUOTA_PREFIX, is_hugepages, is_native, pod_amounts, pod_limits
from ...api.storage import PersistentVolumeClaim
from ...api.text.quantity import NANO, ExactAmount, nano_to_value, parse_quantity
from ...api.wire.kinds import resource_name
from ...framework.lister import Lister
from ..objects.object_index import ClusterObject
from .limit_ranges import with_notation

Counted: TypeAlias = Pod | PersistentVolumeClaim
"""The objects whose use is followed."""
Use: TypeAlias = dict[str, ExactAmount]
Later: TypeAlias = Callable[[Pod, Callable[[], None]], None]

ONE = ExactAmount(NANO)
ZERO = ExactAmount(0)
COMPUTE = ("cpu", "memory", "ephemeral-storage")
MUST_BE_SET = frozenset(
    f"{word}{name}" for word in ("", "requests.", "limits.") for name in ("cpu", "memory")
)
POD_NAMES = frozenset(
    {"pods", "count/pods", *(f"{w}{n}" for w in ("", "requests.", "limits.") for n in COMPUTE)}
)
CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")
COUNTED_KINDS = (
    *("CronJob", "DaemonSet", "Deployment", "Job", "PodDisruptionBudget", "ReplicaSet"),
    *("ReplicationController", "ResourceClaim", "Service", "StatefulSet"),
)
"""The kinds of a simulation whose number quotas may limit."""
BY_CLASS = ".storageclass.storage.k8s.io/"


class _SpecUse(NamedTuple):
    """Use by a pod of a spec, and the limits whose resource all of its containers set."""

    use: Use
    set_by_all: frozenset[str]


class QuotaLedger:
    """Follows the cluster, and has the use of every ResourceQuota. A watcher of the cluster.

    With `later`, the use of a deleted pod is released by an action that is given to it, with the pod: the controller of
    quotas counts again some time after a deletion, while new pods are counted at once.
    """

    def __init__(self, lister: Lister, later: Later | None = None) -> None:
        self._lister = lister
        self._later = later
        self._used: dict[tuple[str, str], Use] = {}
        self._of_spec: WeakKeyDictionary[PodSpec, _SpecUse] = WeakKeyDictionary()

    def on_add(self, obj: Any) -> None:
        """Count the object, or begin to follow a quota."""
        if isinstance(obj, ResourceQuota):
            self._used[obj.namespace, obj.name] = self._measure(obj)
        elif self._used and isinstance(obj, Pod | PersistentVolumeClaim):
            self._change(None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Count the difference."""
        if isinstance(new, ResourceQuota):
            if old.spec != new.spec or (new.namespace, new.name) not in self._used:
                self.on_add(new)
        elif self._used and isinstance(new, Pod | PersistentVolumeClaim):
            self._change(old, new)

    def on_delete(self, obj: Any) -> None:
        """Release the use of the object, or stop to follow a quota."""
        if isinstance(obj, ResourceQuota):
            self._used.pop((obj.namespace, obj.name), None)
        elif not self._used or not isinstance(obj, Pod | PersistentVolumeClaim):
            return
        elif self._later is not None and isinstance(obj, Pod):
            self._release_later(obj)
        else:
            self._change(obj, None)

    def _release_later(self, pod: Pod) -> None:
        """Release the use of a pod in the quotas that count it now: later quotas have not counted it."""
        assert self._later is not None
        counted = [
            used
            for quota in self._lister.list("ResourceQuota", pod.namespace)
            if (used := self._used.get((quota.namespace, quota.name))) is not None
        ]
        if counted:
            self._later(pod, lambda: self._change(pod, None, counted))

    @property
    def has_quotas(self) -> bool:
        """Whether there is any quota."""
        return bool(self._used)

    def used(self, quota: ResourceQuota) -> Use:
        """Use of each limit that is followed."""
        return self._used.get((quota.namespace, quota.name), {})

    def refusal(self, obj: Counted, old: Counted | None = None) -> str:
        """Reason why a new object, or its growth over the `old` one, is refused; empty if it is not."""
        if not self._used:
            return ""
        wanted = self._use_of(obj) if old is None else self._growth(old, obj)
        if not wanted:
            return ""
        for quota in self._lister.list("ResourceQuota", obj.namespace):
            if not _counts(quota, obj):
                continue
            names = list(matching_names(quota, obj))
            missing = self._unset(obj, names) if isinstance(obj, Pod) else ""
            if missing:
                return f"failed quota: {quota.name}: must specify {missing}"
            named = {name: wanted[name] for name in names if name in wanted}
            excess = quota_excess(quota, named, self.used(quota))
            if excess:
                return excess
        return ""

    def object_refusal(self, obj: ClusterObject) -> str:
        """Reason why a quota for the number of objects refuses a new object, other than a pod or a claim; empty if none
        does.
        """
        names = count_names(obj) if self._used else ()
        for quota in self._lister.list("ResourceQuota", obj.namespace) if names else ():
            wanted = {name: ONE for name in names if name in quota.hard}
            if wanted and not quota.scopes:
                number = sum(1 for _ in self._lister.list(obj.kind, obj.namespace))
                used = dict.fromkeys(wanted, ExactAmount(number * NANO))
                excess = quota_excess(quota, wanted, used)
                if excess:
                    return excess
        return ""

    def _growth(self, old: Counted, new: Counted) -> Use:
        """Additional use of the new version over the old one."""
        before, after = self._use_of(old), self._use_of(new)
        more = {name: amount.minus(before.get(name, ZERO)) for name, amount in after.items()}
        return {name: amount for name, amount in more.items() if amount.nano > 0}

    def _measure(self, quota: ResourceQuota) -> Use:
        used: Use = {}
        for kind in ("Pod", "PersistentVolumeClaim"):
            for obj in self._lister.list(kind, quota.namespace):
                _add_to(used, quota, obj, self._use_of(obj))
        for name in quota.hard:
            if _is_followed(name):
                used.setdefault(name, ZERO)
        return used

    def _change(
        self, old: Counted | None, new: Counted | None, only: Sequence[Use] | None = None
    ) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod):
            is_same = old.spec is new.spec and old.is_finished == new.is_finished
            if is_same:
                return
        obj = new if old is None else old
        assert obj is not None, "one of them is given"
        for quota in self._lister.list("ResourceQuota", obj.namespace):
            used = self._used.get((quota.namespace, quota.name))
            if used is None or (only is not None and not any(used is one for one in only)):
                continue
            if old is not None:
                _add_to(used, quota, old, self._use_of(old), sign=-1)
            if new is not None:
                _add_to(used, quota, new, self._use_of(new))

    def _use_of(self, obj: Counted) -> Use:
        if isinstance(obj, PersistentVolumeClaim):
            return claim_use(obj)
        if obj.is_finished:
            return {"count/pods": ONE}
        return self._measured(obj.spec).use

    def _unset(self, pod: Pod, names: Iterable[str]) -> str:
        """The limits whose resource some containers do not set, as text; empty if there are none."""
        required = MUST_BE_SET.intersection(names)
        return "" if required <= self._measured(pod.spec).set_by_all else _unset(pod, required)

    def _measured(self, spec: PodSpec) -> _SpecUse:
        found = self._of_spec.get(spec)
        if found is None:
            containers = (*(spec.containers or ()), *(spec.init_containers or ()))
            set_by_all = MUST_BE_SET.intersection(*map(_set_by, containers))
            found = self._of_spec[spec] = _SpecUse(pod_use(spec), set_by_all)
        return found


def count_names(obj: ClusterObject) -> tuple[str, ...]:
    """Names that quotas have for the number of objects of a kind that is counted by nothing else; empty if it is not
    counted.
    """
    if obj.kind not in COUNTED_KINDS:
        return ()
    name = resource_name(obj.api_version, obj.kind)
    return (f"count/{name}",) if "." in name else (f"count/{name}", name)


def quota_excess(quota: ResourceQuota, wanted: Use, used: Use) -> str:
    """The limits of the quota that an object with the use `wanted` exceeds, as text; empty if there are none."""
    limits = quota.hard
    exceeded = sorted(
        name
        for name, amount in wanted.items()
        if amount.nano and used.get(name, ZERO).nano + amount.nano > parse_quantity(limits[name])
    )
    if not exceeded:
        return ""
    hard = {name: ExactAmount.of(limits[name]) for name in exceeded}
    return (
        f"exceeded quota: {quota.name}, requested: {_listed(wanted, exceeded)}, "
        f"used: {_listed(used, exceeded)}, limited: {_listed(hard, exceeded)}"
    )


def pod_use(spec: PodSpec) -> Use:
    """Use by a pod that has not ended, by the names of quotas."""
    requests = with_notation(pod_amounts(spec), spec, "requests")
    limits = with_notation(pod_limits(spec), spec, "limits")
    return {"count/pods": ONE, **_compute_use(requests, limits)}


def _compute_use(requests: Mapping[str, ExactAmount], limits: Mapping[str, ExactAmount]) -> Use:
    use: Use = {"pods": ONE}
    for name in COMPUTE:
        if name in requests:
            use[name] = use[QUOTA_PREFIX + name] = requests[name]
        if name in limits:
            use[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if is_hugepages(name):
            use[name] = use[QUOTA_PREFIX + name] = amount
        elif not is_native(name):
            use[QUOTA_PREFIX + name] = amount
    return use


def claim_use(claim: PersistentVolumeClaim) -> Use:
    """Use by a claim, by the names of quotas."""
    use = {"persistentvolumeclaims": ONE, "count/persistentvolumeclaims": ONE}
    if "storage" in claim.requests:
        amount = ExactAmount.of(claim.requests["storage"])
        use["requests.storage"] = amount._replace(nano=nano_to_value(amount.nano) * NANO)
    if claim.storage_class_name:
        for name in CLAIM_NAMES:
            if name in use:
                use[f"{claim.storage_class_name}{BY_CLASS}{name}"] = use[name]
    return use


def matching_names(quota: ResourceQuota, obj: Counted) -> Iterator[str]:
    """The limits of the quota that are about objects of this kind."""
    is_about = _is_about_pods if isinstance(obj, Pod) else _is_about_claims
    return (name for name in quota.hard if is_about(name))


@lru_cache(maxsize=1024)
def _is_about_pods(name: str) -> bool:
    if name in POD_NAMES or name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith(QUOTA_PREFIX) and not is_native(name) and not _is_about_claims(name)


@lru_cache(maxsize=1024)
def _is_about_claims(name: str) -> bool:
    names = (*CLAIM_NAMES, "count/persistentvolumeclaims")
    return name in names or name.endswith(tuple(BY_CLASS + each for each in CLAIM_NAMES))


def _is_followed(name: str) -> bool:
    return _is_about_pods(name) or _is_about_claims(name)


def _counts(quota: ResourceQuota, obj: Counted) -> bool:
    """Whether the quota is about the object: one of its limits is, and all of its scopes match."""
    if next(matching_names(quota, obj), None) is None:
        return False
    if not isinstance(obj, Pod):
        return not quota.scopes
    return all(_is_in_scope(obj, scope) for scope in quota.scopes)


def _is_in_scope(pod: Pod, scope: ScopeRequirement) -> bool:
    spec = pod.spec
    match scope.scope_name:
        case "Terminating":
            return spec.active_deadline_seconds is not None
        case "NotTerminating":
            return spec.active_deadline_seconds is None
        case "BestEffort":
            return is_best_effort(spec)
        case "NotBestEffort":
            return not is_best_effort(spec)
        case "CrossNamespacePodAffinity":
            terms = spec.pod_terms
            return any(one.namespaces or one.namespace_selector is not None for one in terms)
        case "PriorityClass":
            return _has_value(scope, spec.priority_class_name)
    return False


def _has_value(scope: ScopeRequirement, value: str) -> bool:
    match scope.operator:
        case "In":
            return bool(value) and value in (scope.values or ())
        case "NotIn":
            return not value or value not in (scope.values or ())
        case "DoesNotExist":
            return not value
    return scope.operator == EXISTS and bool(value)


def is_best_effort(spec: PodSpec) -> bool:
    """Whether no container, nor the pod as a whole, has a request or limit of cpu or memory."""
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    parts = [spec.resources] if spec.resources is not None else [c.resources for c in containers]
    for part in parts:
        for amounts in (part.requests, part.limits) if part is not None else ():
            if any(ExactAmount.of((amounts or {}).get(name)).nano for name in ("cpu", "memory")):
                return False
    return True


def _unset(pod: Pod, required: Iterable[str]) -> str:
    """The limits whose resource some containers do not set, with the names of these."""
    spec = pod.spec
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        for name in set(required) - _set_by(container):
            missing.setdefault(name, set()).add(container.name)
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _set_by(container: Container) -> frozenset[str]:
    """The limits whose resource a container sets."""
    resources = container.resources
    limits = dict.fromkeys((resources.limits or {}) if resources is not None else (), ONE)
    return frozenset(_compute_use(dict.fromkeys(container.requests, ONE), limits))


def _add_to(used: Use, quota: ResourceQuota, obj: Counted, use: Use, sign: int = 1) -> None:
    if not _counts(quota, obj):
        return
    for name in matching_names(quota, obj):
        amount = use.get(name)
        if amount is not None:
            before = used.get(name, ZERO)
            used[name] = before.plus(amount) if sign > 0 else before.minus(amount)


def _listed(amounts: Mapping[str, ExactAmount], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)
