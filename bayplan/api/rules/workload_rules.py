"""Workload rules: faults of Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

Mirrors pkg/apis/apps/validation/validation.go and the controllers of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..text.name_faults import dns_label_faults
from .claim_rules import claim_spec_causes
from .field_causes import Cause, forbidden_field, invalid_value, required, unsupported_value
from .label_rules import (
    annotations_causes,
    labels_causes,
    name_causes_of,
    selector_causes,
    selects,
    unmatched,
)
from .pod_rules import template_causes
from .resource_rules import NEGATIVE
from .security_rules import choice_causes

Tree = Mapping[str, Any]

_PERCENT = re.compile("[0-9]+%")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)


def least_causes(spec: Tree, fields: Sequence[str], path: str) -> Iterator[Cause]:
    """Yield the numbers that are below 0."""
    for field in fields:
        number = spec.get(field)
        if isinstance(number, int) and number < 0:
            yield invalid_value(f"{path}.{field}", number, NEGATIVE)


def percent_of(value: Any) -> int:
    """The number of a number or percentage; 0 if it is neither."""
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return int(value or 0)


def share_causes(value: Any, path: str) -> Iterator[Cause]:
    """Yield the faults of a number of pods, or of a percentage of them."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield invalid_value(path, value, _PERCENT_RULE)
    elif value is not None and value < 0:
        yield invalid_value(path, value, NEGATIVE)


def most_causes(value: Any, path: str) -> Iterator[Cause]:
    """Yield the fault of a percentage above 100."""
    if isinstance(value, str) and percent_of(value) > 100:
        yield invalid_value(path, value, "must not be greater than 100%")


def _selector_causes(spec: Tree, kind: str) -> Iterator[Cause]:
    """Yield the faults of the selector of a workload, which must be there and select something."""
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from selector_causes(selector, "spec.selector")
    yield from _empty_causes(selector, kind)


def _empty_causes(selector: Tree | None, kind: str) -> Iterator[Cause]:
    if selector is None or selector.get("matchLabels") or selector.get("matchExpressions"):
        return
    yield invalid_value("spec.selector", {}, f"empty selector is invalid for {kind}")


def _is_readable(selector: Tree | None) -> bool:
    """Whether the selector can be applied."""
    return selector is None or not any(selector_causes(selector, ""))


def _template_causes(spec: Tree, kind: str, template: Tree | None = None) -> Iterator[Cause]:
    """Yield the faults of the template of a workload whose pods run for ever."""
    template = template if template is not None else spec.get("template") or {}
    labels, selector = (template.get("metadata") or {}).get("labels"), spec.get("selector")
    is_empty = selector is not None and not (
        selector.get("matchLabels") or selector.get("matchExpressions")
    )
    if selector is None or (not is_empty and not selects(selector, labels or {})):
        yield unmatched("spec.template", labels)
    yield from template_causes(template, "spec.template")
    yield from lasting_causes(template.get("spec") or {}, kind)


def lasting_causes(spec: Tree, kind: str) -> Iterator[Cause]:
    """Yield what the spec of pods that run for ever may not have."""
    policy, path = str(spec.get("restartPolicy") or ""), "spec.template.spec"
    if policy != "Always":
        yield unsupported_value(f"{path}.restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        problem = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden_field(f"{path}.activeDeadlineSeconds", problem)


def deployment_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Deployment."""
    spec = tree.get("spec") or {}
    yield from least_causes(spec, ("replicas",), "spec")
    yield from _selector_causes(spec, "deployment")
    if _is_readable(spec.get("selector")):
        yield from _template_causes(spec, "ReplicaSet")
    else:
        yield invalid_value("spec.selector", spec["selector"], "invalid label selector")
    yield from _strategy_causes(spec.get("strategy") or {}, "spec.strategy")
    fields = ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    yield from least_causes(spec, fields, "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        problem = "must be greater than minReadySeconds"
        yield invalid_value("spec.progressDeadlineSeconds", deadline, problem)


def _strategy_causes(strategy: Tree, path: str) -> Iterator[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            problem = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden_field(f"{path}.rollingUpdate", problem)
    elif kind == "RollingUpdate":
        away, more = (rolling or {}).get("maxUnavailable"), (rolling or {}).get("maxSurge")
        where = f"{path}.rollingUpdate"
        yield from share_causes(away, f"{where}.maxUnavailable")
        yield from share_causes(more, f"{where}.maxSurge")
        if percent_of(away) == 0 and percent_of(more) == 0:
            problem = "may not be 0 when `maxSurge` is 0"
            yield invalid_value(f"{where}.maxUnavailable", away, problem)
        yield from most_causes(away, f"{where}.maxUnavailable")
    else:
        shown = {"Type": kind, "RollingUpdate": rolling}
        yield unsupported_value(path, shown, ("Recreate", "RollingUpdate"))


def replica_set_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a ReplicaSet."""
    spec = tree.get("spec") or {}
    yield from least_causes(spec, ("replicas", "minReadySeconds"), "spec")
    yield from _selector_causes(spec, "deployment")
    if _is_readable(spec.get("selector")):
        yield from _template_causes(spec, "ReplicaSet")
    else:
        yield invalid_value("spec.selector", spec["selector"], "invalid label selector")


def daemon_set_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a DaemonSet."""
    spec = tree.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from selector_causes(selector, "spec.selector")
    labels = (template.get("metadata") or {}).get("labels")
    if selector is None or (_is_readable(selector) and not selects(selector, labels or {})):
        yield unmatched("spec.template", labels)
    yield from _empty_causes(selector, "daemonset")
    yield from template_causes(template, "spec.template")
    yield from lasting_causes(template.get("spec") or {}, "DaemonSet")
    yield from least_causes(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec")
    strategy, path = spec.get("updateStrategy") or {}, "spec.updateStrategy"
    if strategy.get("type") == "RollingUpdate":
        yield from _daemon_rolling_causes(
            strategy.get("rollingUpdate") or {}, f"{path}.rollingUpdate"
        )
    elif strategy.get("type") != "OnDelete":
        shown = {"Type": strategy.get("type"), "RollingUpdate": strategy.get("rollingUpdate")}
        yield unsupported_value(path, shown, ("RollingUpdate", "OnDelete"))


def _daemon_rolling_causes(rolling: Tree, path: str) -> Iterator[Cause]:
    away, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    for field in ("maxUnavailable", "maxSurge"):
        yield from share_causes(rolling.get(field), f"{path}.{field}")
    for field in ("maxUnavailable", "maxSurge"):
        yield from most_causes(rolling.get(field), f"{path}.{field}")
    if percent_of(away) and percent_of(more):
        problem = "may not be set when maxUnavailable is non-zero"
        yield invalid_value(f"{path}.maxSurge", more, problem)
    elif not percent_of(away) and not percent_of(more):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def stateful_set_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a StatefulSet."""
    spec = tree.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in (None, "OrderedReady", "Parallel"):
        problem = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", policy, problem)
    yield from _set_strategy_causes(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        where = "spec.persistentVolumeClaimRetentionPolicy"
        yield from choice_causes(retention, field, ("Retain", "Delete"), where)
    templates = spec.get("volumeClaimTemplates") or ()
    for i, claim in enumerate(templates):
        yield from claim_spec_causes(
            claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}].spec"
        )
    yield from least_causes(spec, ("replicas", "minReadySeconds"), "spec")
    yield from least_causes(spec.get("ordinals") or {}, ("start",), "spec.ordinals")
    yield from name_causes_of(spec, "serviceName", dns_label_faults, "spec")
    yield from _selector_causes(spec, "statefulset")
    if not _is_readable(spec.get("selector")):
        yield invalid_value("spec.selector", spec["selector"], "")
        policy_only = (spec.get("template") or {}).get("spec") or {}
        yield from lasting_causes(policy_only, "StatefulSet")
        return
    yield from _template_causes(spec, "StatefulSet", _with_claims(spec))
    metadata = (spec.get("template") or {}).get("metadata") or {}
    yield from labels_causes(metadata.get("labels"), "spec.template.labels")
    yield from annotations_causes(metadata.get("annotations"), "spec.template.annotations")


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


def _set_strategy_causes(strategy: Tree, path: str) -> Iterator[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            problem = "only allowed for updateStrategy 'RollingUpdate'"
            shown = {
                "Partition": rolling.get("partition"),
                "MaxUnavailable": rolling.get("maxUnavailable"),
            }
            yield invalid_value(f"{path}.rollingUpdate", shown, problem)
    elif kind == "RollingUpdate":
        away, where = (rolling or {}).get("maxUnavailable"), f"{path}.rollingUpdate"
        yield from least_causes(rolling or {}, ("partition",), where)
        yield from share_causes(away, f"{where}.maxUnavailable")
        if away is not None and percent_of(away) == 0:
            yield invalid_value(f"{where}.maxUnavailable", away, "cannot be 0")
        yield from most_causes(away, f"{where}.maxUnavailable")
    else:
        shown = {"Type": kind, "RollingUpdate": rolling}
        yield invalid_value(path, shown, "must be 'RollingUpdate' or 'OnDelete'")


def controller_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a ReplicationController."""
    spec = tree.get("spec") or {}
    yield from least_causes(spec, ("minReadySeconds",), "spec")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        yield required("spec.selector")
    yield from least_causes(spec, ("replicas",), "spec")
    if template is None:
        yield required("spec.template")
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        yield unmatched("spec.template", labels)
    yield from template_causes(template, "spec.template")
    yield from lasting_causes(template.get("spec") or {}, "ReplicationController")
