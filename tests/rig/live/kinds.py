"""Kinds: the API paths of kinds."""

from __future__ import annotations

from .client import Tree

# Group and version, plural, whether it is namespaced.
KINDS = {
    "ConfigMap": ("v1", "configmaps", True),
    "Service": ("v1", "services", True),
    "CSINode": ("storage.k8s.io/v1", "csinodes", False),
    "DaemonSet": ("apps/v1", "daemonsets", True),
    "Deployment": ("apps/v1", "deployments", True),
    "DeviceClass": ("resource.k8s.io/v1", "deviceclasses", False),
    "DeviceTaintRule": ("resource.k8s.io/v1beta2", "devicetaintrules", False),
    "Job": ("batch/v1", "jobs", True),
    "Lease": ("coordination.k8s.io/v1", "leases", True),
    "LeaseCandidate": ("coordination.k8s.io/v1beta1", "leasecandidates", True),
    "LimitRange": ("v1", "limitranges", True),
    "Namespace": ("v1", "namespaces", False),
    "Node": ("v1", "nodes", False),
    "PersistentVolume": ("v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims", True),
    "Pod": ("v1", "pods", True),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets", True),
    "PodGroup": ("scheduling.k8s.io/v1alpha2", "podgroups", True),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses", False),
    "ReplicaSet": ("apps/v1", "replicasets", True),
    "ResourceClaim": ("resource.k8s.io/v1", "resourceclaims", True),
    "ResourceClaimTemplate": ("resource.k8s.io/v1", "resourceclaimtemplates", True),
    "ResourceQuota": ("v1", "resourcequotas", True),
    "ResourceSlice": ("resource.k8s.io/v1", "resourceslices", False),
    "StatefulSet": ("apps/v1", "statefulsets", True),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses", False),
    "Workload": ("scheduling.k8s.io/v1alpha2", "workloads", True),
}


def path_of(kind: str, namespace: str = "", name: str = "") -> str:
    """The path of a list, over all namespaces if none is named, or of one object in it."""
    version, plural, is_namespaced = KINDS[kind]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    middle = f"/namespaces/{namespace}" if is_namespaced and namespace else ""
    return f"{root}{middle}/{plural}" + (f"/{name}" if name else "")


def with_head(kind: str, tree: Tree) -> Tree:
    """The object with its apiVersion and kind."""
    return {"apiVersion": KINDS[kind][0], "kind": kind, **tree}
