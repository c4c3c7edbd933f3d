"""Column paths: those of kinds that `kubectl get` prints without computing anything, as paths.

A column is a heading and a path. `#` before the path: how many values it has; `Age` has no path. The text after ` or
` is printed without a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...api.text.json_path import JsonPath, parse_json_path
from ..registry.custom.versions import CustomVersion, PrinterColumn
from . import cells

Tree = Mapping[str, Any]
Cell = Callable[[Tree, datetime], Any]

NAME = "Name"
_POLICY = ("ParamKind .spec.paramKind.kind or <unset>", "Age")
_BINDING = ("PolicyName .spec.policyName", "ParamRef .spec.paramRef.name or <unset>", "Age")
_WEBHOOKS = ("Webhooks #.webhooks[*]", "Age")
PATHS: Mapping[str, Sequence[str]] = {
    "apiservices.apiregistration.k8s.io": (
        "Service .spec.service.name or Local",
        'Available .status.conditions[?(@.type=="Available")].status or Unknown',
        "Age",
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        "Age",
        "SignerName .spec.signerName",
        "Requestor .spec.username",
        "RequestedDuration .spec.expirationSeconds or <none>",
        "Condition .status.conditions[*].type or Pending",
    ),
    "componentstatuses": (
        'Status .conditions[?(@.type=="Healthy")].status',
        'Message .conditions[?(@.type=="Healthy")].message',
        'Error .conditions[?(@.type=="Healthy")].error',
    ),
    "controllerrevisions.apps": (
        "Controller .metadata.ownerReferences[?(@.controller==true)].name or <none>",
        "Revision .revision",
        "Age",
    ),
    "customresourcedefinitions.apiextensions.k8s.io": ("Created_At .metadata.creationTimestamp",),
    "endpointslices.discovery.k8s.io": (
        "AddressType .addressType",
        "Ports .ports[*].port or <unset>",
        "Endpoints .endpoints[*].addresses[*] or <unset>",
        "Age",
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": (
        "PriorityLevel .spec.priorityLevelConfiguration.name",
        "MatchingPrecedence .spec.matchingPrecedence",
        "DistinguisherMethod .spec.distinguisherMethod.type or <none>",
        "Age",
        'MissingPL .status.conditions[?(@.type=="Dangling")].status or ?',
    ),
    "ingressclasses.networking.k8s.io": (
        "Controller .spec.controller",
        "Parameters .spec.parameters.name or <none>",
        "Age",
    ),
    "limitranges": ("Created_At .metadata.creationTimestamp",),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        "Mutations #.spec.mutations[*]",
        *_POLICY,
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": (
        "Type .spec.type",
        "NominalConcurrencyShares .spec.limited.nominalConcurrencyShares or <none>",
        "Queues .spec.limited.limitResponse.queuing.queues or <none>",
        "HandSize .spec.limited.limitResponse.queuing.handSize or <none>",
        "QueueLengthLimit .spec.limited.limitResponse.queuing.queueLengthLimit or <none>",
        "Age",
    ),
    "runtimeclasses.node.k8s.io": ("Handler .handler", "Age"),
    "servicecidrs.networking.k8s.io": ("CIDRs .spec.cidrs[*]", "Age"),
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        "Validations #.spec.validations[*]",
        *_POLICY,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "volumeattributesclasses.storage.k8s.io": ("DriverName .driverName", "Age"),
}


def path_cell(column: str) -> tuple[str, Cell]:
    """The heading of a column, and the function for its cells."""
    heading, _, rest = column.partition(" ")
    if not rest:
        return heading, cells.age
    text, _, otherwise = rest.partition(" or ")
    path, is_count = parse_json_path(text.removeprefix("#")), text.startswith("#")

    def cell(tree: Tree, now: datetime) -> Any:
        found = path.find(tree)
        return len(found) if is_count else ",".join(map(str, found)) or otherwise

    return heading.replace("_", " "), cell


def custom_cells(version: CustomVersion) -> Callable[[Tree, datetime], Sequence[Any]]:
    """A function that makes the cells of objects of a custom resource."""

    def make(tree: Tree, now: datetime) -> Sequence[Any]:
        return [tree["metadata"]["name"], *(_custom_cell(c, tree, now) for c in version.columns)]

    return make


def _custom_cell(column: PrinterColumn, tree: Tree, now: datetime) -> Any:
    """One cell; None when the value is missing, or of another type than the column.

    Mirrors k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
    """
    value = _first(column.path, tree)
    match column.type, value:
        case _, None:
            return None
        case "string", str():
            return value
        case "string", _:
            return cells.go_text(value)
        case "integer", int() | float() if not isinstance(value, bool):
            return int(value)
        case "number", int() | float() if not isinstance(value, bool):
            return float(value)
        case "boolean", bool():
            return value
        case "date", str():
            try:
                return cells.since(value, now)
            except (ValueError, TypeError):
                return "<invalid>"
    return None


def _first(path: JsonPath, tree: Tree) -> Any:
    return path.first(tree)
