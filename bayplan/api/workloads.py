"""Workloads: controllers and their autoscalers, services, budgets, priorities, runtime classes and namespaces.

Mirrors k8s.io/api: core/v1, apps/v1, autoscaling/v2, batch/v1, node/v1, policy/v1 and scheduling/v1.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from .meta import EMPTY_META, NO_STRINGS, KubeObject, ObjectMeta, Wire
from .pod import Pod
from .pod_spec import BoundPodSpec, PodSpec, intern_spec
from .selectors import LabelSelector
from .storage import PersistentVolumeClaim
from .taints import Toleration
from .text.quantity import Quantity

APPS_V1 = "apps/v1"
NOTHING = BoundPodSpec()


class PodTemplateSpec(Wire, frozen=True, rename={"full_spec": "spec"}, dict=True, gc=True):
    """The pods a controller makes. `full_spec` is as written, `spec` the shared one."""

    metadata: ObjectMeta = EMPTY_META
    full_spec: BoundPodSpec = NOTHING

    @cached_property
    def spec(self) -> PodSpec:
        """The shared spec of the pods, without names of volumes."""
        return intern_spec(self.full_spec)

    @property
    def node_name(self) -> str:
        """The node of the pods; usually empty."""
        return self.full_spec.node_name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or NO_STRINGS

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or NO_STRINGS


def pod_template(workload: object) -> PodTemplateSpec | None:
    """Template of the pods that `workload` makes; None if its kind has none at `spec.template`.

    The `template` of a pod's own spec is a `PodSpec`, and does not count.
    """
    template = getattr(getattr(workload, "spec", None), "template", None)
    return template if isinstance(template, PodTemplateSpec) else None


class ServiceSpec(Wire, frozen=True):
    """The pods of a service."""

    selector: dict[str, str] | None = None


class Service(KubeObject, frozen=True):
    """A stable name for a set of pods."""

    kind: ClassVar[str] = "Service"

    spec: ServiceSpec = ServiceSpec()

    @property
    def selector(self) -> dict[str, str]:
        """The labels of its pods; empty if it selects none."""
        return self.spec.selector or NO_STRINGS


class ReplicationControllerSpec(Wire, frozen=True):
    """Replicas, selector and template."""

    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None
    min_ready_seconds: int = 0


class ReplicationController(KubeObject, frozen=True):
    """Keeps a number of equal pods running; the predecessor of ReplicaSet."""

    kind: ClassVar[str] = "ReplicationController"

    spec: ReplicationControllerSpec = ReplicationControllerSpec()

    @property
    def replicas(self) -> int:
        return 1 if self.spec.replicas is None else self.spec.replicas


class ReplicasSpec(Wire, frozen=True):
    """Replicas, selector and template."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    min_ready_seconds: int = 0


class Replicated(KubeObject, frozen=True):
    """Base of the workloads of apps/v1 with a number of replicas."""

    api_version: ClassVar[str] = APPS_V1

    spec: ReplicasSpec = ReplicasSpec()

    @property
    def replicas(self) -> int:
        return 1 if self.spec.replicas is None else self.spec.replicas


class ReplicaSet(Replicated, frozen=True):
    """Keeps a number of equal pods running."""

    kind: ClassVar[str] = "ReplicaSet"


class RollingUpdate(Wire, frozen=True):
    """Limits of a rolling update."""

    partition: int | None = None
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class UpdateStrategy(Wire, frozen=True):
    """Strategy for replacing pods when the template changes."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class StatefulSetOrdinals(Wire, frozen=True):
    """First ordinal of the pods."""

    start: int = 0


class ClaimRetention(Wire, frozen=True):
    """Policies for the claims of a StatefulSet: Retain or Delete."""

    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetSpec(ReplicasSpec, frozen=True):
    """Replicas, selector, template and volume claim templates."""

    volume_claim_templates: tuple[PersistentVolumeClaim, ...] | None = None
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: UpdateStrategy | None = None
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: ClaimRetention | None = None


class StatefulSet(Replicated, frozen=True):
    """Keeps numbered pods running, each with its own storage."""

    kind: ClassVar[str] = "StatefulSet"

    spec: StatefulSetSpec = StatefulSetSpec()

    @property
    def first_ordinal(self) -> int:
        return self.spec.ordinals.start if self.spec.ordinals else 0

    @property
    def partition(self) -> int:
        """The number of pods that keep the former template."""
        strategy = self.spec.update_strategy
        limits = strategy.rolling_update if strategy is not None else None
        return (limits.partition or 0) if limits is not None else 0


class DeploymentSpec(ReplicasSpec, frozen=True):
    """Replicas, selector, template and update strategy."""

    strategy: UpdateStrategy | None = None
    paused: bool = False


class Deployment(Replicated, frozen=True):
    """Rolls out replica sets."""

    kind: ClassVar[str] = "Deployment"

    spec: DeploymentSpec = DeploymentSpec()


class DaemonSetSpec(Wire, frozen=True):
    """Selector, template and update strategy."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: UpdateStrategy | None = None
    min_ready_seconds: int = 0


class DaemonSet(KubeObject, frozen=True):
    """Runs one pod on every eligible node."""

    kind: ClassVar[str] = "DaemonSet"
    api_version: ClassVar[str] = APPS_V1

    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(Wire, frozen=True):
    """Parallelism, completions and template."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    backoff_limit: int | None = None
    suspend: bool | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class JobCondition(Wire, frozen=True):
    """One aspect of a job's state."""

    type: str = ""
    status: str = ""


MAX_INDEX = 100_000
"""The largest index that is read from a status, so that a range in a file cannot use up the memory."""


class JobStatus(Wire, frozen=True):
    """Observed state of a job."""

    start_time: str | None = None
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    """The indexes that succeeded, as numbers and ranges: `0,2-4`."""
    conditions: tuple[JobCondition, ...] | None = None

    @property
    def done_indexes(self) -> set[int]:
        """`completed_indexes` as a set, up to MAX_INDEX; parts that are no number are left out."""
        found: set[int] = set()
        for part in self.completed_indexes.split(","):
            first, _, last = part.partition("-")
            if first.isdecimal() and (last or first).isdecimal():
                found.update(range(int(first), min(int(last or first), MAX_INDEX) + 1))
        return found


class Job(KubeObject, frozen=True):
    """Runs pods to completion."""

    kind: ClassVar[str] = "Job"
    api_version: ClassVar[str] = "batch/v1"

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def has_started(self) -> bool:
        """Whether its controller has handled it before: it has a start time, ended pods, or was suspended."""
        status = self.status
        was_suspended = any(c.type == "Suspended" for c in status.conditions or ())
        return bool(status.start_time or status.succeeded or status.failed or was_suspended)

    @property
    def parallelism(self) -> int:
        return 1 if self.spec.parallelism is None else self.spec.parallelism

    @property
    def is_indexed(self) -> bool:
        """Whether each pod has a completion index."""
        return self.spec.completion_mode == "Indexed"


JOB_PREFIX = "batch.kubernetes.io/"


def job_pod_labels(uid: str, name: str) -> dict[str, str]:
    """The labels that identify the pods of one job, under their new and old names."""
    return {
        f"{JOB_PREFIX}controller-uid": uid,
        f"{JOB_PREFIX}job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


class PodDisruptionBudgetSpec(Wire, frozen=True):
    """The pods of a budget, and how many may be unavailable."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    """The allowed disruptions, and the pods being disrupted."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, str | None] | None = None


class PodDisruptionBudget(KubeObject, frozen=True):
    """Limits the number of pods disrupted at once."""

    kind: ClassVar[str] = "PodDisruptionBudget"
    api_version: ClassVar[str] = "policy/v1"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

    @property
    def disrupted_pods(self) -> dict[str, str | None]:
        """The pods being evicted, with the time of approval."""
        return self.status.disrupted_pods or {}

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether evictions of pods with these labels count against the budget; an empty selector selects all."""
        selector = self.spec.selector
        return self.namespace == namespace and selector is not None and selector.matches(labels)


MAX_PRIORITY = 1_000_000_000
"""The highest priority that a user may give."""
BUILT_IN_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class PriorityClass(KubeObject, frozen=True):
    """A named priority."""

    kind: ClassVar[str] = "PriorityClass"
    api_version: ClassVar[str] = "scheduling.k8s.io/v1"
    is_namespaced: ClassVar[bool] = False

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class Namespace(KubeObject, frozen=True):
    """A namespace with its labels."""

    kind: ClassVar[str] = "Namespace"
    is_namespaced: ClassVar[bool] = False


class AutoscalerSpec(Wire, frozen=True):
    """The workload of an autoscaler, and the limits of its replicas; checked where they are used."""

    scale_target_ref: Any = None
    min_replicas: Any = None
    max_replicas: Any = None


class HorizontalPodAutoscaler(KubeObject, frozen=True):
    """Sets the number of a workload's pods.

    Metrics are left out: nothing here scales by them. A series in a Timeline may name an autoscaler, and
    questions name the one that sets the number of pods.
    """

    kind: ClassVar[str] = "HorizontalPodAutoscaler"
    api_version: ClassVar[str] = "autoscaling/v2"

    spec: AutoscalerSpec = AutoscalerSpec()


class RuntimeClassOverhead(Wire, frozen=True):
    """Resources that a pod of the class takes besides those of its containers."""

    pod_fixed: dict[str, Quantity] | None = None


class RuntimeClassScheduling(Wire, frozen=True):
    """Constraints that are merged into the pods of the class."""

    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClass(KubeObject, frozen=True):
    """A named configuration of the container runtime."""

    kind: ClassVar[str] = "RuntimeClass"
    api_version: ClassVar[str] = "node.k8s.io/v1"
    is_namespaced: ClassVar[bool] = False

    handler: str = ""
    overhead: RuntimeClassOverhead | None = None
    scheduling: RuntimeClassScheduling | None = None


TEMPLATE_HASH = "pod-template-hash"
BARE = "Pod"

WorkloadKey: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name."""


def workload_of(pod: Pod) -> tuple[str, str]:
    """Kind and name of the pod's owner: the Deployment of its ReplicaSet, another owner, or the pod itself."""
    owner = pod.controller
    if owner is None:
        return BARE, pod.name
    suffix = f"-{pod.labels.get(TEMPLATE_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return "Deployment", owner.name.removesuffix(suffix)
    return owner.kind, owner.name


def workload_key(pod: Pod) -> WorkloadKey:
    """Key that the pods of a workload share; pods of a namespace without an owner share one with an empty name."""
    kind, name = workload_of(pod)
    return pod.namespace, kind, "" if kind == BARE else name
