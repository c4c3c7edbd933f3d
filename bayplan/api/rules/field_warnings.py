"""Field warnings: fields that kube-apiserver accepts and warns of, by resource.

Mirrors WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..text.name_faults import dns_label_faults
from .address_rules import quoted, warn_of_address, warn_of_block
from .field_causes import Part, Tree
from .pod_warnings import (
    OLD_SOURCES,
    SOURCE_NAMES,
    warn_of_claim,
    warn_of_key,
    warn_of_pod,
    warn_of_term,
)

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS_RULE = 'deprecated since v1.8; use "storageClassName" attribute instead'
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
    warned = Part(tree)
    warn(warned)
    return [f"{one.field}: {one.message}" if one.field else one.message for one in warned.causes]


def _is_changed(storage: str, tree: Tree, old: Tree) -> bool:
    """Whether a change gives a warning; changes of pods do not."""
    if storage == "pods":
        return False
    if storage == "serviceaccounts":
        return _MOUNTABLE not in _annotations(old)
    generations = [one["metadata"].get("generation") for one in (tree, old)]
    return storage not in _TEMPLATED or generations[0] != generations[1]


def _annotations(tree: Tree) -> Tree:
    return tree["metadata"].get("annotations") or {}


def _name(part: Part, use: str) -> None:
    faults = dns_label_faults(str(part.tree["metadata"].get("name") or ""))
    if faults:
        part.warn("metadata.name", f"this is used in {use}, {_SURPRISE}: [{' '.join(faults)}]")


def _old_annotation(part: Part, name: str, text: str) -> None:
    if name in _annotations(part.tree):
        part.warn(f"metadata.annotations[{name}]", text)


def _pod(pod: Part) -> None:
    _name(pod, "the Pod's hostname")
    warn_of_pod(pod)


def _workload(workload: Part) -> None:
    _name(workload, "Pod names and hostnames")
    _daemon_set(workload)


def _daemon_set(daemon_set: Part) -> None:
    warn_of_pod(daemon_set.below("spec").below("template"))


def _stateful_set(stateful_set: Part) -> None:
    _daemon_set(stateful_set)
    spec = stateful_set.below("spec")
    for claim in spec.each("volumeClaimTemplates"):
        # kube-apiserver leaves `spec` out of these paths.
        warn_of_claim(Part(claim.get("spec"), claim.path, claim.causes))
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        problem = "a negative value retains all historical revisions; a value >= 0 is recommended"
        spec.warn("revisionHistoryLimit", problem)


def _job(job: Part) -> None:
    _name(job, "Pod names and hostnames")
    _job_spec(job.below("spec"))


def _cron_job(cron_job: Part) -> None:
    _name(cron_job, "Pod names and hostnames")
    _job_spec(cron_job.below("spec").below("jobTemplate").below("spec"))


def _job_spec(spec: Part) -> None:
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    is_indexed = spec.get("completionMode") == "Indexed"
    if is_indexed and completions > MANY_COMPLETIONS and parallelism > MUCH_PARALLELISM:
        text = (
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than"
            " 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
        spec.warn("", text)
    warn_of_pod(spec.below("template"))


def _service(service: Part) -> None:
    spec = service.below("spec")
    if _HINTS in _annotations(service.tree):
        text = f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead"
        service.warn(None, text)
    is_headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    is_named, outside = spec.get("type") == "ExternalName", spec.get("externalIPs") or []
    if not is_headless:
        for name, address in spec.items("clusterIPs"):
            warn_of_address(spec, name, address)
    else:
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": outside,
            "SessionAffinity": spec.get("sessionAffinity") != "None",
        }
        for name, value in ignored.items():
            if value:
                spec.warn(None, f"spec.{name} is ignored for headless services")
    for name, address in spec.items("externalIPs"):
        warn_of_address(spec, name, address)
    if outside and not is_headless and not is_named:
        text = "is deprecated and may no longer be implemented in some clusters"
        spec.warn(None, f"spec.externalIPs {text}")
    warn_of_address(spec, "loadBalancerIP", spec.get("loadBalancerIP"))
    for name, block in spec.items("loadBalancerSourceRanges"):
        warn_of_block(spec, name, block)
    if is_named and outside:
        spec.warn(None, 'spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not is_named and spec.get("externalName"):
        spec.warn(None, 'spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        spec.warn("trafficDistribution", '"PreferClose" is deprecated; use "PreferSameZone"')


def _volume(volume: Part) -> None:
    spec = volume.below("spec")
    _old_annotation(volume, _OLD_CLASS, _OLD_CLASS_RULE)
    text = 'deprecated since v1.31; use "mountOptions" attribute instead'
    _old_annotation(volume, _OLD_OPTIONS, text)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        problem = (
            "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use"
        )
        spec.warn("persistentVolumeReclaimPolicy", f"{problem} dynamic provisioning.")
    for term in spec.below("nodeAffinity").below("required").each("nodeSelectorTerms"):
        warn_of_term(term)
    sources = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
    for source in spec.set_of(sources):
        spec.warn(SOURCE_NAMES.get(source, source), OLD_SOURCES[source])


def _claim(claim: Part) -> None:
    _old_annotation(claim, _OLD_CLASS, _OLD_CLASS_RULE)
    warn_of_claim(claim.below("spec"))


def _storage_class(class_: Part) -> None:
    for term in class_.each("allowedTopologies"):
        for expression in term.each("matchLabelExpressions"):
            warn_of_key(expression, "key", str(expression.get("key") or ""))


def _capacity(capacity: Part) -> None:
    selector = capacity.below("nodeTopology")
    warn_of_term(selector)
    for key in selector.get("matchLabels") or ():
        warn_of_key(selector, f"matchLabels.{key}", key)


def _runtime_class(class_: Part) -> None:
    scheduling = class_.below("scheduling")
    for key in scheduling.get("nodeSelector") or ():
        warn_of_key(scheduling, "nodeSelector", key)


def _node(node: Part) -> None:
    spec = node.below("spec")
    if spec.has("configSource"):
        spec.warn("configSource", "the feature is removed")
    if spec.get("externalID"):
        spec.warn("externalID", "this field is deprecated, and is unused by Kubernetes")
    for name, block in spec.items("podCIDRs"):
        warn_of_block(spec, name, block)


def _service_account(account: Part) -> None:
    rest = "prefer separate namespaces to isolate access to mounted secrets"
    _old_annotation(account, _MOUNTABLE, f"deprecated in v1.32+; {rest}")


def _ingress(ingress: Part) -> None:
    if _INGRESS_CLASS in _annotations(ingress.tree):
        rest = "is deprecated, please use 'spec.ingressClassName' instead"
        ingress.warn(None, f"annotation {quoted(_INGRESS_CLASS)} {rest}")


def _network_policy(policy: Part) -> None:
    spec = policy.below("spec")
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.each(field):
            for peer in rule.each(peers):
                block = peer.below("ipBlock")
                warn_of_block(block, "cidr", block.get("cidr"))
                for name, without in block.items("except"):
                    warn_of_block(block, name, without)


def _endpoints(endpoints: Part) -> None:
    text = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    endpoints.warn(None, text)
    for subset in endpoints.each("subsets"):
        for address in subset.each("addresses", "notReadyAddresses"):
            warn_of_address(address, "ip", address.get("ip"))


def _endpoint_slice(endpoint_slice: Part) -> None:
    if endpoint_slice.get("addressType") == "FQDN":
        endpoint_slice.warn("spec.addressType", "FQDN endpoints are deprecated")
        return
    for endpoint in endpoint_slice.each("endpoints"):
        for name, address in endpoint.items("addresses"):
            warn_of_address(endpoint, name, address)


_WARNINGS: Mapping[str, Callable[[Part], None]] = {
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
    "podtemplates": lambda template: warn_of_pod(template.below("template")),
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
