"""Workload rules: faults of Deployments, other sets of pods, their autoscalers and their disruption budgets.

Mirrors pkg/apis/apps/validation/validation.go and the controllers of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Any

from ..text.name_faults import dns_label_faults, path_segment_faults
from .field_causes import NEGATIVE, Part, Tree
from .label_rules import (
    check_annotations,
    check_labels,
    check_selector,
    refuse_unselected,
    selects,
)
from .pod_rules import check_template
from .resource_rules import amount_of, container_resource_faults
from .volume_rules import check_claim_spec

_PERCENT = re.compile("[0-9]+%")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)
_METRICS = ("ContainerResource", "External", "Object", "Pods", "Resource")
_ORDER = ("object", "external", "pods", "resource", "containerResource")
_POSITIVE = "must be greater than zero"
_AT_LEAST_1 = "must be greater than or equal to 1"


def percent_of(value: Any) -> int:
    """The number of a number or percentage; 0 if it is neither."""
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return int(value or 0)


def share_faults(value: Any) -> tuple[str, ...]:
    """The faults of a number of pods, or of a percentage of them."""
    if isinstance(value, str):
        return () if _PERCENT.fullmatch(value) else (_PERCENT_RULE,)
    return (NEGATIVE,) if value is not None and value < 0 else ()


def most_faults(value: Any) -> tuple[str, ...]:
    """The fault of a percentage above 100."""
    is_more = isinstance(value, str) and percent_of(value) > 100
    return ("must not be greater than 100%",) if is_more else ()


def _is_empty(selector: Tree) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def _is_readable(selector: Tree | None) -> bool:
    """Whether the selector can be applied."""
    tried = Part(selector)
    check_selector(tried)
    return not tried.causes


def _check_own_selector(spec: Part, kind: str) -> None:
    """Check the selector of a workload, which must be there and select something."""
    if not spec.has("selector"):
        spec.required("selector")
        return
    check_selector(spec.below("selector"))
    _refuse_empty(spec, kind)


def _refuse_empty(spec: Part, kind: str) -> None:
    selector = spec.get("selector")
    if selector is not None and _is_empty(selector):
        spec.invalid("selector", f"empty selector is invalid for {kind}", {})


def _check_selected(spec: Part, kind: str, template: Tree | None = None) -> None:
    """Check the template of a workload whose pods do not end."""
    pods, selector = spec.below("template", template), spec.get("selector")
    labels = (pods.get("metadata") or {}).get("labels")
    if selector is None or not (_is_empty(selector) or selects(selector, labels or {})):
        refuse_unselected(spec, labels)
    check_template(pods)
    _check_lasting(pods, kind)


def _check_lasting(template: Part, kind: str) -> None:
    """Refuse fields that are not allowed in the spec of pods that do not end."""
    spec = template.below("spec")
    spec.needs_choice("restartPolicy", "Always")
    if spec.has("activeDeadlineSeconds"):
        problem = f"activeDeadlineSeconds in {kind} is not Supported"
        spec.forbidden("activeDeadlineSeconds", problem)


def _check_replicas(spec: Part) -> None:
    """Check selector and template of a ReplicaSet, or of a workload that makes one."""
    _check_own_selector(spec, "deployment")
    if _is_readable(spec.get("selector")):
        _check_selected(spec, "ReplicaSet")
    else:
        spec.invalid("selector", "invalid label selector")


def check_deployment(deployment: Part) -> None:
    """Check a Deployment."""
    spec = deployment.below("spec")
    spec.not_negative("replicas")
    _check_replicas(spec)
    _check_strategy(spec.below("strategy"))
    spec.not_negative("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        spec.invalid("progressDeadlineSeconds", "must be greater than minReadySeconds")


def _check_strategy(strategy: Part) -> None:
    kind, rolling = strategy.get("type"), strategy.below("rollingUpdate")
    if kind == "Recreate":
        if strategy.has("rollingUpdate"):
            problem = "may not be specified when strategy `type` is 'Recreate'"
            strategy.forbidden("rollingUpdate", problem)
    elif kind == "RollingUpdate":
        away, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        rolling.check("maxUnavailable", share_faults, away)
        rolling.check("maxSurge", share_faults, more)
        if percent_of(away) == 0 and percent_of(more) == 0:
            rolling.invalid("maxUnavailable", "may not be 0 when `maxSurge` is 0")
        rolling.check("maxUnavailable", most_faults, away)
    else:
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        strategy.unsupported("", ("Recreate", "RollingUpdate"), shown)


def check_replica_set(replica_set: Part) -> None:
    """Check a ReplicaSet."""
    spec = replica_set.below("spec")
    spec.not_negative("replicas", "minReadySeconds")
    _check_replicas(spec)


def check_daemon_set(daemon_set: Part) -> None:
    """Check a DaemonSet."""
    spec = daemon_set.below("spec")
    selector, template = spec.get("selector"), spec.below("template")
    check_selector(spec.below("selector"))
    labels = (template.get("metadata") or {}).get("labels")
    if selector is None or (_is_readable(selector) and not selects(selector, labels or {})):
        refuse_unselected(spec, labels)
    _refuse_empty(spec, "daemonset")
    check_template(template)
    _check_lasting(template, "DaemonSet")
    spec.not_negative("minReadySeconds", "revisionHistoryLimit")
    strategy = spec.below("updateStrategy")
    if strategy.get("type") == "RollingUpdate":
        _check_daemon_rolling(strategy.below("rollingUpdate"))
    elif strategy.get("type") != "OnDelete":
        shown = {"Type": strategy.get("type"), "RollingUpdate": strategy.get("rollingUpdate")}
        strategy.unsupported("", ("RollingUpdate", "OnDelete"), shown)


def _check_daemon_rolling(rolling: Part) -> None:
    away, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    for faults in (share_faults, most_faults):
        rolling.check("maxUnavailable", faults, away)
        rolling.check("maxSurge", faults, more)
    if percent_of(away) and percent_of(more):
        rolling.invalid("maxSurge", "may not be set when maxUnavailable is non-zero")
    elif not percent_of(away) and not percent_of(more):
        rolling.required("maxUnavailable", "cannot be 0 when maxSurge is 0")


def check_stateful_set(stateful_set: Part) -> None:
    """Check a StatefulSet."""
    spec = stateful_set.below("spec")
    if spec.get("podManagementPolicy") not in (None, "OrderedReady", "Parallel"):
        spec.invalid("podManagementPolicy", "must be 'OrderedReady' or 'Parallel'")
    _check_set_strategy(spec.below("updateStrategy"))
    retention = spec.below("persistentVolumeClaimRetentionPolicy")
    for field in ("whenDeleted", "whenScaled"):
        retention.choice(field, "Retain", "Delete")
    for claim in spec.each("volumeClaimTemplates"):
        check_claim_spec(claim.below("spec"))
    spec.not_negative("replicas", "minReadySeconds")
    spec.below("ordinals").not_negative("start")
    spec.text("serviceName", dns_label_faults)
    _check_own_selector(spec, "statefulset")
    template = spec.below("template")
    if not _is_readable(spec.get("selector")):
        spec.invalid("selector", "")
        _check_lasting(template, "StatefulSet")
        return
    _check_selected(spec, "StatefulSet", _with_claims(spec.tree))
    metadata = Part(template.get("metadata"), template.path, template.causes)
    check_labels(metadata, "labels")
    check_annotations(metadata, "annotations")


def _with_claims(spec: Tree) -> Tree:
    """The template of a StatefulSet with a volume for each template of a claim, and without host names."""
    template = spec.get("template") or {}
    inner = dict(template.get("spec") or {})
    for field in ("subdomain", "hostname"):
        inner.pop(field, None)
    names = [
        (claim.get("metadata") or {}).get("name") or ""
        for claim in spec.get("volumeClaimTemplates") or ()
    ]
    if names:
        made = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}}
            for name in dict.fromkeys(names)
        ]
        own = [volume for volume in inner.get("volumes") or () if volume.get("name") not in names]
        inner["volumes"] = [*made, *own]
    return {**template, "spec": inner}


def _check_set_strategy(strategy: Part) -> None:
    kind, rolling = strategy.get("type"), strategy.below("rollingUpdate")
    if kind == "OnDelete":
        if strategy.has("rollingUpdate"):
            problem = "only allowed for updateStrategy 'RollingUpdate'"
            fields = {"Partition": "partition", "MaxUnavailable": "maxUnavailable"}
            shown = {name: rolling.get(field) for name, field in fields.items()}
            strategy.invalid("rollingUpdate", problem, shown)
    elif kind == "RollingUpdate":
        away = rolling.get("maxUnavailable")
        rolling.not_negative("partition")
        rolling.check("maxUnavailable", share_faults, away)
        if away is not None and percent_of(away) == 0:
            rolling.invalid("maxUnavailable", "cannot be 0")
        rolling.check("maxUnavailable", most_faults, away)
    else:
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        strategy.invalid("", "must be 'RollingUpdate' or 'OnDelete'", shown)


def check_controller(controller: Part) -> None:
    """Check a ReplicationController."""
    spec = controller.below("spec")
    spec.not_negative("minReadySeconds")
    spec.needs("selector")
    spec.not_negative("replicas")
    template = spec.below("template")
    if not spec.has("template"):
        spec.required("template")
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("selector") or {}).items()):
        refuse_unselected(spec, labels)
    check_template(template)
    _check_lasting(template, "ReplicationController")


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
