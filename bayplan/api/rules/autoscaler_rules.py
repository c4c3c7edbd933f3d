"""Autoscaler rules: faults of HorizontalPodAutoscalers and of disruption budgets.

Mirrors pkg/apis/autoscaling/validation/validation.go and pkg/apis/policy/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults, path_segment_faults
from .field_causes import Cause, forbidden_field, invalid_value, required, unsupported_value
from .label_rules import name_causes_of, selector_causes
from .resource_rules import amount_of, container_resource_causes
from .security_rules import choice_causes
from .workload_rules import most_causes, share_causes

Tree = Mapping[str, Any]

_METRICS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_ORDER = ("object", "external", "pods", "resource", "containerResource")
_POSITIVE = "must be greater than zero"


def autoscaler_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a HorizontalPodAutoscaler."""
    spec = tree.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        yield invalid_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        problem = "must be greater than or equal to `minReplicas`"
        yield invalid_value("spec.maxReplicas", most, problem)
    yield from _reference_causes(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    metrics = spec.get("metrics") or ()
    for i, metric in enumerate(metrics):
        yield from _metric_causes(metric, f"spec.metrics[{i}]")
    if least == 0 and not any(one.get("type") in ("Object", "External") for one in metrics):
        problem = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_field("spec.metrics", problem)
    for field in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(field)
        if rules is not None:
            yield from _scaling_causes(rules, f"spec.behavior.{field}")


def _reference_causes(reference: Tree, path: str, any_group: bool = False) -> Iterator[Cause]:
    for field in ("kind", "name"):
        if not reference.get(field):
            yield required(f"{path}.{field}")
        yield from name_causes_of(reference, field, path_segment_faults, path)
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        problem = f"unexpected GroupVersion string: {version}"
        yield invalid_value(f"{path}.apiVersion", version, problem)
    elif not any_group and not version.rpartition("/")[0]:
        yield invalid_value(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _metric_causes(metric: Tree, path: str) -> Iterator[Cause]:
    kind = metric.get("type") or ""
    known = tuple(_METRICS)
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _METRICS:
        yield unsupported_value(f"{path}.type", kind, known)
    named = [name for name in _ORDER if metric.get(name) is not None]
    for name in named[:1]:
        yield from _source_causes(name, metric[name], f"{path}.{name}")
    wanted = _METRICS.get(kind, "")
    if not wanted:
        yield unsupported_value(f"{path}.type", kind, known)
    elif wanted not in named:
        problem = "must populate information for the given metric source"
        yield required(f"{path}.{wanted}", problem)
    for name in named if len(named) != 1 else ():
        if name != wanted:
            problem = "must populate the given metric source only"
            yield forbidden_field(f"{path}.{name}", problem)


def _source_causes(name: str, source: Tree, path: str) -> Iterator[Cause]:
    target, where = source.get("target") or {}, f"{path}.target"
    if name == "object":
        described = source.get("describedObject") or {}
        yield from _reference_causes(described, f"{path}.describedObject", any_group=True)
    if name in ("resource", "containerResource"):
        if not source.get("name"):
            yield required(f"{path}.name", "must specify a resource name")
        elif name == "containerResource":
            yield from container_resource_causes(source["name"], f"{path}.name")
        if name == "containerResource":
            if not source.get("container"):
                yield required(f"{path}.container", "must specify a container")
            yield from name_causes_of(source, "container", dns_label_faults, path)
    else:
        metric = source.get("metric") or {}
        if not metric.get("name"):
            yield required(f"{path}.metric.name", "must specify a metric name")
        yield from name_causes_of(metric, "name", path_segment_faults, f"{path}.metric")
    yield from _target_causes(target, where)
    yield from _choice_of_target(name, target, where)


def _choice_of_target(name: str, target: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of which targets are set."""
    share, average = target.get("averageUtilization"), target.get("averageValue")
    value = target.get("value")
    if name in ("resource", "containerResource"):
        if share is None and average is None:
            problem = "must set either a target raw value or a target utilization"
            yield required(f"{path}.averageUtilization", problem)
        if share is not None and average is not None:
            problem = "may not set both a target raw value and a target utilization"
            yield forbidden_field(f"{path}.averageValue", problem)
    elif name == "pods":
        if average is None:
            problem = "must specify a positive target averageValue"
            yield required(f"{path}.averageValue", problem)
    else:
        words = "averageValue" if name == "object" else "for metric or a per-pod target"
        problem = f"must set either a target value {'or ' if name == 'object' else ''}{words}"
        if value is None and average is None:
            yield required(f"{path}.averageValue", problem)
        if name == "external" and value is not None and average is not None:
            problem = "may not set both a target value for metric and a per-pod target"
            yield forbidden_field(f"{path}.value", problem)


def _target_causes(target: Tree, path: str) -> Iterator[Cause]:
    kind = target.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        problem = "must be either Utilization, Value, or AverageValue"
        yield invalid_value(f"{path}.type", kind, problem)
    for field in ("value", "averageValue"):
        amount = amount_of(target.get(field))
        if amount is not None and amount.nano <= 0:
            yield invalid_value(f"{path}.{field}", str(amount), "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid_value(f"{path}.averageUtilization", share, "must be greater than 0")


def _scaling_causes(rules: Tree, path: str) -> Iterator[Cause]:
    window, where = rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        yield invalid_value(where, window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        yield invalid_value(where, window, "must be less than or equal to 3600")
    yield from choice_causes(rules, "selectPolicy", ("Disabled", "Max", "Min"), path)
    if not rules.get("policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for i, policy in enumerate(rules.get("policies") or ()):
        at, period = f"{path}.policies[{i}]", policy.get("periodSeconds") or 0
        kind = policy.get("type") or ""
        if kind not in ("Percent", "Pods"):
            yield unsupported_value(f"{at}.type", kind, ("Percent", "Pods"))
        if (policy.get("value") or 0) <= 0:
            yield invalid_value(f"{at}.value", policy.get("value") or 0, _POSITIVE)
        if period <= 0:
            yield invalid_value(f"{at}.periodSeconds", period, _POSITIVE)
        if period > 1800:
            problem = "must be less than or equal to 1800"
            yield invalid_value(f"{at}.periodSeconds", period, problem)


def budget_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a PodDisruptionBudget."""
    spec = tree.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        yield from share_causes(spec.get(field), f"spec.{field}")
        yield from most_causes(spec.get(field), f"spec.{field}")
    yield from selector_causes(spec.get("selector"), "spec.selector")
    words = ("AlwaysAllow", "IfHealthyBudget")
    yield from choice_causes(spec, "unhealthyPodEvictionPolicy", words, "spec")
