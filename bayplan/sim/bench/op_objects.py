"""Op objects: build the objects of an op by number.

Completes templates with the fields that the API server, kubelets or volume controllers would set: names, namespaces,
host names, and the two sides of a bound volume.

Mirrors test/integration/scheduler_perf/node_util.go and CreatePodWithPersistentVolume in
test/utils/runners.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...api.wire.kinds import KINDS
from ...cluster.objects.object_index import ClusterObject
from ...errors import InputError
from .cases import TemplateSource, WorkloadStep
from .expressions import Env
from .ops import (
    AllocatableStrategy,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    Op,
    UpdateAny,
)
from .templates import Marked, Template, compile_templates
from .workload import BenchWorkload

HOSTNAME = "kubernetes.io/hostname"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

Tree = dict[str, Any]

# Objects of ops without a template: the amounts are those of scheduler_perf.
NAMESPACE: Tree = {"apiVersion": "v1", "kind": "Namespace"}
NODE: Tree = {
    "apiVersion": "v1",
    "kind": "Node",
    "status": {"capacity": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
}
POD: Tree = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [
            {"name": "pause", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
        ]
    },
}


class Maker:
    """Makes objects from templates in turn; each number may give several, in the order to add them.

    With `rows`, each number has the values of one of them; the first follows the last.
    """

    def __init__(
        self,
        count: int,
        params: dict[str, Any],
        *templates: list[Template],
        rows: Sequence[Env] = (),
    ) -> None:
        self.count = count
        self._env = {**params, "Count": count}
        self._templates = templates
        self._rows = rows

    def make(self, index: int) -> list[ClusterObject]:
        """The objects of one number."""
        return [template.make(env) for template, env in self._turns(index)]

    def texts(self) -> Iterator[bytes]:
        """All objects, as JSON."""
        for index in range(self.count):
            yield from (template.text(env) for template, env in self._turns(index))

    def _turns(self, index: int) -> Iterator[tuple[Template, Env]]:
        """The templates for this number, with their values."""
        row = self._rows[index % len(self._rows)] if self._rows else {}
        env = {**row, **self._env, "Index": index}
        for templates in self._templates:
            yield templates[index % len(templates)], env

    def __iter__(self) -> Iterator[ClusterObject]:
        for index in range(self.count):
            yield from self.make(index)


def make_maker(workload: BenchWorkload, step: WorkloadStep, op: Op, number: int) -> Maker:
    """The maker of the objects of an op; raises InputError for one that has none."""
    match op:
        case CreateNodes():
            templates = node_templates(step, op, number)
        case CreatePods():
            templates = pod_templates(step, op.namespace or f"namespace-{number}", number)
        case CreateNamespaces():
            templates = [namespace_templates(step.templates.get("namespace_template"), op.prefix)]
        case CreateAny() if not isinstance(op, UpdateAny):
            templates = [any_templates(step.templates["template"], op.namespace, f"{number}-")]
        case _:
            raise InputError(f"{step.place}: expected an op that creates objects; got {op.opcode}")
    count = workload.number(op.count, op.count_param, step.place)
    return Maker(count, workload.params, *templates, rows=step.rows)


def any_templates(source: TemplateSource, namespace: str, prefix: str) -> list[Template]:
    """Templates for objects of any kind; those without a namespace get `namespace`."""

    def prepare(tree: Tree) -> None:
        _name(tree, source.marked, prefix)
        _place(tree, namespace)

    return compile_templates(source.trees, source.marked, source.source, prepare)


def node_templates(step: WorkloadStep, op: CreateNodes, number: int) -> list[list[Template]]:
    """Templates for nodes, and for their CSINodes if the op has these."""
    source = step.templates.get("node_template") or _plain(NODE)

    def prepare(tree: Tree) -> None:
        name = _name(tree, source.marked, f"{number}-")
        labels = tree["metadata"].setdefault("labels", {})
        labels.setdefault(HOSTNAME, name)
        if op.label_node_prepare_strategy is not None:
            values = op.label_node_prepare_strategy.label_values
            value = source.marked.mark("label", lambda env: values[env["Index"] % len(values)])
            labels[op.label_node_prepare_strategy.label_key] = value
        if op.unique_node_label_strategy is not None:
            labels[op.unique_node_label_strategy.label_key] = name
        if op.node_allocatable_strategy is not None:
            status = tree.setdefault("status", {})
            amounts = status.get("allocatable", status.get("capacity", {}))
            status["allocatable"] = amounts | op.node_allocatable_strategy.node_allocatable

    nodes = compile_templates(source.trees, source.marked, source.source, prepare)
    if op.node_allocatable_strategy is None:
        return [nodes]
    return [nodes, _csi_nodes(source, op.node_allocatable_strategy, number)]


def pod_templates(step: WorkloadStep, namespace: str, number: int) -> list[list[Template]]:
    """Templates for pods, and for a bound volume of each if the op has volumes."""
    source = step.templates.get("pod_template") or _plain(POD)
    volume = step.templates.get("persistent_volume_template")
    claim = step.templates.get("persistent_volume_claim_template")
    if volume is None or claim is None:
        return [any_templates(source, namespace, f"{number}-")]
    names = f"pv-{number}-", "pvc-"

    def prepare(tree: Tree) -> None:
        _name(tree, source.marked, f"{number}-")
        _place(tree, namespace)
        reference = {"claimName": names[1] + source.marked.mark(".Index", _index)}
        volumes = tree.setdefault("spec", {}).setdefault("volumes", [])
        volumes.append({"name": "vol", "persistentVolumeClaim": reference})

    pods = compile_templates(source.trees, source.marked, source.source, prepare)
    return [_volumes(volume, namespace, *names), _claims(claim, namespace, *names), pods]


def namespace_templates(source: TemplateSource | None, prefix: str) -> list[Template]:
    """Templates for namespaces called `<prefix>-<number>`."""
    source = source or _plain(NAMESPACE)

    def prepare(tree: Tree) -> None:
        tree["metadata"]["name"] = f"{prefix}-{source.marked.mark('.Index', _index)}"

    return compile_templates(source.trees, source.marked, source.source, prepare)


def _csi_nodes(
    source: TemplateSource, strategy: AllocatableStrategy, number: int
) -> list[Template]:
    """A CSINode for each node; it has the node's name."""

    def prepare(tree: Tree) -> None:
        name = _name(tree, source.marked, f"{number}-")
        drivers = [
            {"name": driver, "nodeID": name, "allocatable": {"count": limit.count}}
            for driver, limit in strategy.csi_node_allocatable.items()
        ]
        annotations = {MIGRATED: ",".join(strategy.migrated_plugins)}
        tree.clear()
        tree.update(
            apiVersion="storage.k8s.io/v1",
            kind="CSINode",
            metadata={"name": name, "annotations": annotations},
            spec={"drivers": drivers},
        )

    return compile_templates(source.trees, source.marked, source.source, prepare)


def _volumes(source: TemplateSource, namespace: str, volume: str, claim: str) -> list[Template]:
    """A volume for each pod, bound to the claim of its number."""

    def prepare(tree: Tree) -> None:
        index = source.marked.mark(".Index", _index)
        tree["metadata"]["name"] = f"{volume}{index}"
        spec = tree.setdefault("spec", {})
        spec["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": f"{claim}{index}",
        }
        if "csi" in spec:
            spec["csi"].setdefault("volumeHandle", f"{volume}{index}")
        tree["status"] = {"phase": "Bound"}

    return compile_templates(source.trees, source.marked, source.source, prepare)


def _claims(source: TemplateSource, namespace: str, volume: str, claim: str) -> list[Template]:
    """A claim for each pod, bound to the volume of its number."""

    def prepare(tree: Tree) -> None:
        index = source.marked.mark(".Index", _index)
        tree["metadata"] |= {"name": f"{claim}{index}", "namespace": namespace}
        tree["metadata"].setdefault("annotations", {})[BIND_COMPLETED] = "true"
        tree.setdefault("spec", {})["volumeName"] = f"{volume}{index}"
        tree["status"] = {"phase": "Bound"}

    return compile_templates(source.trees, source.marked, source.source, prepare)


def _name(tree: Tree, marked: Marked, prefix: str) -> str:
    """Name the object if the template does not: a prefix, then the op and the number."""
    metadata = tree["metadata"]
    if not metadata.get("name"):
        begin = metadata.get("generateName") or f"{str(tree.get('kind', 'object')).lower()}-"
        metadata["name"] = f"{begin}{prefix}{marked.mark('.Index', _index)}"
    return str(metadata["name"])


def _place(tree: Tree, namespace: str) -> None:
    """Set `namespace` if the object is namespaced and has none."""
    kind = KINDS.get(str(tree.get("kind")))
    if namespace and (kind is None or kind.is_namespaced):
        tree["metadata"].setdefault("namespace", namespace)


def _plain(tree: Tree) -> TemplateSource:
    return TemplateSource([tree], Marked([]), f"default {tree['kind'].lower()}")


def _index(env: Any) -> Any:
    return env["Index"]
