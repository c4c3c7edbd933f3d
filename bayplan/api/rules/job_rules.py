"""Job rules: faults of Jobs and CronJobs.

Mirrors pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..text.cron import parse_cron
from ..text.name_faults import dns_label_faults, key_faults
from ..workloads import JOB_PREFIX, job_pod_labels
from .field_causes import Cause, Part
from .label_rules import check_selector, refuse_unselected, selects
from .pod_rules import check_template

MAX_INDEXES = 100_000
"""The most pods of an Indexed Job at once, and the most indexes of it that may fail."""
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_UID = f"{JOB_PREFIX}controller-uid"
_INDEXED = "requires indexed completion mode"
_LEAST = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"),
    *("ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"),
)
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def check_job(job: Part) -> None:
    """Check a Job."""
    spec, metadata = job.below("spec"), job.tree["metadata"]
    selector, template = spec.get("selector"), spec.get("template") or {}
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    own_labels = job_pod_labels(str(metadata.get("uid") or ""), str(metadata.get("name") or ""))
    if not spec.get("manualSelector"):
        labels |= own_labels
        template = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
    if spec.get("manualSelector") and selector is None:
        spec.required("selector")
    elif selector is not None and not spec.get("manualSelector"):
        wanted = {**(selector.get("matchLabels") or {}), _UID: metadata.get("uid") or ""}
        selector = {**selector, "matchLabels": wanted}
        if not selects(selector, own_labels):
            spec.invalid("selector", "`selector` not auto-generated", selector)
    _check_job_spec(job.below("spec", {**spec.tree, "template": template}))
    check_selector(spec.below("selector", selector))
    if selector is not None and not selects(selector, labels):
        refuse_unselected(spec, labels)
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        name = metadata.get("name") or ""
        last = f"{name}-{completions - 1}"
        if dns_label_faults(last):
            problem = f"will not able to create pod with invalid DNS label: {last}"
            job.invalid("metadata.name", problem, name)


def _check_job_spec(spec: Part) -> None:
    spec.not_negative(*_LEAST)
    if spec.has("maxFailedIndexes") and not spec.has("backoffLimitPerIndex"):
        spec.required("backoffLimitPerIndex", "when maxFailedIndexes is specified")
    _check_owner(spec)
    mode = spec.get("completionMode")
    spec.choice("completionMode", "NonIndexed", "Indexed")
    if mode == "Indexed":
        _check_indexes(spec)
    elif mode in (None, "NonIndexed"):
        for field in spec.set_of(("backoffLimitPerIndex", "maxFailedIndexes")):
            spec.invalid(field, _INDEXED)
    if spec.has("podFailurePolicy"):
        _check_failure_policy(spec)
    if spec.has("successPolicy"):
        _check_success_policy(spec)
    more = () if spec.has("podFailurePolicy") else ("TerminatingOrFailed",)
    spec.choice("podReplacementPolicy", "Failed", *more)
    template = spec.below("template")
    check_template(template)
    pod = template.below("spec")
    policy = pod.get("restartPolicy")
    if policy in (None, "", "Always"):
        pod.required("restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        pod.unsupported("restartPolicy", ("OnFailure", "Never"))
    elif spec.has("podFailurePolicy") and policy != "Never":
        problem = 'only "Never" is supported when podFailurePolicy is specified'
        pod.invalid("restartPolicy", problem)


def _check_owner(spec: Part) -> None:
    """Check the name of a controller, `domain/path`."""
    name = spec.get("managedBy")
    if name is None:
        return
    domain, slash, rest = name.partition("/")
    if spec.needs("managedBy") and not (slash and domain and rest):
        spec.invalid("managedBy", 'must be a domain-prefixed path (such as "acme.io/foo")')
    if len(name) > 63:
        spec.too_long("managedBy", 63)


def _check_indexes(spec: Part) -> None:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism, most = spec.get("parallelism") or 0, "must be less than or equal to"
    if completions is None:
        spec.required("completions", "when completion mode is Indexed")
    if parallelism > MAX_INDEXES:
        spec.invalid("parallelism", f"{most} {MAX_INDEXES} when completion mode is Indexed")
    if completions is not None and failed is not None and failed > completions:
        spec.invalid("maxFailedIndexes", f"{most} completions")
    if failed is not None and failed > MAX_INDEXES:
        spec.invalid("maxFailedIndexes", f"{most} {MAX_INDEXES}")
    if (completions or 0) <= MAX_INDEXES or not spec.has("backoffLimitPerIndex"):
        return
    when = f"when completions are above {MAX_INDEXES} and used with backoff limit per index"
    if failed is None:
        problem = f"must be specified when completions is above {MAX_INDEXES}"
        spec.required("maxFailedIndexes", problem)
    for field in ("parallelism", "maxFailedIndexes"):
        if (spec.get(field) or 0) > MAX_INDEXES // 10:
            spec.invalid(field, f"{most} {MAX_INDEXES // 10} {when}")


def _check_failure_policy(spec: Part) -> None:
    inner = spec.below("template").below("spec")
    names = [one.get("name") for one in inner.each("containers", "initContainers")]
    for rule in spec.below("podFailurePolicy").each("rules"):
        action = rule.get("action") or ""
        listed = " ".join(f'"{word}"' for word in _ACTIONS)
        if rule.needs("action", problem=f"valid values: [{listed}]"):
            if action == "FailIndex" and not spec.has("backoffLimitPerIndex"):
                rule.invalid("action", "requires the backoffLimitPerIndex to be set")
            else:
                rule.choice("action", *_ACTIONS)
        has_codes, has_conditions = rule.has("onExitCodes"), bool(rule.get("onPodConditions"))
        if has_codes:
            _check_codes(rule.below("onExitCodes"), names)
        for pattern in rule.each("onPodConditions"):
            pattern.check("type", key_faults)
            pattern.choice("status", "False", "True", "Unknown")
        if has_codes == has_conditions:
            which = "both" if has_codes else "one of"
            end = "not supported" if has_codes else "required"
            problem = f"specifying {which} OnExitCodes and OnPodConditions is {end}"
            cause = Cause("FieldValueInvalid", f"Invalid value: {problem}", rule.path)
            spec.causes.append(cause)


def _check_codes(codes: Part, names: Sequence[Any]) -> None:
    values: list[int] = codes.get("values") or []
    codes.choice("operator", "In", "NotIn")
    if codes.has("containerName") and codes.get("containerName") not in names:
        problem = "must be one of the container or initContainer names in the pod template"
        codes.invalid("containerName", problem)
    if not values:
        codes.invalid("values", "at least one value is required", values)
    seen: set[int] = set()
    for name, value in codes.items("values"):
        if codes.get("operator") == "In" and value == 0:
            codes.invalid(name, "must not be 0 for the In operator", value)
        codes.unique(name, seen, value)
    if values != sorted(values):
        codes.invalid("values", "must be ordered")


def _check_success_policy(spec: Part) -> None:
    policy, completions = spec.below("successPolicy"), spec.get("completions") or 0
    if spec.get("completionMode") != "Indexed":
        names = ("SucceededIndexes", "SucceededCount")
        rules = [
            {name: rule.get(f"s{name[1:]}") for name in names} for rule in policy.each("rules")
        ]
        policy.invalid("", _INDEXED, {"Rules": rules})
        return
    problem = "at least one rules must be specified when the successPolicy is specified"
    policy.needs("rules", problem=problem)
    for rule in policy.each("rules"):
        count = rule.get("succeededCount")
        if not rule.set_of(("succeededCount", "succeededIndexes")):
            problem = "at least one of succeededCount or succeededIndexes must be specified"
            rule.required("", problem)
        rule.not_negative("succeededCount")
        if count is not None and count > completions:
            shown = f"{completions} (the number of specified completions)"
            rule.invalid("succeededCount", f"must be less than or equal to {shown}")


def check_cron_job(cron_job: Part) -> None:
    """Check a CronJob."""
    spec, name = cron_job.below("spec"), cron_job.tree["metadata"].get("name") or ""
    _check_schedule(spec)
    spec.not_negative("startingDeadlineSeconds")
    spec.given("timeZone", _zone_faults)
    spec.choice("concurrencyPolicy", "Allow", "Forbid", "Replace")
    job = spec.below("jobTemplate").below("spec")
    _check_job_spec(job)
    if job.has("selector"):
        job.invalid("selector", "`selector` will be auto-generated")
    if job.get("manualSelector"):
        job.unsupported("manualSelector", ("nil", "false"))
    spec.not_negative("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if len(name) > 52:
        cron_job.invalid("metadata.name", "must be no more than 52 characters", name)


def _check_schedule(spec: Part) -> None:
    if not spec.needs("schedule"):
        return
    schedule = spec.get("schedule")
    zone, _, rest = schedule.partition(" ")
    is_zoned = zone.startswith(("TZ=", "CRON_TZ="))
    try:
        parse_cron(rest.strip() if is_zoned else schedule)
    except ValueError as error:
        spec.invalid("schedule", str(error))
    if "TZ" in schedule:
        problem = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        spec.invalid("schedule", problem)


def _zone_faults(zone: str) -> tuple[str, ...]:
    if not zone:
        return ("timeZone must be nil or non-empty string",)
    unknown = (f"unknown time zone {zone}",)
    if any(
        part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part)
        for part in zone.split("/")
    ):
        return unknown
    if zone.lower() == "local":
        known = "an explicit time zone as defined in https://www.iana.org/time-zones"
        return (f"timeZone must be {known}",)
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return unknown
    return ()
