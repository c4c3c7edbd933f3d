"""Not modelled: kinds that are stored and served, and have no further effect here.

`WARNINGS` are answered to a client that creates one, so that it does not wait for an effect. The page of `up` in
the documentation has both tables.
"""

from __future__ import annotations

from typing import Any

from .custom.definitions import DEFINITIONS, definition_warnings
from .resource_table import ApiResource

_POLICY = "stored and not evaluated by bayplan up"
_WEBHOOK = "stored and not called by bayplan up"
WARNINGS = {
    "apiservices.apiregistration.k8s.io": "stored; bayplan up proxies no requests to it",
    "certificatesigningrequests.certificates.k8s.io": "stored; bayplan up signs no certificate",
    "horizontalpodautoscalers.autoscaling": "stored; bayplan up scales nothing by it",
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _POLICY,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOK,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _POLICY,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOK,
}
NOT_MODELLED = frozenset({*WARNINGS, DEFINITIONS})
"""Resources that `write_warnings` is about, besides custom ones."""


def write_warnings(resource: ApiResource, tree: dict[str, Any]) -> list[str]:
    """Parts of a created or changed object that have no effect here."""
    if resource.custom is not None:
        warning = resource.custom.deprecation
        return [warning] if warning else []
    if resource.storage == DEFINITIONS:
        return definition_warnings(tree)
    text = WARNINGS.get(resource.storage)
    return [f"{resource.kind}: {text}"] if text else []
