"""Pod warnings: parts of a pod or a template that kube-apiserver accepts and warns of.

Mirrors pkg/api/pod/warnings.go and pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..text.name_faults import value_faults
from ..text.quantity import NANO, NANO_PER_MILLI, parse_quantity
from .address_rules import address_warnings, quoted

Tree = Mapping[str, Any]

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
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
_NO_SELECTOR = "a null labelSelector results in matching no pod"


class _Port(NamedTuple):
    """A port of a container, and its place."""

    path: str
    tree: Tree

    @property
    def host(self) -> tuple[str, int]:
        return str(self.tree.get("hostIP") or ""), int(self.tree.get("hostPort") or 0)


def pod_warnings(pod: Tree, path: str = "") -> Iterator[str]:
    """Yield the warnings about a pod, or about a template at `path`, which ends with a dot."""
    spec = pod.get("spec") or {}
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    yield from _placement_warnings(spec, f"{path}spec")
    for name, text in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{path}metadata.annotations[{name}]: {text}"
    yield from _volume_warnings(spec.get("volumes") or (), f"{path}spec.volumes")
    yield from _twice_warnings(spec, f"{path}spec")
    yield from byte_warnings(spec.get("overhead"), _BYTES, f"{path}spec.overhead")
    if _SECCOMP in annotations and not _profile(spec, "seccompProfile"):
        yield f"{path}metadata.annotations[{_SECCOMP}]: {_SECCOMP_RULE}"
    containers = [
        (f"{path}spec.{field}[{i}]", container)
        for field in _CONTAINERS
        for i, container in enumerate(spec.get(field) or ())
    ]
    for where, container in containers:
        yield from _profile_warnings(spec, container, annotations, path)
        yield from _container_warnings(container, where)
    yield from _port_warnings(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        where = f"{path}spec.terminationGracePeriodSeconds"
        yield f"{where}: must be >= 0; negative values are invalid and will be treated as 1"
    yield from _affinity_warnings(spec.get("affinity") or {}, f"{path}spec.affinity")
    servers = (spec.get("dnsConfig") or {}).get("nameservers") or ()
    for i, address in enumerate(servers):
        yield from address_warnings(address, f"{path}spec.dnsConfig.nameservers[{i}]")
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_warnings(alias.get("ip"), f"{path}spec.hostAliases[{i}].ip")


def label_warning(key: str) -> str:
    """The warning about a label of nodes that is no longer used; empty if there is none."""
    return _NODE_LABELS.get(key, "")


def term_warnings(term: Tree, path: str, checks_values: bool = False) -> Iterator[str]:
    """Yield the warnings about a term that selects nodes."""
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        key = str(expression.get("key") or "")
        if label_warning(key):
            yield f"{path}.matchExpressions[{i}].key: {key} is {label_warning(key)}"
        for j, value in enumerate(expression.get("values") or () if checks_values else ()):
            for fault in value_faults(str(value)):
                yield f"{path}.matchExpressions[{i}].values[{j}]: {value} is invalid, {fault}"


def byte_warnings(amounts: Tree | None, names: Iterable[str], path: str) -> Iterator[str]:
    """Yield the warnings about parts of a byte."""
    for name in names:
        value = (amounts or {}).get(name)
        if value is not None and -(-parse_quantity(value) // NANO_PER_MILLI) % (
            NANO // NANO_PER_MILLI
        ):
            problem = "is invalid, must be an integer"
            yield f"{path}[{name}]: fractional byte value {quoted(str(value))} {problem}"


def claim_warnings(spec: Tree, path: str) -> Iterator[str]:
    """Yield the warnings about the spec of a claim."""
    resources = spec.get("resources") or {}
    for part in ("requests", "limits"):
        yield from byte_warnings(resources.get(part), ("storage",), f"{path}.resources.{part}")


def _placement_warnings(spec: Tree, path: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if label_warning(key):
            yield f"{path}.nodeSelector[{key}]: {label_warning(key)}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = (affinity.get(required) or {}).get("nodeSelectorTerms") or ()
    for i, term in enumerate(terms):
        where = f"{path}.affinity.nodeAffinity.{required}.nodeSelectorTerms[{i}]"
        yield from term_warnings(term, where)
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for i, wish in enumerate(affinity.get(preferred) or ()):
        where = f"{path}.affinity.nodeAffinity.{preferred}[{i}].preference"
        yield from term_warnings(wish.get("preference") or {}, where, checks_values=True)
    for i, spread in enumerate(spec.get("topologySpreadConstraints") or ()):
        where, key = f"{path}.topologySpreadConstraints[{i}]", str(spread.get("topologyKey") or "")
        if label_warning(key):
            yield f"{where}.topologyKey: {key} is {label_warning(key)}"
        if spread.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_SELECTOR}"


def _volume_warnings(volumes: Sequence[Tree], path: str) -> Iterator[str]:
    for i, volume in enumerate(volumes):
        for source, text in OLD_SOURCES.items():
            if volume.get(source) is not None:
                yield f"{path}[{i}].{SOURCE_NAMES.get(source, source)}: {text}"
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            where = f"{path}[{i}].ephemeral.volumeClaimTemplate.spec"
            yield from claim_warnings(template.get("spec") or {}, where)
    for volume in volumes:
        yield from _overlap_warnings(volume)


def _overlap_warnings(volume: Tree) -> Iterator[str]:
    """Yield the warnings about files of a volume with the same path."""
    name = quoted(str(volume.get("name") or ""))
    for source, kind, key in (
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "secretName"),
        ("downwardAPI", "DownwardAPI", ""),
    ):
        held = volume.get(source)
        if held is not None:
            shown = f"{kind} {quoted(str(held.get(key) or ''))}" if key else kind
            paths = [(str(item.get("path") or ""), "") for item in held.get("items") or ()]
            for overlap in _overlaps(paths):
                yield f"volume {name} ({shown}): overlapping paths: {overlap}"
    projected = volume.get("projected")
    if projected is None:
        return
    paths = []
    for source in projected.get("sources") or ():
        if not source:
            yield f"volume {name} (Projected) has no sources provided"
        paths += _projected_paths(source)
    for overlap in _overlaps(paths):
        yield f"volume {name} (Projected): overlapping paths: {overlap}"


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
    """Yield the pairs of paths of which one is within the other."""
    before: list[tuple[str, str]] = []
    for given, source in paths:
        path = given.rstrip("/")
        for other, other_source in before if path else ():
            if other and (f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")):
                yield f"{_sourced(path, source)} with {_sourced(other, other_source)}"
        before.append((path, source))


def _sourced(path: str, source: str) -> str:
    return f"{quoted(path)} ({source})" if source else quoted(path)


def _twice_warnings(spec: Tree, path: str) -> Iterator[str]:
    """Yield the warnings about addresses and names that are there twice, or empty."""
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        found: set[str] = set()
        for i, item in enumerate(spec.get(field) or ()):
            value = str(item.get(key) or "")
            if value in found:
                yield f"{path}.{field}[{i}].{key}: duplicate {key} {quoted(value)}"
            found.add(value)
    for i, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{i}].name: invalid empty name ""'


def _profile(holder: Tree, name: str) -> Any:
    return (holder.get("securityContext") or {}).get(name)


def _profile_warnings(spec: Tree, container: Tree, annotations: Tree, path: str) -> Iterator[str]:
    key = _CONTAINER_SECCOMP + str(container.get("name"))
    if key in annotations and not _profile(container, "seccompProfile"):
        yield f"{path}metadata.annotations[{key}]: {_SECCOMP_RULE}"
    key = _CONTAINER_APPARMOR + str(container.get("name"))
    if not path or key not in annotations or _profile(container, "appArmorProfile"):
        return
    if _profile(spec, "appArmorProfile") != _apparmor(str(annotations[key])):
        yield f"{path}metadata.annotations[{key}]: {_APPARMOR_RULE}"


def _apparmor(text: str) -> Tree | None:
    """The profile that an annotation names; None if it names none."""
    kind, _, name = text.partition("/")
    if text in ("unconfined", ""):
        return {"type": "Unconfined"} if text else None
    if text == "runtime/default":
        return {"type": "RuntimeDefault"}
    return {"type": "Localhost", "localhostProfile": name} if kind == "localhost" and name else None


def _container_warnings(container: Tree, path: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in _BYTES:
        for part in ("limits", "requests"):
            yield from byte_warnings(resources.get(part), (name,), f"{path}.resources.{part}")
    found: set[str] = set()
    for i, variable in enumerate(container.get("env") or ()):
        name, value = str(variable.get("name") or ""), str(variable.get("value") or "")
        reference = f"$({name})"
        extends = not variable.get("valueFrom") and value != reference and reference in value
        if name in found and not extends:
            rest = "which may be dropped when using apply"
            yield f"{path}.env[{i}]: hides previous definition of {quoted(name)}, {rest}"
        found.add(name)


def _port_warnings(containers: Iterable[tuple[str, Tree]]) -> Iterator[str]:
    ports = [
        _Port(f"{where}.ports[{i}]", port)
        for where, container in containers
        for i, port in enumerate(container.get("ports") or ())
    ]
    by_number: dict[tuple[Any, Any], list[_Port]] = {}
    for port in ports:
        others = by_number.setdefault(
            (port.tree.get("containerPort"), port.tree.get("protocol")), []
        )
        for other in others:
            kind = _clash(port.host, other.host)
            if kind:
                yield f"{port.path}: {kind} port definition with {other.path}"
        others.append(port)
    names: dict[str, str] = {}
    for port in ports:
        name = str(port.tree.get("name") or "")
        first = names.setdefault(name, port.path)
        if name and first != port.path:
            rest = f"services and probes that select ports by name will use {first}"
            yield f"{port.path}: duplicate port name {quoted(name)} with {first}, {rest}"


def _clash(one: tuple[str, int], other: tuple[str, int]) -> str:
    if one == other:
        return "duplicate"
    if not one[1] or not other[1]:
        return "overlapping"
    is_ambiguous = one[1] == other[1] and bool(one[0]) != bool(other[0])
    return "dangerously ambiguous" if is_ambiguous else ""


def _affinity_warnings(affinity: Tree, path: str) -> Iterator[str]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for i, term in enumerate(terms.get(required) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{required}[{i}].labelSelector: {_NO_SELECTOR}"
        for i, wish in enumerate(terms.get(preferred) or ()):
            if (wish.get("podAffinityTerm") or {}).get("labelSelector") is None:
                where = f"{path}.{kind}.{preferred}[{i}].podAffinityTerm.labelSelector"
                yield f"{where}: {_NO_SELECTOR}"
