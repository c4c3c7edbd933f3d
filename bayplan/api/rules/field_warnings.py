"""Field warnings: fields that kube-apiserver accepts and warns of, by resource.

Mirrors WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults
from .address_rules import address_warnings, block_warnings, quoted
from .pod_warnings import (
    OLD_SOURCES,
    SOURCE_NAMES,
    claim_warnings,
    label_warning,
    pod_warnings,
    term_warnings,
)

Tree = Mapping[str, Any]

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_HINTS, _TOPOLOGY_MODE = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_SURPRISE = "which can result in surprising behavior; a DNS label is recommended"
MANY_COMPLETIONS, MUCH_PARALLELISM = 100_000, 10_000


def field_warnings(storage: str, tree: Tree, old: Tree | None = None) -> list[str]:
    """The warnings about an object that a client creates, or changes from `old`."""
    warn = _WARNINGS.get(storage)
    if warn is None or (old is not None and not _is_changed(storage, tree, old)):
        return []
    return list(warn(tree))


def _is_changed(storage: str, tree: Tree, old: Tree) -> bool:
    """Whether a change is warned of; those of pods are not."""
    if storage == "pods":
        return False
    if storage == "serviceaccounts":
        return _MOUNTABLE not in _annotations(old)
    generations = [one["metadata"].get("generation") for one in (tree, old)]
    return storage not in _TEMPLATED or generations[0] != generations[1]


def _annotations(tree: Tree) -> Tree:
    return tree["metadata"].get("annotations") or {}


def _name(tree: Tree, use: str) -> Iterator[str]:
    faults = dns_label_faults(str(tree["metadata"].get("name") or ""))
    if faults:
        yield f"metadata.name: this is used in {use}, {_SURPRISE}: [{' '.join(faults)}]"


def _pod(tree: Tree) -> Iterator[str]:
    yield from _name(tree, "the Pod's hostname")
    yield from pod_warnings(tree)


def _workload(tree: Tree) -> Iterator[str]:
    yield from _name(tree, "Pod names and hostnames")
    yield from _daemon_set(tree)


def _daemon_set(tree: Tree) -> Iterator[str]:
    yield from pod_warnings(tree["spec"].get("template") or {}, "spec.template.")


def _stateful_set(tree: Tree) -> Iterator[str]:
    yield from _daemon_set(tree)
    for i, claim in enumerate(tree["spec"].get("volumeClaimTemplates") or ()):
        yield from claim_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}]")
    if (tree["spec"].get("revisionHistoryLimit") or 0) < 0:
        problem = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {problem}"


def _job(tree: Tree) -> Iterator[str]:
    yield from _name(tree, "Pod names and hostnames")
    yield from _job_spec(tree["spec"], "spec")


def _cron_job(tree: Tree) -> Iterator[str]:
    yield from _name(tree, "Pod names and hostnames")
    yield from _job_spec(tree["spec"]["jobTemplate"].get("spec") or {}, "spec.jobTemplate.spec")


def _job_spec(spec: Tree, path: str) -> Iterator[str]:
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    is_indexed = spec.get("completionMode") == "Indexed"
    if is_indexed and completions > MANY_COMPLETIONS and parallelism > MUCH_PARALLELISM:
        yield (
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than"
            " 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    yield from pod_warnings(spec.get("template") or {}, f"{path}.template.")


def _pod_template(tree: Tree) -> Iterator[str]:
    yield from pod_warnings(tree.get("template") or {}, "template.")


def _service(tree: Tree) -> Iterator[str]:
    spec = tree["spec"]
    if _HINTS in _annotations(tree):
        yield f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead"
    is_headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    is_named, outside = spec.get("type") == "ExternalName", spec.get("externalIPs") or []
    if not is_headless:
        for i, address in enumerate(spec.get("clusterIPs") or ()):
            yield from address_warnings(address, f"spec.clusterIPs[{i}]")
    else:
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": outside,
            "SessionAffinity": spec.get("sessionAffinity") != "None",
        }
        for name, value in ignored.items():
            if value:
                yield f"spec.{name} is ignored for headless services"
    for i, address in enumerate(outside):
        yield from address_warnings(address, f"spec.externalIPs[{i}]")
    if outside and not is_headless and not is_named:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from address_warnings(spec.get("loadBalancerIP"), "spec.loadBalancerIP")
    for i, block in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from block_warnings(block, f"spec.loadBalancerSourceRanges[{i}]")
    if is_named and outside:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if not is_named and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _volume(tree: Tree) -> Iterator[str]:
    spec, annotations = tree["spec"], _annotations(tree)
    for name, since, field in (
        (_OLD_CLASS, "v1.8", "storageClassName"),
        (_OLD_OPTIONS, "v1.31", "mountOptions"),
    ):
        if name in annotations:
            rest = f'deprecated since {since}; use "{field}" attribute instead'
            yield f"metadata.annotations[{name}]: {rest}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        problem = (
            "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use"
        )
        yield f"spec.persistentVolumeReclaimPolicy: {problem} dynamic provisioning."
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for i, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]")
    for source in ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"):
        if spec.get(source) is not None:
            yield f"spec.{SOURCE_NAMES.get(source, source)}: {OLD_SOURCES[source]}"


def _claim(tree: Tree) -> Iterator[str]:
    if _OLD_CLASS in _annotations(tree):
        rest = 'deprecated since v1.8; use "storageClassName" attribute instead'
        yield f"metadata.annotations[{_OLD_CLASS}]: {rest}"
    yield from claim_warnings(tree["spec"], "spec")


def _storage_class(tree: Tree) -> Iterator[str]:
    for i, term in enumerate(tree.get("allowedTopologies") or ()):
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            text = label_warning(str(expression.get("key") or ""))
            if text:
                yield f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {text}"


def _capacity(tree: Tree) -> Iterator[str]:
    selector = tree.get("nodeTopology") or {}
    yield from term_warnings(selector, "nodeTopology")
    for key in selector.get("matchLabels") or ():
        if label_warning(key):
            yield f"nodeTopology.matchLabels.{key}: {label_warning(key)}"


def _runtime_class(tree: Tree) -> Iterator[str]:
    for key in (tree.get("scheduling") or {}).get("nodeSelector") or ():
        if label_warning(key):
            yield f"scheduling.nodeSelector: {label_warning(key)}"


def _node(tree: Tree) -> Iterator[str]:
    spec = tree.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for i, block in enumerate(spec.get("podCIDRs") or ()):
        yield from block_warnings(block, f"spec.podCIDRs[{i}]")


def _service_account(tree: Tree) -> Iterator[str]:
    if _MOUNTABLE in _annotations(tree):
        rest = "prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; {rest}"


def _ingress(tree: Tree) -> Iterator[str]:
    if _INGRESS_CLASS in _annotations(tree):
        name = quoted(_INGRESS_CLASS)
        yield f"annotation {name} is deprecated, please use 'spec.ingressClassName' instead"


def _network_policy(tree: Tree) -> Iterator[str]:
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate(tree["spec"].get(field) or ()):
            for j, peer in enumerate(rule.get(peers) or ()):
                path, block = f"spec.{field}[{i}].{peers}[{j}].ipBlock", peer.get("ipBlock") or {}
                yield from block_warnings(block.get("cidr"), f"{path}.cidr")
                for k, without in enumerate(block.get("except") or ()):
                    yield from block_warnings(without, f"{path}.except[{k}]")


def _endpoints(tree: Tree) -> Iterator[str]:
    yield "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    for i, subset in enumerate(tree.get("subsets") or ()):
        for field in ("addresses", "notReadyAddresses"):
            for j, address in enumerate(subset.get(field) or ()):
                yield from address_warnings(address.get("ip"), f"subsets[{i}].{field}[{j}].ip")


def _endpoint_slice(tree: Tree) -> Iterator[str]:
    if tree.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
        return
    for i, endpoint in enumerate(tree.get("endpoints") or ()):
        for j, address in enumerate(endpoint.get("addresses") or ()):
            yield from address_warnings(address, f"endpoints[{i}].addresses[{j}]")


_WARNINGS: Mapping[str, Callable[[Tree], Iterator[str]]] = {
    "cronjobs.batch": _cron_job,
    "csistoragecapacities.storage.k8s.io": _capacity,
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _workload,
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "ingresses.networking.k8s.io": _ingress,
    "jobs.batch": _job,
    "networkpolicies.networking.k8s.io": _network_policy,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "pods": _pod,
    "podtemplates": _pod_template,
    "replicasets.apps": _workload,
    "replicationcontrollers": _workload,
    "runtimeclasses.node.k8s.io": _runtime_class,
    "serviceaccounts": _service_account,
    "services": _service,
    "statefulsets.apps": _stateful_set,
    "storageclasses.storage.k8s.io": _storage_class,
}
WARNED = frozenset(_WARNINGS)
_TEMPLATED = frozenset(
    {
        *("cronjobs.batch", "daemonsets.apps", "deployments.apps", "jobs.batch"),
        *("podtemplates", "replicasets.apps", "replicationcontrollers", "statefulsets.apps"),
    }
)
"""Resources that are warned of when their spec changes."""
