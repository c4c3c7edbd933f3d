"""Ops: the types of a workload file.

A file is a list of test cases. A case is a list of ops, run in order, and sizes to run them at.
Names and meaning are those of Kubernetes' scheduler_perf; our additions are marked.

Mirrors test/integration/scheduler_perf/{operations,scheduler_perf}.go.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from ...config.decode import Duration, Int32


class _File(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the file."""


class Op(_File, frozen=True):
    """One step of a workload."""

    opcode: ClassVar[str]
    template_fields: ClassVar[tuple[str, ...]] = ()
    """The template fields; each has a counterpart with `_path` for a template in a separate file."""


class CountedOp(Op, frozen=True):
    """A step that makes a number of objects, or one for a parameter of the size."""

    count: Int32 = 0
    count_param: str = ""


class LabelStrategy(_File, frozen=True):
    """A label for every node, with values in turn."""

    label_key: str = ""
    label_values: tuple[str, ...] = ()


class UniqueLabelStrategy(_File, frozen=True):
    """A label for every node, with a unique value."""

    label_key: str = ""


class VolumeLimit(_File, frozen=True):
    """The volume limit of a driver on a node."""

    count: Int32 | None = None


class AllocatableStrategy(_File, frozen=True):
    """Additions to each node's allocatable, and a CSINode for it."""

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, VolumeLimit] = {}
    migrated_plugins: tuple[str, ...] = ()


class CreateNodes(CountedOp, frozen=True):
    """Add nodes. With `collect_metrics` (ours) the cost of each event is measured.

    The columns of a table (`table_path`, ours) are values in the template, a row for each object.
    """

    opcode = "createNodes"
    template_fields = ("node_template",)

    node_template: Any = None
    node_template_path: str = ""
    table_path: str = ""
    label_node_prepare_strategy: LabelStrategy | None = None
    unique_node_label_strategy: UniqueLabelStrategy | None = None
    node_allocatable_strategy: AllocatableStrategy | None = None
    collect_metrics: bool = False
    name: str = ""


class CreateNamespaces(CountedOp, frozen=True):
    """Add namespaces named `<prefix>-<number>`."""

    opcode = "createNamespaces"
    template_fields = ("namespace_template",)

    prefix: str = ""
    namespace_template: Any = None
    namespace_template_path: str = ""


class CreatePods(CountedOp, frozen=True):
    """Add pods, and schedule until all are placed or nothing changes.

    `collect_metrics` measures the scheduling; with `time_creation` (ours) the adding, too.
    `table_path` (ours) is that of CreateNodes.
    """

    opcode = "createPods"
    template_fields = (
        "pod_template",
        "persistent_volume_template",
        "persistent_volume_claim_template",
    )

    namespace: str = ""
    pod_template: Any = None
    pod_template_path: str = ""
    table_path: str = ""
    persistent_volume_template: Any = None
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template: Any = None
    persistent_volume_claim_template_path: str = ""
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    time_creation: bool = False


class CreatePodSets(CountedOp, frozen=True):
    """Run one createPods in each of several namespaces named `<prefix>-<number>`."""

    opcode = "createPodSets"

    namespace_prefix: str = ""
    create_pods_op: Any = None


class DeletePods(Op, frozen=True):
    """Delete pods. With `collect_metrics` (ours) the cost of each event is measured."""

    opcode = "deletePods"

    namespace: str = ""
    label_selector: dict[str, str] = {}
    delete_pods_per_second: Int32 = 0
    skip_wait_to_completion: bool = False
    collect_metrics: bool = False
    name: str = ""


class Churn(Op, frozen=True):
    """Start adding, and with `recreate` deleting, objects while pods are scheduled.

    An object is added or deleted after every `interval_pods` attempts (ours), or after one attempt per millisecond of
    the interval.
    """

    opcode = "churn"

    mode: Literal["create", "recreate"] = "create"
    number: Int32 = 0
    interval_milliseconds: Int32 = 500
    interval_pods: Int32 = 0
    namespace: str = ""
    templates: Any = None
    template_paths: tuple[str, ...] = ()


class Barrier(Op, frozen=True):
    """Schedule until pods are placed, or have been tried; or until nothing changes."""

    opcode = "barrier"

    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = {}
    stage_requirement: Literal["Scheduled", "Attempted"] = "Scheduled"


class Sleep(Op, frozen=True):
    """Advance the virtual clock."""

    opcode = "sleep"

    duration: Duration = 0.0
    duration_param: str = ""


class CreateAny(CountedOp, frozen=True):
    """Add objects of any kind."""

    opcode = "createAny"
    template_fields = ("template",)

    namespace: str = ""
    template: Any = None
    template_path: str = ""
    count: Int32 = 1


class UpdateAny(CreateAny, frozen=True):
    """Replace objects of the same names. With `collect_metrics` (ours) the cost of each is measured."""

    opcode = "updateAny"

    update_per_second: Int32 = 0
    subresources: tuple[str, ...] = ()
    collect_metrics: bool = False
    name: str = ""


class StartCollectingMetrics(Op, frozen=True):
    """Start measuring; the pods of `namespaces` count."""

    opcode = "startCollectingMetrics"

    name: str = ""
    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = {}


class StopCollectingMetrics(Op, frozen=True):
    """Stop measuring."""

    opcode = "stopCollectingMetrics"


class Simulate(Op, frozen=True):
    """Run `bayplan simulate` on the objects of the ops before it, and measure the whole process (ours)."""

    opcode = "simulate"


class AskQuestion(Op, frozen=True):
    """Run a question, such as `bayplan explain`, on the objects of the ops before it, and measure its process
    (ours).
    """

    opcode = "ask"
    question: tuple[str, ...] = ()
    """The command and its arguments, without the files of the cluster; other files are relative to the workload's."""


PLAN_WORKLOADS = ("web", "openb")


class PlanNodes(Op, frozen=True):
    """Run `bayplan plan` on a seeded workload with about `count` pods, and measure price and bound (ours)."""

    opcode = "plan"
    workload: Literal["web", "openb"] = "web"
    seed: int = 0
    deployments: int = 200
    """Number of deployments of the web workload."""
    is_aligned: bool = True
    """Whether the scheduler scores by NodeResourcesAlignment, or by kube-scheduler's own plugins only."""
    count: int = 2000
    count_param: str = ""
    time_limit: str = "60s"


OPS: dict[str, type[Op]] = {
    op.opcode: op
    for op in (
        CreateNodes,
        CreateNamespaces,
        CreatePods,
        CreatePodSets,
        DeletePods,
        Churn,
        Barrier,
        Sleep,
        CreateAny,
        UpdateAny,
        StartCollectingMetrics,
        StopCollectingMetrics,
        Simulate,
        AskQuestion,
        PlanNodes,
    )
}


class SizeFile(_File, frozen=True):
    """A size at which to run a case: values for its parameters."""

    name: str = ""
    params: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    feature_gates: dict[str, bool] = {}
    threshold: Any = None
    threshold_metric_selector: Any = None


class CaseFile(_File, frozen=True):
    """A test case."""

    name: str = ""
    summary: str = ""
    workload_template: tuple[Any, ...] = ()
    workloads: tuple[SizeFile, ...] = ()
    labels: tuple[str, ...] = ()
    feature_gates: dict[str, bool] = {}
    default_pod_template: Any = None
    default_pod_template_path: str = ""
    scheduler_config: Any = None
    scheduler_config_path: str = ""
    metrics_collector_config: Any = None
    default_threshold_metric_selector: Any = None
