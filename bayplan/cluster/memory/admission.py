"""Admission: the API server's defaults for new pods, namespaces and storage objects.

Mirrors pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go and, of the admission
plugins, priority, defaulttolerationseconds, runtimeclass, limitranger and resourcequota. Pods of a live cluster already
went through this and are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from ...api.affinity import (
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from ...api.containers import Container
from ...api.limits import LimitRange
from ...api.meta import KubeObject
from ...api.node import Node
from ...api.pod import Pod
from ...api.pod_spec import DEFAULT_SCHEDULER_NAME, PodSpec, intern_spec
from ...api.resources import is_hugepages, is_pod_level, pod_amounts
from ...api.rules.field_causes import Cause
from ...api.selectors import LabelSelector, Requirement
from ...api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ...api.taints import NO_EXECUTE, Toleration
from ...api.text.quantity import NANO, NANO_PER_MILLI, Quantity
from ...api.wire.kinds import resource_name
from ...api.workloads import BUILT_IN_CLASSES, Namespace, PriorityClass
from ...errors import InputError
from ...framework.lister import Lister
from ..objects.object_index import ClusterObject, ControllerCluster
from . import limit_ranges, runtime_class_admission
from .default_class import with_default_class
from .quotas import QuotaLedger

AnyObject = TypeVar("AnyObject", bound=Pod | Node | KubeObject)

NAME_LABEL = "kubernetes.io/metadata.name"
PREEMPT = "PreemptLowerPriority"
NODE_PROBLEMS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
NODE_PROBLEM_SECONDS = 300


class AdmissionError(InputError):
    """An object the cluster rejects; `obj` is the object, `path` the field, `problem` the fault."""

    def __init__(self, obj: Pod | Node | KubeObject, path: str, problem: str) -> None:
        super().__init__(f"{obj.kind.lower()} {obj.key}: {path}: {problem}")
        self.obj = obj
        self.path = path
        self.problem = problem


class AdmissionRefusedError(InputError):
    """An object that a LimitRange or a ResourceQuota refuses; the text is kube-apiserver's.

    With a `cause`, the defaults of a LimitRange make it invalid.
    """

    def __init__(self, obj: ClusterObject, problem: str, cause: Cause | None = None) -> None:
        kind = resource_name(obj.api_version, obj.kind)
        text = f'{kind} "{obj.name}" is forbidden: {problem}'
        if cause is not None:
            text = f'{obj.kind} "{obj.name}" is invalid: {cause.field}: {cause.message}'
        super().__init__(text)
        self.obj = obj
        self.problem = problem
        self.cause = cause


class Admission:
    """Sets the defaults of manifests, and refuses objects that limit ranges and quotas do not allow.

    Results are cached per pod spec. With a `ledger`, quotas are applied. Objects from a cluster, and pods that have a
    node, exist already and only get defaults; with `all_new`, as for an API server, every object is new.
    """

    def __init__(
        self, lister: Lister, ledger: QuotaLedger | None = None, all_new: bool = False
    ) -> None:
        self._lister = lister
        self._ledger = ledger
        self._all_new = all_new
        self._ranges: dict[str, list[LimitRange]] = {}
        self._limited: dict[tuple[PodSpec, str], tuple[PodSpec, str]] = {}
        self._classed: dict[PodSpec, PodSpec] = {}
        self._version = -1
        self._defaulted: dict[PodSpec, tuple[PodSpec, bool]] = {}
        """By spec: the one with defaults, and whether its selectors refer to labels of the pod."""
        self._merged: dict[tuple[PodSpec, tuple[str | None, ...]], PodSpec] = {}

    def admit(self, pod: Pod) -> Pod:
        """The pod as the API server would store it; raises AdmissionError if it would reject it."""
        self._refresh()
        known = self._defaulted.get(pod.spec)
        if known is None:
            spec = intern_spec(replace(pod.spec, **self._defaults(pod)))
            known = spec, bool(label_keys(spec))
            if not spec.pin:  # the spec of a daemon is used once
                self._defaulted[pod.spec] = known
        spec, has_label_keys = known
        if self._ranges and pod.namespace in self._ranges and self._is_new(pod):
            spec, note = self._with_limits(spec, pod.namespace)
            if note:
                pod = pod.replace(annotations={**pod.annotations, limit_ranges.ANNOTATION: note})
        if spec.runtime_class_name and self._is_new(pod):
            spec = self._with_runtime_class(spec)
        if has_label_keys:
            spec = self._with_label_keys(spec, pod)
        return pod if spec is pod.spec else pod.replace(spec=spec)

    def admit_all(self, pods: Iterable[Pod]) -> list[Pod]:
        """Admit each of many pods; see `admit`."""
        self._refresh()
        plain: dict[PodSpec, PodSpec] = {}  # where nothing but the spec matters
        admitted: list[Pod] = []
        for pod in pods:
            spec = plain.get(pod.spec)
            if spec is None or pod.namespace in self._ranges:
                made = self.admit(pod)
                known = self._defaulted.get(pod.spec)
                if known is not None and not known[1] and not known[0].runtime_class_name:
                    plain[pod.spec] = known[0]
            else:
                made = pod if spec is pod.spec else pod.with_shared_spec(spec)
            admitted.append(made)
        return admitted

    def check(self, obj: ClusterObject, old: ClusterObject | None = None) -> None:
        """Raise AdmissionRefusedError if a limit range or a quota refuses an object that is not in the cluster yet.

        A pod must have been admitted. With the `old` version of the object, the change is judged.
        """
        if not isinstance(obj, Pod | PersistentVolumeClaim):
            if old is None and not obj.uid and self._ledger is not None:
                violation = self._ledger.object_refusal(obj)
                if violation:
                    raise AdmissionRefusedError(obj, violation)
            return
        self._refresh()
        if old is None and not self._is_new(obj):
            return
        if not isinstance(old, Pod | PersistentVolumeClaim):
            old = None
        elif old.spec == obj.spec:
            return
        ranges = self._ranges.get(obj.namespace, ())
        if isinstance(obj, Pod) and (obj.spec.runtime_class_name or obj.spec.overhead):
            violation = runtime_class_admission.class_refusal(obj.spec, self._lister)
            if violation:
                raise AdmissionRefusedError(obj, violation)
        if ranges and isinstance(obj, Pod):
            cause = next(limit_ranges.excess_requests(obj.spec), None)
            if cause is not None:
                raise AdmissionRefusedError(obj, "", cause)
        violation = limit_ranges.violation_of(obj, ranges)
        if not violation and self._ledger is not None:
            violation = self._ledger.refusal(obj, old)
        if violation:
            raise AdmissionRefusedError(obj, violation)

    def _is_new(self, obj: Pod | PersistentVolumeClaim) -> bool:
        """Whether the object is yet to be created."""
        return self._all_new or not (obj.uid or (isinstance(obj, Pod) and obj.node_name))

    def _refresh(self) -> None:
        """Drop the entries for other versions of priority classes and limit ranges."""
        if self._version != self._lister.version:
            self._version = self._lister.version
            self._defaulted.clear()
            self._limited.clear()
            self._classed.clear()
            self._ranges = {}
            for each in self._lister.list("LimitRange"):
                self._ranges.setdefault(each.namespace, []).append(each)

    def _with_limits(self, spec: PodSpec, namespace: str) -> tuple[PodSpec, str]:
        """The spec with the defaults of the namespace's limit ranges, and the fields that were set."""
        key = spec, namespace
        if key not in self._limited:
            changed, note = limit_ranges.default_resources(spec, self._ranges[namespace])
            self._limited[key] = (intern_spec(changed) if note else spec), note
        return self._limited[key]

    def _with_runtime_class(self, spec: PodSpec) -> PodSpec:
        """The spec with the additions of its class; unchanged if `check` refuses it."""
        found = runtime_class_admission.class_of(spec, self._lister)
        if found is None or runtime_class_admission.class_refusal(spec, self._lister):
            return spec
        if spec not in self._classed:
            self._classed[spec] = intern_spec(runtime_class_admission.with_class(spec, found))
        return self._classed[spec]

    def _defaults(self, pod: Pod) -> dict[str, Any]:
        """The fields of the spec to change."""
        spec = pod.spec
        changes: dict[str, Any] = {
            "scheduler_name": spec.scheduler_name or DEFAULT_SCHEDULER_NAME,
            "containers": default_containers(spec.containers, spec.host_network),
            "init_containers": default_containers(spec.init_containers, spec.host_network),
            "tolerations": default_tolerations(spec.tolerations),
        }
        changes["resources"] = default_pod_resources(replace(spec, **changes))
        return changes | self._priority(pod)

    def _priority(self, pod: Pod) -> dict[str, Any]:
        """Priority and the fields derived from it; a pod with a priority keeps it, unless all pods are new."""
        spec = pod.spec
        if spec.priority is not None and not self._all_new:
            return {"preemption_policy": spec.preemption_policy or PREEMPT}
        name = spec.priority_class_name
        found = (
            self._lister.get("PriorityClass", "", name)
            if name
            else default_priority_class(self._lister)
        )
        if found is not None:
            name, value, policy = found.name, found.value, found.preemption_policy or PREEMPT
        elif name and name not in BUILT_IN_CLASSES:
            fault = f'expected a PriorityClass of the input or a built-in one; got "{name}"'
            raise AdmissionError(pod, "spec.priorityClassName", fault)
        else:
            value, policy = BUILT_IN_CLASSES.get(name, 0), PREEMPT
        if self._all_new:
            _check_given(pod, "integer value of priority", spec.priority, value)
            _check_given(pod, "string value of PreemptionPolicy", spec.preemption_policy, policy)
        elif found is None:
            policy = spec.preemption_policy or PREEMPT
        return {"priority": value, "priority_class_name": name, "preemption_policy": policy}

    def _with_label_keys(self, spec: PodSpec, pod: Pod) -> PodSpec:
        known = (spec, tuple(pod.labels.get(key) for key in label_keys(spec)))
        if known not in self._merged:
            self._merged[known] = intern_spec(merge_label_keys(spec, pod))
        return self._merged[known]


def _check_given(pod: Pod, field: str, given: Any, computed: Any) -> None:
    """Raise AdmissionRefusedError if a new pod has another value than its priority class."""
    if given is not None and given != computed:
        problem = (
            f"the {field} ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {computed} from the given PriorityClass name"
        )
        raise AdmissionRefusedError(pod, problem)


def default_priority_class(lister: Lister | ControllerCluster) -> PriorityClass | None:
    """The default priority class; if there are several, the lowest."""
    classes: Iterable[PriorityClass] = lister.list("PriorityClass")
    return min((c for c in classes if c.global_default), key=lambda c: c.value, default=None)


def admit_namespace(namespace: Namespace) -> Namespace:
    """The namespace with its name as a label, which selectors use."""
    if namespace.labels.get(NAME_LABEL) == namespace.name:
        return namespace
    labels = {**namespace.labels, NAME_LABEL: namespace.name}
    return replace(namespace, metadata=replace(namespace.metadata, labels=labels))


def admit_storage(obj: AnyObject, cluster: Lister | ControllerCluster | None = None) -> AnyObject:
    """A storage class, volume or claim with the API server's defaults; other objects unchanged.

    A new claim gets the default class of the `cluster`.
    """
    changed: Any = obj
    match obj:
        case StorageClass():
            mode, policy = obj.volume_binding_mode, obj.reclaim_policy
            if mode is None or policy is None:
                changed = replace(
                    obj,
                    volume_binding_mode=mode or "Immediate",
                    reclaim_policy=policy or "Delete",
                )
        case PersistentVolume():
            if not obj.spec.persistent_volume_reclaim_policy:
                spec = replace(obj.spec, persistent_volume_reclaim_policy="Retain")
                changed = replace(obj, spec=spec)
            if not obj.status.phase:
                changed = replace(changed, status=replace(obj.status, phase="Pending"))
        case PersistentVolumeClaim() if not obj.status.phase:
            claim = obj if cluster is None else with_default_class(obj, cluster)
            changed = replace(claim, status=replace(claim.status, phase="Pending"))
    return cast(AnyObject, changed)


def default_containers(
    containers: tuple[Container, ...] | None, host_network: bool
) -> tuple[Container, ...] | None:
    """Containers with requests copied from limits, and host ports of the host network."""
    if containers is None:
        return None
    return tuple(_default_container(container, host_network) for container in containers)


def _default_container(container: Container, host_network: bool) -> Container:
    changes: dict[str, Any] = {}
    resources = container.resources
    if resources is not None and resources.limits:
        requests = {**resources.limits, **(resources.requests or {})}
        changes["resources"] = replace(resources, requests=requests)
    if host_network and container.ports:
        changes["ports"] = tuple(
            port if port.host_port else replace(port, host_port=port.container_port)
            for port in container.ports
        )
    return replace(container, **changes) if changes else container


def default_tolerations(given: tuple[Toleration, ...] | None) -> tuple[Toleration, ...]:
    """The tolerations, with the default seconds for nodes that are not ready or unreachable."""
    tolerations = given or ()
    patience = (
        Toleration(
            key=taint,
            operator="Exists",
            effect=NO_EXECUTE,
            toleration_seconds=NODE_PROBLEM_SECONDS,
        )
        for taint in NODE_PROBLEMS
        if not any(t.key in ("", taint) and t.effect in ("", NO_EXECUTE) for t in tolerations)
    )
    return (*tolerations, *patience)


def default_pod_resources(spec: PodSpec) -> Any:
    """The pod-level requests and limits; None if it has none."""
    resources = spec.resources
    if resources is None or not (resources.limits or resources.requests):
        return resources
    requests, limits = dict(resources.requests or {}), dict(resources.limits or {})
    for name, amount in _container_sums(spec, "limits").items():
        if is_hugepages(name) and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        for name, amount in _container_sums(spec, "requests").items():
            if is_pod_level(name) and not is_hugepages(name):
                requests.setdefault(name, amount)
        for name, limit in limits.items():
            if is_pod_level(name):
                requests.setdefault(name, limit)
    return replace(resources, requests=requests or None, limits=limits or None)


def _container_sums(spec: PodSpec, which: str) -> dict[str, Quantity]:
    """The sum of the containers' requests (or limits)."""

    def counted(containers: tuple[Container, ...] | None) -> tuple[Container, ...]:
        return tuple(
            replace(c, resources=replace(c.resources, requests=getattr(c.resources, which)))
            for c in containers or ()
            if c.resources is not None
        )

    bare = PodSpec(
        containers=counted(spec.containers), init_containers=counted(spec.init_containers)
    )
    return {name: _quantity(nano) for name, nano in pod_amounts(bare).items()}


def _quantity(nano: int) -> Quantity:
    """An exact amount in manifest notation."""
    if nano % NANO == 0:
        return nano // NANO
    return f"{nano}n" if nano % NANO_PER_MILLI else f"{nano // NANO_PER_MILLI}m"


def label_keys(spec: PodSpec) -> tuple[str, ...]:
    """The labels of the pod that its selectors refer to."""
    found: list[str] = []
    for spread in spec.topology_spread_constraints or ():
        found += spread.match_label_keys or ()
    for term in spec.pod_terms:
        found += term.match_label_keys or ()
        found += term.mismatch_label_keys or ()
    return tuple(found)


def merge_label_keys(spec: PodSpec, pod: Pod) -> PodSpec:
    """The spec with `matchLabelKeys` and `mismatchLabelKeys` merged into its selectors."""
    spreads: tuple[TopologySpreadConstraint, ...] | None = spec.topology_spread_constraints
    if spreads is not None:
        spreads = tuple(
            replace(s, label_selector=_merge(s.label_selector, s.match_label_keys, "In", pod))
            for s in spreads
        )
    affinity = spec.affinity
    if affinity is not None:
        affinity = replace(
            affinity,
            pod_affinity=_merge_affinity(affinity.pod_affinity, pod),
            pod_anti_affinity=_merge_affinity(affinity.pod_anti_affinity, pod),
        )
    return replace(spec, topology_spread_constraints=spreads, affinity=affinity)


def _merge_affinity(
    wishes: PodAffinity | PodAntiAffinity | None, pod: Pod
) -> PodAffinity | PodAntiAffinity | None:
    if wishes is None:
        return None

    def weighted(wish: WeightedPodAffinityTerm) -> WeightedPodAffinityTerm:
        return replace(wish, pod_affinity_term=_merge_term(wish.pod_affinity_term, pod))

    return replace(
        wishes,
        required_during_scheduling_ignored_during_execution=tuple(
            _merge_term(term, pod) for term in wishes.required
        )
        or None,
        preferred_during_scheduling_ignored_during_execution=tuple(map(weighted, wishes.preferred))
        or None,
    )


def _merge_term(term: PodAffinityTerm, pod: Pod) -> PodAffinityTerm:
    selector = _merge(term.label_selector, term.match_label_keys, "In", pod)
    selector = _merge(selector, term.mismatch_label_keys, "NotIn", pod)
    return replace(term, label_selector=selector)


def _merge(
    selector: LabelSelector | None, keys: tuple[str, ...] | None, operator: str, pod: Pod
) -> LabelSelector | None:
    """The selector with a condition per key that is a label of the pod, unless it has it already.

    A missing selector selects nothing and stays missing.
    """
    if selector is None:
        return None
    for key in keys or ():
        if key not in pod.labels:
            continue
        added = Requirement(key=key, operator=operator, values=(pod.labels[key],))
        if added not in (selector.match_expressions or ()):
            selector = selector.with_requirement(key, operator, (pod.labels[key],))
    return selector
