"""Material: the projects of the questions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bayplan import Cluster, simulate
from bayplan.api.custom_workloads import CustomWorkload
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.pod_spec import PodSpec
from bayplan.api.workloads import pod_template
from bayplan.sim import read_manifests

CORPUS = Path(__file__).resolve().parent / "corpus"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "field"


@dataclass(frozen=True)
class Project:
    """Manifests or a dump, with the files of the cluster that they are for."""

    name: str
    files: tuple[Path, ...]

    @cached_property
    def objects(self) -> list[object]:
        """Everything in the files that Bayplan reads."""
        return list(read_manifests(list(self.files)).objects)

    @cached_property
    def nodes(self) -> list[str]:
        """Names of the nodes: the first that is schedulable comes first."""
        nodes = [each for each in self.objects if isinstance(each, Node)]
        return [node.name for node in sorted(nodes, key=lambda one: bool(one.taints))]

    @cached_property
    def workloads(self) -> list[str]:
        """Names of all workloads and pods, as `explain` takes them."""
        return list(self._specs)

    def container_of(self, workload: str) -> str:
        """Name of the last container of a workload's pods."""
        containers = self._specs[workload].containers or ()
        return containers[-1].name

    def has_pods(self, workload: str) -> bool:
        """Whether a simulation has pods of the workload: some DaemonSets have no node, some Deployments no replicas."""
        kind, namespace, name = workload.split("/")
        start = f"{namespace}/{name}" + ("" if kind == "pod" else "-")
        return any(pod.startswith(start) for pod in self._pods)

    @cached_property
    def has_work(self) -> bool:
        """Whether a simulation has pods beside those of DaemonSets."""
        daemons = [name for name in self.workloads if name.startswith("daemonset/")]
        starts = tuple(f"{name.partition('/')[2]}-" for name in daemons)
        return any(not pod.startswith(starts) for pod in self._pods)

    @cached_property
    def _pods(self) -> list[str]:
        """Names of the pods of a simulation, with those that run already."""
        with warnings.catch_warnings(action="ignore"):
            report = simulate(Cluster.read(*self.files))
        running = [each for each in self.objects if isinstance(each, Pod)]
        return [*(one.pod.key for one in report.pods), *(pod.key for pod in running)]

    @cached_property
    def _specs(self) -> dict[str, PodSpec]:
        specs: dict[str, PodSpec] = {}
        for each in self.objects:
            template = pod_template(each)
            if isinstance(each, Pod):
                specs[f"pod/{each.namespace}/{each.name}"] = each.spec
            elif (
                template is not None
                and isinstance(each, KubeObject)
                and not isinstance(each, CustomWorkload)
            ):
                specs[f"{each.kind.lower()}/{each.namespace}/{each.name}"] = template.spec
        return specs


def own_projects() -> Iterator[Project]:
    """The corpus of this repository: as manifests, and as a control plane answers after they were applied."""
    yield Project(
        "own", tuple(CORPUS / name for name in ("nodes.yaml", "platform.yaml", "shop.yaml"))
    )
    yield Project("own-dump", (CORPUS / "dump.yaml.gz",))


def shared_projects() -> Iterator[Project]:
    """Published manifests and dumps beside the repository; none where they are not there."""
    cluster = SHARED / "cluster.yaml"
    if not cluster.exists():
        return
    manifests = sorted((SHARED / "manifests").glob("*.yaml.gz"))
    for file in manifests:
        yield Project(file.name.removesuffix(".yaml.gz"), (cluster, file))
    yield Project("all", (cluster, *manifests))
    for file in sorted(SHARED.glob("dump-*.yaml.gz")):
        yield Project(file.name.removesuffix(".yaml.gz"), (file,))
