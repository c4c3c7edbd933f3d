"""Manifests of a small cluster, a view of it, and a check of the changes reported for it."""

from typing import Any

from bayplan.answers.account import Counterfactual
from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.sim.settings import Settings
from bayplan.trials import TrialCluster
from tests.rig.conformance.counterfactuals import fits
from tests.rig.objects import decoded, stored
from tests.rig.trees import node_tree, pod_tree

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": name, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def zone_node(name: str = "n", zone: str = "a", cpu: str = "4", **more: Any) -> dict[str, Any]:
    """A node in a zone, with its name as uid."""
    tree = node_tree(name, cpu, zone=zone, **more)
    return {**tree, "metadata": {**tree["metadata"], "uid": name}}


def web_pod(name: str = "p", cpu: str = "1", node: str = "", **spec: Any) -> dict[str, Any]:
    """A pod of the application web, with its name as uid."""
    metadata = {"uid": name, "namespace": "default", "labels": spec.pop("labels", {"app": "web"})}
    status = spec.pop("status", {})
    ports = [{"hostPort": port, "protocol": "TCP"} for port in (spec.pop("port", None),) if port]
    tree = pod_tree(name, cpu, node=node, metadata=metadata, **spec)
    if ports:
        tree["spec"]["containers"][0]["ports"] = ports
    return {**tree, "status": status}


def make_view(*manifests: dict[str, Any], **more: Any) -> tuple[TrialCluster, Pod]:
    objects = [decoded(manifest) for manifest in manifests]
    transport = {name: more.pop(name) for name in ("extender_transport",) if name in more}
    view = TrialCluster(objects, Settings(**more), **transport)
    return view, stored(view.cluster, Pod, "p")


def check(found: Counterfactual, manifests: list[dict[str, Any]], pod: Pod) -> None:
    """Check that the changes help and none is superfluous, with a scheduler built from the changed manifests."""
    assert found.fits, found.unknown
    config, changes = default_config(), found.changes
    assert fits(config, manifests, pod, found.node, changes), [c.text for c in changes]
    for change in changes:
        rest = [other for other in changes if other is not change]
        assert not fits(config, manifests, pod, found.node, rest), change.text


def spread(**fields: Any) -> list[dict[str, Any]]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WEB,
    }
    return [constraint | fields]


TAINTS = [
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "old", "effect": "NoExecute"},
]
