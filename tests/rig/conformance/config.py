"""Conformance of configurations: decoding, validation and expansion into plugin lists.

A case is one decision: the outcomes of decoding, validating and building at the start of
kube-scheduler v1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from bayplan.config.args_validation import validate_args
from bayplan.config.encode import encode_args, encode_config, encode_struct
from bayplan.config.expand import ExpandedPlugins, check_same_queue_sort, expand_plugins
from bayplan.config.extender_order import extender_order, with_ignored_resources
from bayplan.config.files import API_VERSION, KIND
from bayplan.config.generations import V1
from bayplan.config.internal_form import Reading, read_component
from bayplan.config.plugin_args import ARGS_TYPES, NodeResourcesFitArgs
from bayplan.config.problems import Problem, Problems
from bayplan.config.text import parse_text
from bayplan.config.types import POINT_NAMES, Profile, SchedulerConfiguration
from bayplan.errors import ConfigError
from bayplan.plugins.in_tree import IN_TREE
from bayplan.releases.feature_gates import DEFAULT_GATES, FeatureGates
from bayplan.releases.release import DEFAULT_RELEASE, Release
from bayplan.runtime import Registry

from .cases import Disagreement, case_gates
from .upstream_words import ProblemKind, kind_of, upstream_errors, upstream_texts

Record = dict[str, Any]

# kube-scheduler v1.36 has our plugins except these.
OURS_ONLY = {
    "AzureDiskLimits",
    "CinderLimits",
    "Coscheduling",
    "EBSLimits",
    "GCEPDLimits",
    "NodeLabel",
    "NodePreferAvoidPods",
    "NodeResourcesLeastAllocated",
    "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio",
    "SelectorSpread",
    "ServiceAffinity",
}
THEIRS = tuple(plugin for plugin in IN_TREE if plugin.name not in OURS_ONLY)
REGISTRY = Registry(THEIRS)
GENERATION = replace(V1, args_types=ARGS_TYPES)

TYPES = {
    ProblemKind.INVALID: "FieldValueInvalid",
    ProblemKind.REQUIRED: "FieldValueRequired",
    ProblemKind.DUPLICATE: "FieldValueDuplicate",
    ProblemKind.UNSUPPORTED: "FieldValueNotSupported",
    ProblemKind.FORBIDDEN: "FieldValueForbidden",
}
STRICT = {ProblemKind.UNKNOWN_FIELD: "unknown", ProblemKind.DUPLICATE_FIELD: "duplicate"}
_ARGS = re.compile(r"profiles\[(\d+)\]\.pluginConfig\[(\d+)\]\.args(?:\.(.*))?", re.DOTALL)


@dataclass
class ConfigOutcome:
    """The outcome for a file; the fields are those of a case."""

    decode_error_kind: str | None = None
    strict_fields: list[Record] | None = None
    config: Record | None = None
    validation_errors: list[Record] | None = None
    build_error: str | None = None
    profiles: list[Record] | None = None
    extenders: list[str] | None = None


def registry_of(release: Release) -> Registry:
    """The plugins of a release."""
    return REGISTRY if release is DEFAULT_RELEASE else Registry(THEIRS, release.missing_points)


def is_config_case(case: Record) -> bool:
    """Whether this module runs the case."""
    return "yaml" in case and isinstance(case.get("expected"), dict)


def run_config_case(case: Record) -> Iterator[list[Disagreement]]:
    """For the one decision of the case, the differences."""
    ours, theirs = run_start(case["yaml"], case_gates(case)), case["expected"]
    yield [
        Disagreement(case["id"], "file", field, mine, other)
        for field, mine, other in _compared(ours, theirs)
        if mine != other
    ]


def run_start(text: str, gates: FeatureGates = DEFAULT_GATES) -> ConfigOutcome:
    """Return the outcome for the file with this text at program start."""
    problems, outcome = Problems(), ConfigOutcome()
    tree = parse_text(text, problems)
    head = _head(tree, is_json=text.lstrip().startswith("{"))
    kind = "syntax" if tree is None and problems else _head_kind(tree, head)
    if kind is not None:
        outcome.decode_error_kind = kind
        return outcome
    tree |= head
    reading = read_component(tree, problems, GENERATION, gates)
    problems = _noticed(problems, tree, text)
    outcome.decode_error_kind = _decode_error_kind(problems, tree)
    if outcome.decode_error_kind is not None:
        if outcome.decode_error_kind == "strict":
            outcome.strict_fields = _strict_fields(problems, text)
        return outcome
    outcome.config = clean(encode_config(reading.config, reading.entries))
    found = [problem for problem in problems if not _is_found_at_build(problem, reading)]
    outcome.validation_errors = [
        error for problem in found for error in _errors(problem, tree, gates.release)
    ]
    if not outcome.validation_errors:
        _build(reading.config, outcome, gates)
    return outcome


def clean(value: Any) -> Any:
    """Returns plain data without members that are empty, zero or false."""
    if isinstance(value, Mapping):
        members = {name: clean(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member or member == "0s"}
    return [clean(item) for item in value] if isinstance(value, list | tuple) else value


def _compared(ours: ConfigOutcome, theirs: Record) -> Iterator[tuple[str, Any, Any]]:
    yield "decodeErrorKind", ours.decode_error_kind, theirs["decodeErrorKind"]
    yield "strictFields", ours.strict_fields, theirs["strictFields"]
    config = theirs["config"]
    yield "config", ours.config, None if config is None else clean(config)
    yield (
        "validationErrors",
        _comparable(ours.validation_errors),
        _comparable(theirs["validationErrors"]),
    )
    yield "buildError", _shown(ours.build_error), _shown(theirs["buildError"])
    yield "profiles", clean(ours.profiles or []), clean(theirs["profiles"] or [])
    yield "extenders", ours.extenders or [], theirs["extenders"] or []


def _comparable(errors: list[Record] | None) -> list[tuple[str, str, str, str]]:
    """Returns the errors as a sorted set; values that show internal structures do not count."""
    rows = set()
    for error in errors or ():
        value = error["badValue"]
        is_shown = value is not None and not value.startswith(("{", "[", "null"))
        rows.add((error["field"], error["type"], error["detail"], value if is_shown else ""))
    return sorted(rows)


def _shown(build_error: str | None) -> str | None:
    unreadable = "couldn't build extenders: unable to load"
    return unreadable if build_error and build_error.startswith(unreadable) else build_error


def _head(tree: Any, *, is_json: bool) -> Record:
    """The kind and apiVersion of a document: fields whose names differ in case count, the last of them."""
    if not isinstance(tree, dict):
        return {}
    names = {"kind": "kind", "apiversion": "apiVersion"}
    fields = [(names.get(key.lower()), value) for key, value in tree.items()]
    if not is_json:  # what was YAML is sorted
        fields = [(names.get(key.lower()), tree[key]) for key in sorted(tree)]
    return {name: value for name, value in fields if name is not None and value is not None}


def _head_kind(tree: Any, head: Record) -> str | None:
    """Return the fault of kind and apiVersion of a document, None if they are valid."""
    if not isinstance(tree, dict | None):
        return "syntax"
    kind, version = head.get("kind", ""), head.get("apiVersion", "")
    if not isinstance(kind, str) or not isinstance(version, str):
        return "syntax"
    return _version_kind(kind, version, KIND, "otherKind")


def _version_kind(kind: str, version: str, expected: str, other: str) -> str | None:
    """Return the fault of this kind and version where `expected` should be."""
    if version.count("/") > 1:
        return "value"
    if not kind:
        return "missingKind"
    if not version:
        return "missingVersion"
    if version == API_VERSION and kind == expected:
        return None
    kinds = {KIND, *(f"{name}Args" for name in ARGS_TYPES)}
    return other if version == API_VERSION and kind in kinds else "notRegistered"


def _noticed(problems: Problems, tree: Record, text: str) -> Problems:
    """Return the problems without repeated keys in JSON arguments of unknown plugins."""
    if not text.lstrip().startswith("{"):
        return problems
    return Problems(
        problem
        for problem in problems
        if kind_of(problem) is not ProblemKind.DUPLICATE_FIELD
        or (found := _ARGS.fullmatch(problem.path)) is None
        or found.group(3) is None
        or _entry(tree, found).get("name") in ARGS_TYPES
    )


def _entry(tree: Record, found: re.Match[str]) -> Record:
    entry: Any = tree["profiles"][int(found.group(1))]["pluginConfig"][int(found.group(2))]
    return entry if isinstance(entry, dict) else {}


def _decode_error_kind(problems: Problems, tree: Record) -> str | None:
    """Return the type of the decoding error: the document takes precedence over plugin arguments,
    and unknown fields are checked last."""
    decoding = [problem for problem in problems if kind_of(problem) not in TYPES]
    hard = [problem for problem in decoding if kind_of(problem) not in STRICT]
    outer = [problem for problem in hard if not _ARGS.fullmatch(problem.path)]
    for problem in outer or hard:
        if kind_of(problem) is not ProblemKind.VERSION:
            return str(kind_of(problem).value)
        found = _ARGS.fullmatch(problem.path)
        assert found is not None, "the document's own version was checked before"
        entry = _entry(tree, found)
        expected = f"{entry['name']}Args"
        head = _head(entry["args"], is_json=False)
        kind, version = head.get("kind", ""), head.get("apiVersion", "")
        if not isinstance(kind, str) or not isinstance(version, str):
            return "syntax"
        return _version_kind(kind or expected, version or API_VERSION, expected, "argsKind")
    return "strict" if decoding else None


def _strict_fields(problems: Problems, text: str) -> list[Record]:
    """Return the unknown and repeated fields, with kube-scheduler's names."""
    is_json = text.lstrip().startswith("{")
    fields: list[Record] = []
    for problem in problems:
        if kind_of(problem) not in STRICT:
            continue
        found = _ARGS.fullmatch(problem.path)
        path = found.group(3) if found and found.group(3) else problem.path
        times = 1
        if kind_of(problem) is ProblemKind.DUPLICATE_FIELD and not is_json:
            path = problem.path.rpartition(".")[2]
            times = int(problem.got.split()[1]) - 1
        fields += [{"problem": STRICT[kind_of(problem)], "field": path}] * times
    return sorted(fields, key=lambda field: (field["problem"], field["field"]))


def _is_found_at_build(problem: Problem, reading: Reading) -> bool:
    """Whether kube-scheduler finds the problem only when it creates the plugin."""
    found = _ARGS.fullmatch(problem.path)
    if found is None:
        return False
    profile = reading.entries[int(found.group(1))]
    return profile[int(found.group(2))][0] == "NodeResourcesFit"


def _errors(problem: Problem, file: Record, release: Release) -> Iterator[Record]:
    for error in upstream_errors(problem, file, release):
        yield {
            "field": problem.path,
            "type": TYPES[kind_of(problem)],
            "badValue": error.bad_value,
            "detail": error.detail,
        }


def _build(config: SchedulerConfiguration, outcome: ConfigOutcome, gates: FeatureGates) -> None:
    """Record the lists of plugins, or the error of building."""
    try:
        config = with_ignored_resources(config)
        expanded = {}
        for profile in config.profiles:
            expanded[profile.scheduler_name] = _build_profile(profile, gates)
        check_same_queue_sort(config.profiles, expanded)
    except ConfigError as error:
        outcome.build_error = str(error)
        return
    outcome.profiles = [
        _profile_record(profile, expanded[profile.scheduler_name]) for profile in config.profiles
    ]
    outcome.extenders = [extender.url_prefix for extender in extender_order(config.extenders)]


def _build_profile(profile: Profile, gates: FeatureGates) -> ExpandedPlugins:
    """Return the plugins of each point, after creating the plugins."""
    name = profile.scheduler_name
    try:
        _make_fit(profile, gates)
        registry = registry_of(gates.release)
        return expand_plugins(profile, list(registry), registry.implements)
    except ConfigError as error:
        start = f"initializing profiles: creating profile for scheduler name {name}"
        raise ConfigError(f"{start}: {error}") from error


def _make_fit(profile: Profile, gates: FeatureGates) -> None:
    """Raise when NodeResourcesFit would reject its arguments."""
    args = profile.plugin_config.get("NodeResourcesFit")
    if "NodeResourcesFit" not in profile.plugins.names():
        return
    assert isinstance(args, NodeResourcesFitArgs), "arguments of a known plugin are typed"
    problems = Problems()
    validate_args(args, "", problems, gates)
    file = encode_struct(args)
    texts = [
        text.removeprefix(".")
        for problem in problems
        for text in upstream_texts(problem, file, gates.release)
    ]
    if texts:
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        raise ConfigError(f'initializing plugin "NodeResourcesFit": {text}')


def _profile_record(profile: Profile, expanded: ExpandedPlugins) -> Record:
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {
            POINT_NAMES[point]: [
                {"name": ref.name, "weight": ref.weight} if ref.weight else {"name": ref.name}
                for ref in refs
            ]
            for point, refs in expanded.items()
        },
        "pluginConfig": {
            name: encode_args(name, args)
            for name, args in profile.plugin_config.items()
            if name in profile.plugins.names() and name in REGISTRY
        },
    }
