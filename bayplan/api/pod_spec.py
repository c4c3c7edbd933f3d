"""Pod spec: a pod's requirements, shared by all pods with equal ones.

Mirrors PodSpec of k8s.io/api/core/v1/types.go, as far as placement depends on it. The assigned node
is not part of it (`Pod.node_name`).
"""

from functools import cached_property
from hashlib import blake2b
from weakref import WeakValueDictionary

import msgspec

from .affinity import (
    Affinity,
    NodeAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from .containers import ANY_IP, Container, HostPort, ResourceRequirements
from .meta import Wire
from .pod_status import PodStatus
from .resources import (
    CPU,
    MEMORY,
    may_stand_for_devices,
    names_its_needs,
    non_zero_units,
    pod_amounts,
    scoring_units,
    to_units,
)
from .selectors import NAME_FIELD, NodeSelector
from .taints import Toleration
from .text.quantity import Quantity, parse_quantity
from .volumes import Volume
from .wire.interning import shared, shared_text

DEFAULT_SCHEDULER_NAME = "default-scheduler"
DEFAULT_GRACE_S = 30


class PodSchedulingGate(Wire, frozen=True):
    """A gate that must be removed before the pod may be scheduled."""

    name: str = ""


class PodResourceClaim(Wire, frozen=True):
    """An entry of the pod's claims: an existing claim, or a template to make one from."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire, frozen=True):
    """The group with which the pod is scheduled."""

    pod_group_name: str | None = None


class PodSpec(Wire, frozen=True, eq=False, dict=True, gc=True, weakref=True):
    """The `spec` of a pod. Compared by identity: `intern_spec` makes equal ones the same."""

    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] | None = None
    host_network: bool = False
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    runtime_class_name: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    restart_policy: str | None = None

    @property
    def grace_s(self) -> int:
        """The termination grace period in seconds."""
        given = self.termination_grace_period_seconds
        return DEFAULT_GRACE_S if given is None else max(given, 0)

    @property
    def key(self) -> bytes:
        """The content as bytes: equal for equal specs."""
        return _ENCODER.encode(self)

    @cached_property
    def requests(self) -> dict[str, int]:
        """The resources needed on a node: cpu in milli, others in whole units, no zeros."""
        return to_units(pod_amounts(self))

    @cached_property
    def pin(self) -> str:
        """The single node that the required node affinity names in every term, as for pods of a
        DaemonSet; else empty."""
        selector = self.required_node_selector
        names: set[str] = set()
        for term in selector.terms if selector is not None else ():
            fields = term.fields
            if len(fields) != 1 or not term.is_usable:
                return ""
            if fields[0].key != NAME_FIELD or fields[0].operator != "In":
                return ""
            names.update(fields[0].values or ())
        return names.pop() if len(names) == 1 else ""

    @property
    def claims(self) -> tuple[str, ...]:
        """The names of the claims that it names, of volumes and of devices."""
        volumes, devices = self.volumes or (), self.resource_claims or ()
        if not volumes and not devices:
            return ()
        sources = [v.persistent_volume_claim for v in volumes if v.persistent_volume_claim]
        names = [entry.resource_claim_name for entry in devices if entry.resource_claim_name]
        return (*[source.claim_name for source in sources], *names)

    @cached_property
    def template(self) -> "PodSpec | None":
        """The spec without its `pin` and its `claims`, the same for all pods of a DaemonSet or a StatefulSet; None when
        it has neither."""
        bare = _without_pin(self) if self.pin else self
        if any(self.claims):
            bare = _without_claims(bare)
        return intern_spec(bare) if bare is not self else None

    @cached_property
    def outline(self) -> bytes:
        """Digest of the content without amounts of resources; whether an amount is zero counts.

        Equal for specs that request different amounts of the same resources.
        """
        bare = msgspec.structs.replace(
            self,
            containers=_without_amounts(self.containers),
            init_containers=_without_amounts(self.init_containers),
            overhead=_presence(self.overhead),
            resources=None if self.resources is None else _names_of(self.resources),
        )
        return shared(_digest(_ENCODER.encode(bare)))

    def measure(self) -> None:
        """Compute the values that every attempt and every node needs; faults are reported when they are read."""
        if self.template is not None:
            known = self.template.__dict__
            self.__dict__.update({name: known[name] for name in MEASURED if name in known})
            return
        try:
            requests = self.requests
            if names_its_needs(self):
                basic, usage = requests, requests
                if requests.keys() != BASIC:
                    basic = {name: requests.get(name, 0) for name in (CPU, MEMORY)}
                    usage = {**requests, **basic}
                self.__dict__.update(
                    scoring_requests=requests, nonzero_requests=basic, scoring_usage=usage
                )
            else:
                if self.scoring_requests == requests:
                    self.__dict__["scoring_requests"] = requests
                _ = self.scoring_usage
            _ = self.outline, self.device_resources
        except ValueError:
            return
        _ = self.host_ports
        self.__dict__["images"] = shared(self.images)

    @cached_property
    def device_resources(self) -> tuple[str, ...]:
        """The resources among `requests` that device classes can provide."""
        return tuple(name for name in self.requests if may_stand_for_devices(name))

    @cached_property
    def wanted_names(self) -> frozenset[str]:
        """The names of the resources in `requests`."""
        return frozenset(self.requests)

    @cached_property
    def requested_names(self) -> frozenset[str]:
        """The requested resources, including zero amounts and those the scheduler does not count."""
        return frozenset(pod_amounts(self))

    @cached_property
    def scoring_requests(self) -> dict[str, int]:
        """The requests with which NodeResourcesFit scores; cpu and memory have non-zero defaults."""
        return scoring_units(self)

    @property
    def resource_key(self) -> tuple[tuple[str, int], ...]:
        """Key of the requested amounts, equal for specs with equal amounts."""
        requests, scoring = self.requests, self.scoring_requests
        if scoring is requests:
            return tuple(requests.items())
        return (*requests.items(), NOTHING_MORE, *scoring.items())

    @property
    def balanced_requests(self) -> dict[str, int]:
        """The requests with which NodeResourcesBalancedAllocation scores: without defaults."""
        return self.requests

    @cached_property
    def nonzero_requests(self) -> dict[str, int]:
        """cpu (milli) and memory that scoring counts for the pod on its node."""
        return non_zero_units(self)

    @cached_property
    def scoring_usage(self) -> dict[str, int]:
        """`requests`, with cpu and memory as in `nonzero_requests`."""
        return {**self.requests, **self.nonzero_requests}

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The host ports, each once, sidecars' first."""
        sidecars = [c for c in self.init_containers or () if c.is_restartable]
        ports = [p for c in (*sidecars, *(self.containers or ())) for p in c.ports or ()]
        return tuple(
            dict.fromkeys(
                HostPort(port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
                for port in ports
                if port.host_port > 0
            )
        )

    @cached_property
    def images(self) -> tuple[str, ...]:
        """Image names as written: init containers, containers, image volumes."""
        containers = (*(self.init_containers or ()), *(self.containers or ()))
        mounted = (v.image.reference for v in self.volumes or () if v.image is not None)
        return (*(c.image for c in containers), *mounted)

    @property
    def required_node_selector(self) -> NodeSelector | None:
        """The node selector of the required node affinity; None when there is none."""
        affinity = self.affinity.node_affinity if self.affinity else None
        return affinity.required if affinity else None

    @property
    def has_pod_terms(self) -> bool:
        """Whether it has affinity or anti-affinity to other pods."""
        affinity = self.affinity
        return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)

    @property
    def required_affinity(self) -> tuple[PodAffinityTerm, ...]:
        affinity = self.affinity.pod_affinity if self.affinity else None
        return affinity.required if affinity else ()

    @property
    def required_anti_affinity(self) -> tuple[PodAffinityTerm, ...]:
        affinity = self.affinity.pod_anti_affinity if self.affinity else None
        return affinity.required if affinity else ()

    @property
    def preferred_affinity(self) -> tuple[WeightedPodAffinityTerm, ...]:
        affinity = self.affinity.pod_affinity if self.affinity else None
        return affinity.preferred if affinity else ()

    @property
    def preferred_anti_affinity(self) -> tuple[WeightedPodAffinityTerm, ...]:
        affinity = self.affinity.pod_anti_affinity if self.affinity else None
        return affinity.preferred if affinity else ()

    @property
    def pod_terms(self) -> tuple[PodAffinityTerm, ...]:
        """All terms about other pods, the required ones first."""
        weighted = (*self.preferred_affinity, *self.preferred_anti_affinity)
        wishes = (wish.pod_affinity_term for wish in weighted)
        return (*self.required_affinity, *self.required_anti_affinity, *wishes)

    def usage_with(
        self, status: PodStatus, counts_claims: bool = False
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Requests and non-zero requests of a pod with the allocation in `status`, of claims only if they count."""
        claims = status.node_allocatable_resource_claim_statuses if counts_claims else None
        given = (
            status.container_statuses,
            status.init_container_statuses,
            status.resources,
            frozenset((status.allocated_resources or {}).items()),
            status.is_resize_infeasible,
            status.counts_by_pod,  # schedulers of several releases share specs
            claims,
        )
        usage = self._usages.get(given)
        if usage is None:
            claims = claims or ()
            amounts = pod_amounts(self, status=status, claims=claims)
            usage = (to_units(amounts), non_zero_units(self, status, claims))
            self._usages[given] = usage
        return usage

    @cached_property
    def _usages(self) -> dict[object, tuple[dict[str, int], dict[str, int]]]:
        """Cache of `usage_with`: pods of one spec mostly have equal allocations."""
        return {}


class BoundPodSpec(PodSpec, frozen=True, eq=False, dict=True, gc=True, weakref=True):
    """A spec as in a manifest, with the assigned node."""

    node_name: str = ""


BASIC = frozenset({CPU, MEMORY})
NOTHING_MORE = ("", 0)
"""Separates requests from scoring amounts."""
NAMING = frozenset({"affinity", "volumes", "resource_claims"})
"""The fields in which a spec may differ from its template."""
MEASURED = (
    "requests",
    "scoring_requests",
    "nonzero_requests",
    "scoring_usage",
    "host_ports",
    "outline",
    "device_resources",
    "images",
)
"""Results of `measure`, which do not depend on fields that the template lacks."""

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(PodSpec)
_SHARED: WeakValueDictionary[bytes, PodSpec] = WeakValueDictionary()


def intern_spec(spec: PodSpec) -> PodSpec:
    """Return the one shared spec with this content; irrelevant volumes are dropped."""
    changes = _pruned(spec)
    key = _ENCODER.encode(msgspec.structs.replace(spec, **changes)) if changes else spec.key
    return shared_spec(key) or share_spec(key)


def shared_spec(key: bytes) -> PodSpec | None:
    """Return the shared spec with this key, if there is one."""
    return _SHARED.get(_digest(key))


def share_spec(key: bytes) -> PodSpec:
    """Make the spec with this key and share it."""
    spec = _DECODER.decode(key)
    for container in spec.containers or ():
        msgspec.structs.force_setattr(container, "name", shared_text(container.name))
        msgspec.structs.force_setattr(container, "image", shared_text(container.image))
    template = spec.template
    if template is not None:
        for name in spec.__struct_fields__:
            if name not in NAMING:
                msgspec.structs.force_setattr(spec, name, getattr(template, name))
    spec.measure()
    return _SHARED.setdefault(_digest(key), spec)


def _digest(key: bytes) -> bytes:
    """Digest of a key, which may be long: with all specs different, there are as many as pods."""
    return blake2b(key, digest_size=16).digest()


def spec_key(spec: BoundPodSpec) -> bytes:
    """The key of a decoded spec, which is pruned in place."""
    for name, value in _pruned(spec).items():
        msgspec.structs.force_setattr(spec, name, value)
    return _ENCODER.encode(spec)


def _pruned(spec: PodSpec) -> dict[str, object]:
    """The field changes that leave only fields that affect placement."""
    changes: dict[str, object] = {}
    if spec.volumes is not None:
        volumes = _pruned_volumes(spec.volumes)
        if volumes != spec.volumes:
            changes["volumes"] = volumes
    if isinstance(spec, BoundPodSpec) and spec.node_name:
        changes["node_name"] = ""
    if spec.termination_grace_period_seconds == DEFAULT_GRACE_S:
        # explicit or default, the spec is the same
        changes["termination_grace_period_seconds"] = None
    if spec.restart_policy == "Always":
        changes["restart_policy"] = None
    return changes


def _without_pin(spec: PodSpec) -> PodSpec:
    """The spec without its conditions on the node name, which hold on the pinned node."""
    affinity = spec.affinity
    assert affinity is not None, "a spec with a pin has an affinity"
    wishes, required = affinity.node_affinity, spec.required_node_selector
    assert wishes is not None, "a spec with a pin has a node affinity"
    assert required is not None, "a spec with a pin has terms"
    left = None
    if all(term.expressions for term in required.terms):  # else one term selects by name only
        bare = [msgspec.structs.replace(term, match_fields=None) for term in required.terms]
        left = msgspec.structs.replace(required, node_selector_terms=tuple(bare))
    changed = NodeAffinity(left, wishes.preferred or None) if left or wishes.preferred else None
    affinity = msgspec.structs.replace(affinity, node_affinity=changed)
    is_left = affinity.node_affinity or affinity.pod_affinity or affinity.pod_anti_affinity
    return msgspec.structs.replace(spec, affinity=affinity if is_left else None)


def _without_claims(spec: PodSpec) -> PodSpec:
    """The spec with empty names in place of those of claims."""
    replace = msgspec.structs.replace
    volumes = [
        volume
        if (source := volume.persistent_volume_claim) is None
        else replace(volume, persistent_volume_claim=replace(source, claim_name=""))
        for volume in spec.volumes or ()
    ]
    entries = [
        entry if entry.resource_claim_name is None else replace(entry, resource_claim_name="")
        for entry in spec.resource_claims or ()
    ]
    return replace(spec, volumes=tuple(volumes) or None, resource_claims=tuple(entries) or None)


def _without_amounts(containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
    """The containers with the names of their resources, without the amounts."""
    replace = msgspec.structs.replace
    return containers and tuple(
        [
            c if c.resources is None else replace(c, resources=_names_of(c.resources))
            for c in containers
        ]
    )


def _names_of(resources: ResourceRequirements) -> ResourceRequirements:
    requests, limits = _presence(resources.requests), _presence(resources.limits)
    return ResourceRequirements(requests, limits, resources.claims)


def _presence(amounts: dict[str, Quantity] | None) -> dict[str, Quantity] | None:
    """0 or 1 in place of each amount: whether there is some of it."""
    return amounts and {name: 1 if parse_quantity(amounts[name]) else 0 for name in amounts}


def _pruned_volumes(given: tuple[Volume, ...]) -> tuple[Volume, ...] | None:
    """The volumes that affect placement, then scratch space, for which an autoscaler may keep the node."""
    volumes = [_anonymous(volume) for volume in given if volume.is_relevant]
    volumes += [volume for volume in given if volume.empty_dir is not None]
    return tuple(volumes) or None


def _anonymous(volume: Volume) -> Volume:
    """The volume without its name, unless a claim is named after it."""
    if volume.ephemeral is not None or not volume.name:
        return volume
    return msgspec.structs.replace(volume, name="")


EMPTY_SPEC = intern_spec(PodSpec())
