"""Pod warnings: parts of a pod or a template that kube-apiserver accepts and warns of.

Mirrors pkg/api/pod/warnings.go and pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..text.name_faults import value_faults
from ..text.quantity import NANO, NANO_PER_MILLI, parse_quantity
from .address_rules import quoted, warn_of_address
from .affinity_rules import PREFERRED, REQUIRED
from .field_causes import Part, Tree
from .security_rules import CONTAINERS

_BYTES = ("memory", "ephemeral-storage")
_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
OLD_SOURCES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""Sources of volumes that no longer work."""
SOURCE_NAMES = {"storageos": "storageOS"}
"""Sources whose name in warnings differs from that of the field."""
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_CONTAINER_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_RULE = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APPARMOR_RULE = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def warn_of_pod(pod: Part) -> None:
    """Warn of parts of a pod, or of a template, which has a path."""
    spec, metadata = pod.below("spec"), pod.below("metadata")
    annotations = metadata.get("annotations") or {}
    _warn_of_placement(spec)
    for name, text in _ANNOTATIONS.items():
        if name in annotations:
            metadata.warn(f"annotations[{name}]", text)
    _warn_of_volumes(spec)
    _warn_of_doubles(spec)
    warn_of_bytes(spec, "overhead", *_BYTES)
    if _SECCOMP in annotations and not _profile(spec, "seccompProfile"):
        metadata.warn(f"annotations[{_SECCOMP}]", _SECCOMP_RULE)
    for container in spec.each(*CONTAINERS):
        _warn_of_profiles(pod, container, annotations)
        _warn_of_container(container)
    _warn_of_ports(spec)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        spec.warn("terminationGracePeriodSeconds", text)
    _warn_of_affinity(spec.below("affinity"))
    config = spec.below("dnsConfig")
    for name, address in config.items("nameservers"):
        warn_of_address(config, name, address)
    for alias in spec.each("hostAliases"):
        warn_of_address(alias, "ip", alias.get("ip"))


def warn_of_key(part: Part, name: str, key: str, start: str = "") -> None:
    """Warn of a label of nodes that is no longer used."""
    if key in _NODE_LABELS:
        part.warn(name, start + _NODE_LABELS[key])


def warn_of_label(part: Part, name: str) -> None:
    """Warn of a field with a label of nodes that is no longer used."""
    key = str(part.get(name) or "")
    warn_of_key(part, name, key, f"{key} is ")


def warn_of_term(term: Part, checks_values: bool = False) -> None:
    """Warn of parts of a term that selects nodes."""
    for expression in term.each("matchExpressions"):
        warn_of_label(expression, "key")
        for name, value in expression.items("values") if checks_values else ():
            for fault in value_faults(str(value)):
                expression.warn(name, f"{value} is invalid, {fault}")


def warn_of_bytes(part: Part, field: str, *names: str) -> None:
    """Warn of parts of a byte in amounts."""
    for name in names:
        value = (part.get(field) or {}).get(name)
        if value is not None and -(-parse_quantity(value) // NANO_PER_MILLI) % (
            NANO // NANO_PER_MILLI
        ):
            problem = "is invalid, must be an integer"
            part.warn(f"{field}[{name}]", f"fractional byte value {quoted(str(value))} {problem}")


def warn_of_claim(spec: Part) -> None:
    """Warn of parts of the spec of a claim."""
    for field in ("requests", "limits"):
        warn_of_bytes(spec.below("resources"), field, "storage")


def _warn_of_placement(spec: Part) -> None:
    for key in spec.get("nodeSelector") or ():
        warn_of_key(spec, f"nodeSelector[{key}]", key)
    affinity = spec.below("affinity").below("nodeAffinity")
    for term in affinity.below(REQUIRED).each("nodeSelectorTerms"):
        warn_of_term(term)
    for wish in affinity.each(PREFERRED):
        warn_of_term(wish.below("preference"), checks_values=True)
    for spread in spec.each("topologySpreadConstraints"):
        warn_of_label(spread, "topologyKey")
        _warn_of_no_selector(spread)


def _warn_of_no_selector(part: Part) -> None:
    if not part.has("labelSelector"):
        part.warn("labelSelector", "a null labelSelector results in matching no pod")


def _warn_of_volumes(spec: Part) -> None:
    for volume in spec.each("volumes"):
        for source in volume.set_of(tuple(OLD_SOURCES)):
            volume.warn(SOURCE_NAMES.get(source, source), OLD_SOURCES[source])
        warn_of_claim(volume.below("ephemeral").below("volumeClaimTemplate").below("spec"))
    for volume in spec.each("volumes"):
        _warn_of_overlaps(volume)


def _warn_of_overlaps(volume: Part) -> None:
    """Warn of files of a volume with the same path."""
    name = quoted(str(volume.get("name") or ""))
    for source, kind, key in (
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "secretName"),
        ("downwardAPI", "DownwardAPI", ""),
    ):
        held = volume.below(source)
        shown = f"{kind} {quoted(str(held.get(key) or ''))}" if key else kind
        paths = [(str(item.get("path") or ""), "") for item in held.get("items") or ()]
        for overlap in _overlaps(paths):
            volume.warn(None, f"volume {name} ({shown}): overlapping paths: {overlap}")
    paths = []
    for source in volume.below("projected").get("sources") or ():
        if not source:
            volume.warn(None, f"volume {name} (Projected) has no sources provided")
        paths += _projected_paths(source)
    for overlap in _overlaps(paths):
        volume.warn(None, f"volume {name} (Projected): overlapping paths: {overlap}")


def _projected_paths(source: Tree) -> list[tuple[str, str]]:
    """The paths of a source of a projected volume, and a name for it."""
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        held = source.get(field) or {}
        if held.get("items"):
            shown = f"{kind} {quoted(str(held.get('name') or ''))}"
            return [(str(item.get("path") or ""), shown) for item in held["items"]]
    held = source.get("downwardAPI") or {}
    if held.get("items"):
        return [(str(item.get("path") or ""), "DownwardAPI") for item in held["items"]]
    if source.get("serviceAccountToken"):
        path = str(source["serviceAccountToken"].get("path") or "")
        return [(path, "ServiceAccountToken")]
    bundle = source.get("clusterTrustBundle")
    if bundle:
        shown = quoted(str(bundle.get("name") or bundle.get("signerName") or ""))
        return [(str(bundle.get("path") or ""), f"ClusterTrustBundle {shown}")]
    certificate = source.get("podCertificate") or {}
    parts = (
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    )
    return [(str(certificate[field]), shown) for field, shown in parts if certificate.get(field)]


def _overlaps(paths: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the pairs of paths where one contains the other."""
    before: list[tuple[str, str]] = []
    for given, source in paths:
        path = given.rstrip("/")
        for other, other_source in before if path else ():
            if other and (f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")):
                yield f"{_sourced(path, source)} with {_sourced(other, other_source)}"
        before.append((path, source))


def _sourced(path: str, source: str) -> str:
    return f"{quoted(path)} ({source})" if source else quoted(path)


def _warn_of_doubles(spec: Part) -> None:
    """Warn of addresses and names that occur twice, or are empty."""
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        found: set[str] = set()
        for item in spec.each(field):
            value = str(item.get(key) or "")
            if value in found:
                item.warn(key, f"duplicate {key} {quoted(value)}")
            found.add(value)
    for secret in spec.each("imagePullSecrets"):
        if not secret.get("name"):
            secret.warn("name", 'invalid empty name ""')


def _profile(holder: Part, name: str) -> Any:
    return holder.below("securityContext").get(name)


def _warn_of_profiles(pod: Part, container: Part, annotations: Tree) -> None:
    key = _CONTAINER_SECCOMP + str(container.get("name"))
    if key in annotations and not _profile(container, "seccompProfile"):
        pod.warn(f"metadata.annotations[{key}]", _SECCOMP_RULE)
    key = _CONTAINER_APPARMOR + str(container.get("name"))
    if not pod.path or key not in annotations or _profile(container, "appArmorProfile"):
        return
    if _profile(pod.below("spec"), "appArmorProfile") != _apparmor(str(annotations[key])):
        pod.warn(f"metadata.annotations[{key}]", _APPARMOR_RULE)


def _apparmor(text: str) -> Tree | None:
    """The profile that an annotation names; None if it names none."""
    kind, _, name = text.partition("/")
    if text in ("unconfined", ""):
        return {"type": "Unconfined"} if text else None
    if text == "runtime/default":
        return {"type": "RuntimeDefault"}
    return {"type": "Localhost", "localhostProfile": name} if kind == "localhost" and name else None


def _warn_of_container(container: Part) -> None:
    resources = container.below("resources")
    for name in _BYTES:
        for field in ("limits", "requests"):
            warn_of_bytes(resources, field, name)
    found: set[str] = set()
    for variable in container.each("env"):
        name, value = str(variable.get("name") or ""), str(variable.get("value") or "")
        reference = f"$({name})"
        extends = not variable.get("valueFrom") and value != reference and reference in value
        if name in found and not extends:
            rest = "which may be dropped when using apply"
            variable.warn("", f"hides previous definition of {quoted(name)}, {rest}")
        found.add(name)


def _warn_of_ports(spec: Part) -> None:
    ports = [port for container in spec.each(*CONTAINERS) for port in container.each("ports")]
    by_number: dict[tuple[Any, Any], list[Part]] = {}
    for port in ports:
        others = by_number.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other in others:
            kind = _clash(_host(port), _host(other))
            if kind:
                port.warn("", f"{kind} port definition with {other.path}")
        others.append(port)
    names: dict[str, str] = {}
    for port in ports:
        name = str(port.get("name") or "")
        first = names.setdefault(name, port.path)
        if name and first != port.path:
            rest = f"services and probes that select ports by name will use {first}"
            port.warn("", f"duplicate port name {quoted(name)} with {first}, {rest}")


def _host(port: Part) -> tuple[str, int]:
    return str(port.get("hostIP") or ""), int(port.get("hostPort") or 0)


def _clash(one: tuple[str, int], other: tuple[str, int]) -> str:
    if one == other:
        return "duplicate"
    if not one[1] or not other[1]:
        return "overlapping"
    is_ambiguous = one[1] == other[1] and bool(one[0]) != bool(other[0])
    return "dangerously ambiguous" if is_ambiguous else ""


def _warn_of_affinity(affinity: Part) -> None:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.below(kind)
        for term in terms.each(REQUIRED):
            _warn_of_no_selector(term)
        for wish in terms.each(PREFERRED):
            _warn_of_no_selector(wish.below("podAffinityTerm"))
