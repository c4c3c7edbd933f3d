"""Autoscaler rules: faults of HorizontalPodAutoscalers and of disruption budgets.

Mirrors pkg/apis/autoscaling/validation/validation.go and pkg/apis/policy/validation/validation.go.
"""

from __future__ import annotations

from ..text.name_faults import dns_label_faults, path_segment_faults
from .field_causes import Part
from .label_rules import check_selector
from .resource_rules import amount_of, container_resource_faults
from .workload_rules import most_faults, share_faults

_METRICS = ("ContainerResource", "External", "Object", "Pods", "Resource")
_ORDER = ("object", "external", "pods", "resource", "containerResource")
_POSITIVE = "must be greater than zero"
_AT_LEAST_1 = "must be greater than or equal to 1"


def check_autoscaler(autoscaler: Part) -> None:
    """Check a HorizontalPodAutoscaler."""
    spec = autoscaler.below("spec")
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        spec.invalid("minReplicas", _AT_LEAST_1)
    if spec.needs("maxReplicas", problem="must be set and greater than 0") and most < 0:
        spec.invalid("maxReplicas", _AT_LEAST_1)
    if least is not None and most < least:
        problem = "must be greater than or equal to `minReplicas`"
        spec.invalid("maxReplicas", problem, most)
    _check_reference(spec.below("scaleTargetRef"))
    metrics = list(spec.each("metrics"))
    for metric in metrics:
        _check_metric(metric)
    if least == 0 and not any(one.get("type") in ("Object", "External") for one in metrics):
        problem = "must specify at least one Object or External metric to support scaling to zero replicas"
        spec.forbidden("metrics", problem)
    behavior = spec.below("behavior")
    for field in behavior.set_of(("scaleUp", "scaleDown")):
        _check_scaling(behavior.below(field))


def _check_reference(reference: Part, any_group: bool = False) -> None:
    reference.needs_text("kind", path_segment_faults)
    reference.needs_text("name", path_segment_faults)
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        reference.invalid("apiVersion", f"unexpected GroupVersion string: {version}")
    elif not any_group and not version.rpartition("/")[0]:
        reference.invalid("apiVersion", "apiVersion must specify API group", version)


def _check_metric(metric: Part) -> None:
    kind = metric.get("type") or ""
    metric.needs("type", problem="must specify a metric source type")
    metric.needs_choice("type", *_METRICS)
    named = metric.set_of(_ORDER)
    for name in named[:1]:
        _check_source(name, metric.below(name))
    wanted = kind[0].lower() + kind[1:] if kind in _METRICS else ""
    metric.needs_choice("type", *_METRICS)
    if wanted and wanted not in named:
        metric.required(wanted, "must populate information for the given metric source")
    for name in named if len(named) != 1 else ():
        if name != wanted:
            metric.forbidden(name, "must populate the given metric source only")


def _check_source(name: str, source: Part) -> None:
    if name == "object":
        _check_reference(source.below("describedObject"), any_group=True)
    if name in ("resource", "containerResource"):
        is_named = source.needs("name", problem="must specify a resource name")
        if name == "containerResource":
            if is_named:
                source.check("name", container_resource_faults)
            source.needs("container", problem="must specify a container")
            source.text("container", dns_label_faults)
    else:
        metric = source.below("metric")
        metric.needs("name", problem="must specify a metric name")
        metric.text("name", path_segment_faults)
    target = source.below("target")
    _check_target(target)
    _check_choice_of_target(name, target)


def _check_choice_of_target(name: str, target: Part) -> None:
    """Check which targets are set."""
    has_share, has_average = target.has("averageUtilization"), target.has("averageValue")
    has_value = target.has("value")
    if name in ("resource", "containerResource"):
        if not has_share and not has_average:
            problem = "must set either a target raw value or a target utilization"
            target.required("averageUtilization", problem)
        if has_share and has_average:
            problem = "may not set both a target raw value and a target utilization"
            target.forbidden("averageValue", problem)
    elif name == "pods":
        if not has_average:
            target.required("averageValue", "must specify a positive target averageValue")
    else:
        rest = "or averageValue" if name == "object" else "for metric or a per-pod target"
        if not has_value and not has_average:
            target.required("averageValue", f"must set either a target value {rest}")
        if name == "external" and has_value and has_average:
            problem = "may not set both a target value for metric and a per-pod target"
            target.forbidden("value", problem)


def _check_target(target: Part) -> None:
    kind = target.get("type") or ""
    target.needs("type", problem="must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        target.invalid("type", "must be either Utilization, Value, or AverageValue", kind)
    for field in ("value", "averageValue"):
        amount = amount_of(target.get(field))
        if amount is not None and amount.nano <= 0:
            target.invalid(field, "must be positive", str(amount))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        target.invalid("averageUtilization", "must be greater than 0")


def _check_scaling(rules: Part) -> None:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        rules.invalid("stabilizationWindowSeconds", "must be greater than or equal to zero")
    if window is not None and window > 3600:
        rules.invalid("stabilizationWindowSeconds", "must be less than or equal to 3600")
    rules.choice("selectPolicy", "Disabled", "Max", "Min")
    rules.needs("policies", problem="must specify at least one Policy")
    for policy in rules.each("policies"):
        policy.needs_choice("type", "Percent", "Pods")
        for field in ("value", "periodSeconds"):
            if (policy.get(field) or 0) <= 0:
                policy.invalid(field, _POSITIVE, policy.get(field) or 0)
        if (policy.get("periodSeconds") or 0) > 1800:
            policy.invalid("periodSeconds", "must be less than or equal to 1800")


def check_budget(budget: Part) -> None:
    """Check a PodDisruptionBudget."""
    spec = budget.below("spec")
    if spec.has("minAvailable") and spec.has("maxUnavailable"):
        names = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
        shown = {name: spec.get(name[0].lower() + name[1:]) for name in names}
        spec.invalid("", "minAvailable and maxUnavailable cannot be both set", shown)
    for field in ("minAvailable", "maxUnavailable"):
        spec.check(field, share_faults, spec.get(field))
        spec.check(field, most_faults, spec.get(field))
    check_selector(spec.below("selector"))
    spec.choice("unhealthyPodEvictionPolicy", "AlwaysAllow", "IfHealthyBudget")
