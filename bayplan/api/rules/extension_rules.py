"""Extension rules: faults of webhook configurations and of API services, which are stored and not called.

Mirrors parts of pkg/apis/admissionregistration/validation/validation.go and of
k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import subdomain_faults
from .field_causes import Cause, duplicate, invalid_value, required, unsupported_value
from .label_rules import selector_causes, text_causes

Tree = Mapping[str, Any]

_WORDS = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
    "sideEffects": ("None", "NoneOnDryRun"),
}
_REVIEWS = ("v1", "v1beta1")


def webhook_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""
    names: set[str] = set()
    for i, hook in enumerate(tree.get("webhooks") or ()):
        path, name = f"webhooks[{i}]", str(hook.get("name") or "")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        yield from _name_causes(name, f"{path}.name")
        for field, words in _WORDS.items():
            if hook.get(field) is not None and hook[field] not in words:
                yield unsupported_value(f"{path}.{field}", hook[field], words)
        if hook.get("sideEffects") is None:
            yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
        versions = hook.get("admissionReviewVersions") or ()
        if not versions:
            problem = f"must specify one of {', '.join(_REVIEWS)}"
            yield required(f"{path}.admissionReviewVersions", problem)
        seconds = hook.get("timeoutSeconds")
        if seconds is not None and not 1 <= seconds <= 30:
            problem = "the timeout value must be between 1 and 30 seconds"
            yield invalid_value(f"{path}.timeoutSeconds", seconds, problem)
        for field in ("namespaceSelector", "objectSelector"):
            yield from selector_causes(hook.get(field), f"{path}.{field}")
        client = hook.get("clientConfig") or {}
        if (client.get("url") is None) == (client.get("service") is None):
            problem = "exactly one of url or service is required"
            yield required(f"{path}.clientConfig", problem)


def _name_causes(name: str, path: str) -> Iterator[Cause]:
    faults = subdomain_faults(name)
    if not name:
        yield required(path)
    elif faults:
        yield from text_causes(name, subdomain_faults, path)
    elif name.count(".") < 2:
        problem = "should be a domain with at least three segments separated by dots"
        yield invalid_value(path, name, problem)


def api_service_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of an APIService."""
    spec, name = tree.get("spec") or {}, tree["metadata"].get("name") or ""
    group, version = spec.get("group") or "", spec.get("version") or ""
    if name != f"{version}.{group}":
        problem = f'must be `spec.version+"."+spec.group`: "{version}.{group}"'
        yield invalid_value("metadata.name", name, problem)
    for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)):
        number = spec.get(field) or 0
        if not 0 < number <= most:
            problem = f"must be positive and less than {most}"
            yield invalid_value(f"spec.{field}", number, problem)
    if spec.get("service") is not None:
        for field in ("namespace", "name"):
            if not spec["service"].get(field):
                yield required(f"spec.service.{field}")
