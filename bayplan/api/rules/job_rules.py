"""Job rules: faults of Jobs and CronJobs.

Mirrors pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..text.cron import parse_cron
from ..text.name_faults import dns_label_faults, key_faults
from .field_causes import (
    Cause,
    duplicate,
    invalid_value,
    required,
    too_long,
    unsupported_value,
)
from .label_rules import selector_causes, selects, text_causes, unmatched
from .pod_rules import template_causes
from .security_rules import choice_causes
from .workload_rules import least_causes

Tree = Mapping[str, Any]

MAX_INDEXES = 100_000
"""The most pods of an Indexed Job at once, and the most indexes of it that may fail."""
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_UID = "batch.kubernetes.io/controller-uid"
_INDEXED = "requires indexed completion mode"
_LEAST = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"),
    *("ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"),
)
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def job_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Job."""
    spec = tree.get("spec") or {}
    metadata, selector = tree["metadata"], spec.get("selector")
    template = spec.get("template") or {}
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    if not spec.get("manualSelector"):
        labels |= _own_labels(metadata)
        template = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
    if spec.get("manualSelector") and selector is None:
        yield required("spec.selector")
    elif selector is not None and not spec.get("manualSelector"):
        wanted = {**(selector.get("matchLabels") or {}), _UID: metadata.get("uid") or ""}
        selector = {**selector, "matchLabels": wanted}
        if not selects(selector, _own_labels(metadata)):
            yield invalid_value("spec.selector", selector, "`selector` not auto-generated")
    yield from _job_spec_causes({**spec, "template": template}, "spec")
    yield from selector_causes(selector, "spec.selector")
    if selector is not None and not selects(selector, labels):
        yield unmatched("spec.template", labels)
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        name = metadata.get("name") or ""
        last = f"{name}-{completions - 1}"
        if dns_label_faults(last):
            problem = f"will not able to create pod with invalid DNS label: {last}"
            yield invalid_value("metadata.name", name, problem)


def _own_labels(metadata: Tree) -> dict[str, str]:
    """The labels that the server gives to the pods of a Job."""
    uid, name = str(metadata.get("uid") or ""), str(metadata.get("name") or "")
    prefix = "batch.kubernetes.io/"
    return {_UID: uid, f"{prefix}job-name": name, "controller-uid": uid, "job-name": name}


def _job_spec_causes(spec: Tree, path: str) -> Iterator[Cause]:
    yield from least_causes(spec, _LEAST, path)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _owner_causes(spec.get("managedBy"), f"{path}.managedBy")
    mode = spec.get("completionMode")
    yield from choice_causes(spec, "completionMode", ("NonIndexed", "Indexed"), path)
    if mode == "Indexed":
        yield from _index_causes(spec, path)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                yield invalid_value(f"{path}.{field}", spec[field], _INDEXED)
    if spec.get("podFailurePolicy") is not None:
        yield from _failure_causes(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        yield from _success_causes(spec, f"{path}.successPolicy")
    policies = (
        ("Failed",)
        if spec.get("podFailurePolicy") is not None
        else ("Failed", "TerminatingOrFailed")
    )
    yield from choice_causes(spec, "podReplacementPolicy", policies, path)
    template = spec.get("template") or {}
    yield from template_causes(template, f"{path}.template")
    policy, where = (
        (template.get("spec") or {}).get("restartPolicy"),
        f"{path}.template.spec.restartPolicy",
    )
    if policy in (None, "", "Always"):
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported_value(where, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        problem = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid_value(where, policy, problem)


def _owner_causes(name: str | None, path: str) -> Iterator[Cause]:
    """Yield the faults of the name of a controller, `domain/path`."""
    if name is None:
        return
    domain, slash, rest = name.partition("/")
    if not name:
        yield required(path)
    elif not slash or not domain or not rest:
        problem = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield invalid_value(path, name, problem)
    if len(name) > 63:
        yield too_long(path, 63)


def _index_causes(spec: Tree, path: str) -> Iterator[Cause]:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > MAX_INDEXES:
        problem = f"must be less than or equal to {MAX_INDEXES} when completion mode is Indexed"
        yield invalid_value(f"{path}.parallelism", parallelism, problem)
    if completions is not None and failed is not None and failed > completions:
        problem = "must be less than or equal to completions"
        yield invalid_value(f"{path}.maxFailedIndexes", failed, problem)
    if failed is not None and failed > MAX_INDEXES:
        problem = f"must be less than or equal to {MAX_INDEXES}"
        yield invalid_value(f"{path}.maxFailedIndexes", failed, problem)
    if (completions or 0) <= MAX_INDEXES or spec.get("backoffLimitPerIndex") is None:
        return
    when = f"when completions are above {MAX_INDEXES} and used with backoff limit per index"
    if failed is None:
        problem = f"must be specified when completions is above {MAX_INDEXES}"
        yield required(f"{path}.maxFailedIndexes", problem)
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
        if value > MAX_INDEXES // 10:
            problem = f"must be less than or equal to {MAX_INDEXES // 10} {when}"
            yield invalid_value(f"{path}.{field}", value, problem)


def _failure_causes(spec: Tree, path: str) -> Iterator[Cause]:
    inner = (spec.get("template") or {}).get("spec") or {}
    names = [
        container.get("name")
        for part in ("containers", "initContainers")
        for container in inner.get(part) or ()
    ]
    for i, rule in enumerate(spec["podFailurePolicy"].get("rules") or ()):
        where, action = f"{path}.rules[{i}]", rule.get("action") or ""
        if not action:
            listed = " ".join(f'"{word}"' for word in _ACTIONS)
            yield required(f"{where}.action", f"valid values: [{listed}]")
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            problem = "requires the backoffLimitPerIndex to be set"
            yield invalid_value(f"{where}.action", action, problem)
        elif action not in _ACTIONS:
            yield unsupported_value(f"{where}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            yield from _code_causes(codes, names, f"{where}.onExitCodes")
        for j, pattern in enumerate(conditions):
            at = f"{where}.onPodConditions[{j}]"
            yield from text_causes(pattern.get("type") or "", key_faults, f"{at}.type")
            yield from choice_causes(pattern, "status", ("False", "True", "Unknown"), at)
        both = "OnExitCodes and OnPodConditions is"
        if codes is not None and conditions:
            problem = f"Invalid value: specifying both {both} not supported"
            yield Cause("FieldValueInvalid", problem, where)
        if codes is None and not conditions:
            problem = f"Invalid value: specifying one of {both} required"
            yield Cause("FieldValueInvalid", problem, where)


def _code_causes(codes: Tree, names: list[Any], path: str) -> Iterator[Cause]:
    values = codes.get("values") or []
    yield from choice_causes(codes, "operator", ("In", "NotIn"), path)
    name = codes.get("containerName")
    if name is not None and name not in names:
        problem = "must be one of the container or initContainer names in the pod template"
        yield invalid_value(f"{path}.containerName", name, problem)
    if not values:
        yield invalid_value(f"{path}.values", values, "at least one value is required")
    for i, value in enumerate(values):
        where = f"{path}.values[{i}]"
        if codes.get("operator") == "In" and value == 0:
            yield invalid_value(where, value, "must not be 0 for the In operator")
        if value in values[:i]:
            yield duplicate(where, value)
    if values != sorted(values):
        yield invalid_value(f"{path}.values", values, "must be ordered")


def _success_causes(spec: Tree, path: str) -> Iterator[Cause]:
    policy, completions = spec["successPolicy"], spec.get("completions") or 0
    if spec.get("completionMode") != "Indexed":
        rules = [
            {
                "SucceededIndexes": rule.get("succeededIndexes"),
                "SucceededCount": rule.get("succeededCount"),
            }
            for rule in policy.get("rules") or ()
        ]
        yield invalid_value(path, {"Rules": rules}, _INDEXED)
        return
    if not policy.get("rules"):
        problem = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{path}.rules", problem)
    for i, rule in enumerate(policy.get("rules") or ()):
        where, count = f"{path}.rules[{i}]", rule.get("succeededCount")
        if count is None and rule.get("succeededIndexes") is None:
            problem = "at least one of succeededCount or succeededIndexes must be specified"
            yield required(where, problem)
        yield from least_causes(rule, ("succeededCount",), where)
        if count is not None and count > completions:
            problem = (
                f"must be less than or equal to {completions} (the number of specified completions)"
            )
            yield invalid_value(f"{where}.succeededCount", count, problem)


def cron_job_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a CronJob."""
    spec, name = tree.get("spec") or {}, tree["metadata"].get("name") or ""
    yield from _schedule_causes(spec.get("schedule") or "", "spec.schedule")
    yield from least_causes(spec, ("startingDeadlineSeconds",), "spec")
    yield from _zone_causes(spec.get("timeZone"), "spec.timeZone")
    yield from choice_causes(spec, "concurrencyPolicy", ("Allow", "Forbid", "Replace"), "spec")
    job, path = (spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec"
    yield from _job_spec_causes(job, path)
    if job.get("selector") is not None:
        problem = "`selector` will be auto-generated"
        yield invalid_value(f"{path}.selector", job["selector"], problem)
    if job.get("manualSelector"):
        yield unsupported_value(f"{path}.manualSelector", True, ("nil", "false"))
    fields = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from least_causes(spec, fields, "spec")
    if len(name) > 52:
        yield invalid_value("metadata.name", name, "must be no more than 52 characters")


def _schedule_causes(schedule: str, path: str) -> Iterator[Cause]:
    if not schedule:
        yield required(path)
        return
    zone, _, rest = schedule.partition(" ")
    is_zoned = zone.startswith(("TZ=", "CRON_TZ="))
    try:
        parse_cron(rest.strip() if is_zoned else schedule)
    except ValueError as error:
        yield invalid_value(path, schedule, str(error))
    if "TZ" in schedule:
        problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid_value(path, schedule, problem)


def _zone_causes(zone: str | None, path: str) -> Iterator[Cause]:
    if zone is None:
        return
    if not zone:
        yield invalid_value(path, zone, "timeZone must be nil or non-empty string")
        return
    parts = zone.split("/")
    if any(
        part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part)
        for part in parts
    ):
        yield invalid_value(path, zone, f"unknown time zone {zone}")
        return
    if zone.lower() == "local":
        problem = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        yield invalid_value(path, zone, problem)
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield invalid_value(path, zone, f"unknown time zone {zone}")
