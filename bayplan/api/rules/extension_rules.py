"""Extension rules: faults of webhook configurations and of API services, which are stored and not called.

Mirrors parts of pkg/apis/admissionregistration/validation/validation.go and of
k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go.
"""

from __future__ import annotations

from ..text.name_faults import subdomain_faults
from .field_causes import Part
from .label_rules import check_selector


def check_webhooks(configuration: Part) -> None:
    """Check a ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""
    names: set[str] = set()
    for hook in configuration.each("webhooks"):
        hook.unique("name", names)
        hook.needs_text("name", _hook_name_faults)
        hook.choice("failurePolicy", "Fail", "Ignore")
        hook.choice("matchPolicy", "Equivalent", "Exact")
        hook.choice("reinvocationPolicy", "IfNeeded", "Never")
        hook.choice("sideEffects", "None", "NoneOnDryRun")
        if not hook.has("sideEffects"):
            hook.required("sideEffects", "must specify one of None, NoneOnDryRun")
        hook.needs("admissionReviewVersions", problem="must specify one of v1, v1beta1")
        problem = "the timeout value must be between 1 and 30 seconds"
        hook.limit("timeoutSeconds", 1, 30, problem)
        check_selector(hook.below("namespaceSelector"))
        check_selector(hook.below("objectSelector"))
        if len(hook.below("clientConfig").set_of(("url", "service"))) != 1:
            hook.required("clientConfig", "exactly one of url or service is required")


def _hook_name_faults(name: str) -> tuple[str, ...]:
    faults = subdomain_faults(name)
    if faults or name.count(".") >= 2:
        return faults
    return ("should be a domain with at least three segments separated by dots",)


def check_api_service(service: Part) -> None:
    """Check an APIService."""
    spec, name = service.below("spec"), service.tree["metadata"].get("name") or ""
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    if name != wanted:
        problem = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        service.invalid("metadata.name", problem, name)
    for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)):
        number = spec.get(field) or 0
        if not 0 < number <= most:
            spec.invalid(field, f"must be positive and less than {most}", number)
    if spec.has("service"):
        spec.below("service").needs("namespace", "name")
