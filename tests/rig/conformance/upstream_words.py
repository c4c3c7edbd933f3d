"""kube-scheduler's words for a fault of a configuration, from its place and our expectation.

Mirrors pkg/scheduler/apis/config/validation/{validation,validation_pluginargs}.go. A fault without a
rule here is an error, so that a new one is not compared as equal.
"""

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from bayplan.api.text.name_faults import key_faults, value_faults
from bayplan.config.gates import BINDING_GATES
from bayplan.config.problems import Problem
from bayplan.releases.release import Release


class ProblemKind(Enum):
    """Type of a mistake; from INVALID on, those that validation finds."""

    SYNTAX = "syntax"
    VERSION = "version"
    UNKNOWN_FIELD = "unknown field"
    DUPLICATE_FIELD = "duplicate field"
    TYPE = "type"
    VALUE = "value"
    INVALID = "invalid"
    REQUIRED = "required"
    DUPLICATE = "duplicate"
    UNSUPPORTED = "unsupported"
    FORBIDDEN = "forbidden"


RANGE = "not in valid range"
GATE_OFF = "feature gate is disabled"
KIND_WORDS = {
    ProblemKind.INVALID: "Invalid value",
    ProblemKind.REQUIRED: "Required value",
    ProblemKind.DUPLICATE: "Duplicate value",
    ProblemKind.UNSUPPORTED: "Unsupported value",
    ProblemKind.FORBIDDEN: "Forbidden",
}
VALUELESS = {ProblemKind.REQUIRED, ProblemKind.FORBIDDEN}

# The kinds by our expectation, the end of the path, and the value; the first that fits.
_KINDS: list[tuple[str, str, str, ProblemKind]] = [
    (".*", ".*", "an unknown field", ProblemKind.UNKNOWN_FIELD),
    ("the field once", ".*", ".*", ProblemKind.DUPLICATE_FIELD),
    (".*", "", ".*", ProblemKind.SYNTAX),
    ("a mapping", r".*\.args", ".*", ProblemKind.SYNTAX),
    (".*", r"(.*\.)?(kind|apiVersion)", ".*", ProblemKind.VERSION),
    ("a duration up to .*", ".*", ".*", ProblemKind.VALUE),
    ("a duration such as .*|a text in base64", ".*", '".*|nothing', ProblemKind.VALUE),
    ("a duration such as .*|a text in base64", ".*", ".*", ProblemKind.TYPE),
    ("a mapping|a list|true or false|a text|a number", ".*", ".*", ProblemKind.TYPE),
    ("a whole number( from .*)?", ".*", ".*", ProblemKind.TYPE),
    ("nothing while .*", r".*\.shape", ".*", ProblemKind.INVALID),
    ("nothing .*|nothing, .*", ".*", ".*", ProblemKind.FORBIDDEN),
    (
        "each (resource|plugin) once|each pair .*|a name no other .*",
        ".*",
        ".*",
        ProblemKind.DUPLICATE,
    ),
    ("a name|at least one (profile|point)|a shape for type .*", ".*", ".*", ProblemKind.REQUIRED),
    (
        ".*",
        r".*defaultConstraints\[\d+\]\.(topologyKey|whenUnsatisfiable)",
        "nothing",
        ProblemKind.REQUIRED,
    ),
    (
        ".* or .*",
        r".*\.(operator|type|defaultingType|whenUnsatisfiable)",
        ".*",
        ProblemKind.UNSUPPORTED,
    ),
]

# The details by our expectation and, where several faults have the same, by the end of the path.
# Groups of the expectation may be used.
_DETAILS: list[tuple[str, str, str]] = [
    ("a percentage from 0 to 100", "percentageOfNodesToScore", f"{RANGE} [0-100]"),
    ("a percentage from 0 to 100", "minCandidateNodesPercentage", f"{RANGE} [0, 100]"),
    ("a number not below 0", "minCandidateNodesAbsolute", f"{RANGE} [0, inf)"),
    ("a number not below 0", "burst", "must be non-negative"),
    (
        "a number not below 0",
        "bindTimeoutSeconds",
        "invalid BindTimeoutSeconds, should not be a negative value",
    ),
    (r"more than 0 when (\w+) is 0", "", r"cannot be zero at the same time as \1"),
    ("a weight from 0 to 100", "", f"{RANGE} [0, 100]"),
    (
        "at least one value for operator .*",
        "",
        "for 'in', 'notin' operators, values set can't be empty",
    ),
    ("no value for operator .*", "", "values set must be empty for exists and does not exist"),
    ("one value for operator .*", "", "for 'Gt', 'Lt' operators, exactly one value is required"),
    (
        "a whole number for operator .*",
        "",
        "for 'Gt', 'Lt' operators, the value must be an integer",
    ),
    ("one value", "", "must have one element"),
    ("a shape for type (.*)", "", r"must be specified when type is \1"),
    ("nothing unless type is (.*)", "", r"must be nil when type is not \1"),
    ("at least one point", "", "at least one point must be specified"),
    (
        "a utilization above that of the point before, .*",
        "",
        "values must be sorted in increasing order",
    ),
    ("a utilization from 0 to 100", "", f"{RANGE} [0, 100]"),
    ("a score from 0 to 10", "", f"{RANGE} [0, 10]"),
    ("1", "weight", "must be 1"),
    ("List when there are defaultConstraints", "", "when .defaultConstraints are not empty"),
    ("a number above 0", "maxSkew", f"{RANGE} (0, inf)"),
    ("a number above 0", "parallelism", "should be an integer value greater than zero"),
    ("a number above 0", "podInitialBackoffSeconds", "must be greater than 0"),
    (
        "nothing, since each pod brings its own selector",
        "",
        "constraint must not define a selector, as they deduced for each pod",
    ),
    # kube-scheduler writes the name of the first gate like this.
    ("nothing while .*", "filterTimeout", f"DRASchedulingFilterTimeout {GATE_OFF}"),
    ("nothing while .*", "bindingTimeout", f"{' or '.join(BINDING_GATES)} {GATE_OFF}"),
    (
        "nothing while .*",
        "shape",
        "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
    ),
    ("a duration not below 0s", "", "must be zero or positive"),
    ("a duration of at least 1s", "", "must be at least 1 second"),
    ("a duration above 0s", "", "must be greater than zero"),
    ("a duration above renewDeadline, .*", "", "must be greater than `RenewDeadline`"),
    ("leases", "", 'resourceLock value must be "leases"'),
    (
        "a number not below podInitialBackoffSeconds, .*",
        "",
        "must be greater than or equal to PodInitialBackoffSeconds",
    ),
    (
        "a plugin that still exists",
        "",
        'was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
    ),
    ("one queue sort plugin", "", "only one queue sort plugin can be enabled"),
    ("the same as in .*", "", "must be the same for all profiles"),
    ("the same args for .*", "", "queueSort must be the same for all profiles"),
    ("a weight above 0, .*", "", "must have a positive weight applied to it"),
    ("a resource no extender manages already", "", "duplicate extender managed resource name"),
    ("at most one extender with a bindVerb", "", "only one extender can implement bind"),
]
_IN_1_33 = {
    "values must be sorted in increasing order": "utilization values must be sorted in increasing order",
    "must be the same for all profiles": "queueSort must be the same for all profiles",
}
# Faults of which kube-scheduler writes another value than the one found, by our expectation.
_VALUES: list[tuple[str, str]] = [
    (r"a duration above renewDeadline, which is (.*)", r"\1"),  # the wrong one of the two values
    ("at most one extender with a bindVerb", r"found \g<got> extenders implementing bind"),
]


class UpstreamError(NamedTuple):
    """The detail and the value of an error of kube-scheduler; None for an error without a value."""

    detail: str
    bad_value: str | None


def kind_of(problem: Problem) -> ProblemKind:
    """The kind of a fault; INVALID if no other."""
    for expected, path, got, kind in _KINDS:
        texts = ((expected, problem.expected), (path, problem.path), (got, problem.got))
        if all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in texts):
            return kind
    return ProblemKind.INVALID


def upstream_errors(problem: Problem, file: Any, release: Release) -> list[UpstreamError]:
    """The errors that kube-scheduler makes of a fault of `file`, plain data."""
    value = None if kind_of(problem) in VALUELESS else _bad_value(problem)
    return [UpstreamError(detail, value) for detail in _details(problem, file, release)]


def upstream_texts(problem: Problem, file: Any, release: Release) -> Iterator[str]:
    """The upstream errors as texts."""
    for detail, value in upstream_errors(problem, file, release):
        parts = (problem.path, KIND_WORDS[kind_of(problem)], value, detail)
        yield ": ".join(part for part in parts if part)


def _details(problem: Problem, file: Any, release: Release) -> tuple[str, ...]:
    expected, kind = problem.expected, kind_of(problem)
    if kind is ProblemKind.DUPLICATE:
        return ("",)
    if kind is ProblemKind.UNSUPPORTED:
        choices = re.split(", | or ", expected)
        return ("supported values: " + ", ".join(f'"{choice}"' for choice in choices),)
    if kind is ProblemKind.REQUIRED and "defaultConstraints" in problem.path:
        return ("can not be empty",)
    if kind is ProblemKind.REQUIRED and expected in ("a name", "at least one profile"):
        return ("",)
    if expected == "a weight from 1 to 100":
        name = _at(file, problem.path.removesuffix(".weight")).get("name", "")
        return (f"resource weight of {name} {RANGE} (0, 100]",)
    if (faults := _name_details(problem)) is not None:
        return faults
    for pattern, end, detail in _DETAILS:
        if problem.path.endswith(end) and (found := re.fullmatch(pattern, expected)):
            detail = found.expand(detail)
            return (_IN_1_33.get(detail, detail) if release.version == "1.33" else detail,)
    raise AssertionError(f"kube-scheduler's words are missing: {problem}")


def _name_details(problem: Problem) -> tuple[str, ...] | None:
    """The faults of a name or a label; None for a fault of another kind."""
    value = "" if problem.got == "nothing" else problem.got.strip('"')
    if problem.expected == "a label value":
        return ("; ".join(value_faults(value)),)
    if problem.expected.startswith("a label key"):
        faults = key_faults(value)
        return faults if "defaultConstraints" in problem.path else ("; ".join(faults),)
    if problem.expected.startswith("a resource group"):
        slash = ("resource group name can't contain '/'",) if "/" in value else ()
        return slash + key_faults(value)
    if problem.expected.startswith("a resource name"):
        return key_faults(value)
    if problem.expected.startswith("an extended resource"):
        return key_faults(value) or ("is an invalid extended resource name",)
    return None


def _bad_value(problem: Problem) -> str:
    """The value in JSON; `{}` where kube-scheduler writes a structure."""
    got = problem.got
    if problem.expected.startswith("each pair of"):
        return json.dumps(f"{{{json.loads(got)}}}")
    if problem.expected.startswith(("a name no other", "the same")) or got.startswith(
        ("a list of", "a mapping", "an empty")
    ):
        return "{}"
    for pattern, text in _VALUES:
        if found := re.fullmatch(pattern, problem.expected):
            return json.dumps(found.expand(text.replace(r"\g<got>", got.split()[0])))
    if got == "nothing":
        return '""'
    try:
        json.loads(got)
    except ValueError:  # a text without quotes, such as a duration
        return json.dumps(got, ensure_ascii=False)
    return got


def _at(file: Any, path: str) -> Mapping[str, Any]:
    """The mapping at this path of `file`; an empty one where a default stands."""
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        try:
            file = file[name] if name else file[int(index)]
        except (KeyError, IndexError, TypeError):
            return {}
    return file if isinstance(file, Mapping) else {}
