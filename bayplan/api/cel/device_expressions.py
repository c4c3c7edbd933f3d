"""Device expressions: device selector expressions, compiled once per text.

Mirrors staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go and, of the functions that
Kubernetes adds to the language, `quantity` and `semver`
(staging/src/k8s.io/apiserver/pkg/cel/library). The language itself, its checker and its string,
optional and binding extensions are those of cel-expr-python. That library has only CEL's own value
types: a quantity or a version is a map with one entry, and equal ones are equal maps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from ...errors import InputError
from ..devices import Device, DeviceAttribute
from ..text.quantity import NANO, parse_quantity
from ..text.semver import Semver, parse_semver

MISSING = "expressions in CEL need the package cel-expr-python; install bayplan[dra]"
QUANTITY, SEMVER = "@quantity", "@semver"
MAX_INT64 = 2**63 - 1
MAX_VALUES = 48
"""Limit on the values of all attributes of a device."""
_DOMAINS = re.compile(r"device\s*\.\s*(?:attributes|capacity)\b")
_LITERAL = r"""(?:"[^"\\]*"|'[^'\\]*')"""
_ONE = rf"device\.(?:attributes|capacity)\[{_LITERAL}\]"
_FIELD = re.compile(rf"{_ONE}(?:\.\??[A-Za-z_]\w*\b(?!\s*\()|\[\??{_LITERAL}\])")
_DOMAIN = re.compile(rf"{_ONE}(?!\s*[.\[])")
_IN = re.compile(rf"{_LITERAL}\s+in\s+$")
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_NO_KEY = re.compile(r'Key not found in map : "(?P<key>.*)"$', re.DOTALL)
_NO_OVERLOAD = re.compile(r"No matching overloads found : (?P<function>[^(]+)\(")


class CelError(InputError):
    """An expression that cannot be compiled, or fails on a device."""


class Expression:
    """A compiled expression that accepts or rejects a device."""

    __slots__ = ("_compiled", "names", "text")

    def __init__(self, text: str, has_sharing: bool = True, has_lists: bool = True) -> None:
        self.text = text
        self.names = names_in(text)
        try:
            self._compiled = _environment(has_sharing, has_lists).compile(text)
        except RuntimeError as error:
            raise CelError(first_line(error)) from None
        kind = self._compiled.return_type().name()
        if kind not in ("BOOL", "DYN"):
            raise CelError(f"must evaluate to bool or the unknown type, not {kind.lower()}")

    def matches(self, seen: SeenDevice) -> bool:
        """Whether the expression selects the device; raises CelError when evaluation fails."""
        data = seen.data
        while True:
            try:
                answer = self._compiled.eval(data=data)
            except RuntimeError as error:  # a budget is used up
                raise CelError(first_line(error)) from None
            kind = answer.type().name()
            if kind == "BOOL":
                return bool(answer.value())
            if kind != "ERROR":
                raise CelError(f"result of type {kind.lower()} could not be converted to bool")
            problem = first_line(answer.value())
            wider = _with_domain(data, problem)
            if wider is None:
                raise CelError(_in_words_of_go(problem))
            data = wider


def _in_words_of_go(problem: str) -> str:
    """The problem as the library of kube-scheduler words it, where that is known."""
    if match := _NO_KEY.search(problem):
        return f"no such key: {match['key']}"
    if match := _NO_OVERLOAD.search(problem):
        return f"no such overload: {match['function']}"
    return problem


def names_in(text: str) -> frozenset[str] | None:
    """The attributes and capacities, without their domains, that the expression can read; None means any.

    It can read attributes that it does not name only through a whole domain, or through computed names.
    """
    if "+" in text:
        return None
    for match in _DOMAINS.finditer(text):
        is_name_test = _IN.search(text, 0, match.start()) and _DOMAIN.match(text, match.start())
        if not (_FIELD.match(text, match.start()) or is_name_test):
            return None
    return frozenset(_WORD.findall(text))


class SeenDevice:
    """A device in the form that expressions read."""

    __slots__ = ("data",)

    def __init__(self, device: Device, driver: str) -> None:
        attributes: dict[str, dict[str, Any]] = {}
        for name, attribute in (device.attributes or {}).items():
            domain, _, local = name.rpartition("/")
            attributes.setdefault(domain or driver, {})[local] = _attribute(name, attribute)
        capacity: dict[str, dict[str, Any]] = {}
        for name, amount in (device.capacity or {}).items():
            domain, _, local = name.rpartition("/")
            capacity.setdefault(domain or driver, {})[local] = _quantity(
                parse_quantity(amount.value)
            )
        self.data: dict[str, Any] = {
            "device.driver": driver,
            "device.allowMultipleAllocations": bool(device.allow_multiple_allocations),
            "device.attributes": attributes,
            "device.capacity": capacity,
        }


@lru_cache(maxsize=4096)
def compile_expression(text: str, has_sharing: bool = True, has_lists: bool = True) -> Expression:
    """Compile the expression; raises CelError when it is invalid.

    Without `has_sharing` there is no `device.allowMultipleAllocations`, without `has_lists` no function `includes`.
    """
    return Expression(text, has_sharing, has_lists)


def _attribute(name: str, attribute: DeviceAttribute) -> Any:
    for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
        if values is not None:
            return list(values)
    if attribute.version_values is not None:
        return [_parsed_version(name, version) for version in attribute.version_values]
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    return _parsed_version(name, attribute.version_value)


def _parsed_version(name: str, text: str) -> dict[str, Any]:
    try:
        return _semver(parse_semver(text))
    except ValueError as error:
        raise CelError(f"attribute {name}: parse semantic version: {error}") from None


def _with_domain(data: Mapping[str, Any], problem: str) -> dict[str, Any] | None:
    """`data` with an empty map for the domain that `problem` misses; None when it misses something else.

    A domain without entries on a device is empty, not unknown.
    """
    match = _NO_KEY.search(problem)
    attributes, capacity = data["device.attributes"], data["device.capacity"]
    if match is None or (match["key"] in attributes and match["key"] in capacity):
        return None
    missing: dict[str, dict[str, Any]] = {match["key"]: {}}
    return {
        **data,
        "device.attributes": missing | attributes,
        "device.capacity": missing | capacity,
    }


def first_line(error: object) -> str:
    """The first line of the library's message, without its leading code."""
    text = str(error).partition("\n")[0]
    for prefix in ("INVALID_ARGUMENT: ", "NOT_FOUND: ", "UNKNOWN: ", "OUT_OF_RANGE: ", "ERROR: "):
        text = text.removeprefix(prefix)
    return text.removesuffix(" [INVALID_ARGUMENT]")


# Quantities and versions


def _quantity(nano: int) -> dict[str, str]:
    return {QUANTITY: str(nano)}


def _nano(value: Any) -> int:
    return int(value[QUANTITY])


def _semver(version: Semver) -> dict[str, Any]:
    return {SEMVER: [version.major, version.minor, version.patch, [list(p) for p in version.pre]]}


def _version(value: Any) -> Any:
    return value[SEMVER]


def _comparable(first: Any, second: Any) -> tuple[Any, Any]:
    """Both operands of a comparison; raises TypeError when their types differ."""
    for tag, read in ((QUANTITY, _nano), (SEMVER, _version)):
        if isinstance(first, dict) and isinstance(second, dict) and tag in first and tag in second:
            return read(first), read(second)
    raise TypeError("no such overload")


def _compare(first: Any, second: Any) -> int:
    one, other = _comparable(first, second)
    return int(one > other) - int(one < other)


def _as_integer(value: Any) -> int:
    whole, rest = divmod(_nano(value), NANO)
    if rest or abs(whole) > MAX_INT64:
        raise ValueError("cannot convert value to integer")
    return whole


def _is_integer(value: Any) -> bool:
    whole, rest = divmod(_nano(value), NANO)
    return not rest and abs(whole) <= MAX_INT64


def _operand(value: Any) -> int:
    """An operand of add or sub: a quantity or a whole number."""
    return value * NANO if isinstance(value, int) else _nano(value)


def is_parsed(parse: Callable[..., object], *given: Any) -> bool:
    """Whether the function accepts the arguments, and raises no ValueError."""
    try:
        parse(*given)
    except ValueError:
        return False
    return True


def _sign(value: Any) -> int:
    nano = _nano(value)
    return (nano > 0) - (nano < 0)


def _includes(values: Any, value: Any) -> bool:
    """Whether a list has the value, or something else is it. Unlike in Python, true is not 1."""
    members = values if isinstance(values, list) else [values]
    if len(members) > MAX_VALUES:
        text = f"cannot be applied to lists longer than {MAX_VALUES} values"
        raise ValueError(f"'includes' function {text}")
    return any(
        member == value and isinstance(member, bool) == isinstance(value, bool)
        for member in members
    )


@lru_cache(maxsize=4)
def _environment(has_sharing: bool, has_lists: bool) -> Any:
    """The variables of expressions; raises CelError when the library is not installed."""
    try:
        from cel_expr_python import cel  # an optional extra: most clusters have no devices
        from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings
    except ImportError:
        raise CelError(MISSING) from None
    kind = cel.Type
    domains = kind.Map(kind.STRING, kind.Map(kind.STRING, kind.DYN))
    variables = {
        "device.driver": kind.STRING,
        "device.attributes": domains,
        "device.capacity": domains,
    }
    if has_sharing:
        variables["device.allowMultipleAllocations"] = kind.BOOL
    functions = quantity_functions(cel)
    if has_lists:
        functions.append(("includes", kind.BOOL, [kind.DYN, kind.DYN], True, _includes))
    return cel.NewEnv(
        variables=variables,
        extensions=[
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
            cel.CelExtension("kubernetes", declared(cel, functions)),
        ],
    )


Function = tuple[str, Any, list[Any], bool, Any]
"""A name, the types of the result and of the arguments, whether it is a method, and its implementation."""


def quantity_functions(cel: Any) -> list[Function]:
    """The functions about quantities and versions that Kubernetes adds to the language."""
    kind = cel.Type
    text, dyn, yes, number = kind.STRING, kind.DYN, kind.BOOL, kind.INT
    return [
        ("quantity", dyn, [text], False, lambda given: _quantity(parse_quantity(given))),
        ("isQuantity", yes, [text], False, partial(is_parsed, parse_quantity)),
        ("semver", dyn, [text], False, lambda given: _semver(parse_semver(given))),
        ("semver", dyn, [text, yes], False, lambda given, fix: _semver(parse_semver(given, fix))),
        ("isSemver", yes, [text], False, partial(is_parsed, parse_semver)),
        ("isSemver", yes, [text, yes], False, partial(is_parsed, parse_semver)),
        ("compareTo", number, [dyn, dyn], True, _compare),
        ("isGreaterThan", yes, [dyn, dyn], True, lambda one, other: _compare(one, other) > 0),
        ("isLessThan", yes, [dyn, dyn], True, lambda one, other: _compare(one, other) < 0),
        ("sign", number, [dyn], True, _sign),
        ("add", dyn, [dyn, dyn], True, lambda q, more: _quantity(_nano(q) + _operand(more))),
        ("sub", dyn, [dyn, dyn], True, lambda q, less: _quantity(_nano(q) - _operand(less))),
        ("isInteger", yes, [dyn], True, _is_integer),
        ("asInteger", number, [dyn], True, _as_integer),
        ("asApproximateFloat", kind.DOUBLE, [dyn], True, lambda q: _nano(q) / NANO),
        ("major", number, [dyn], True, lambda v: _version(v)[0]),
        ("minor", number, [dyn], True, lambda v: _version(v)[1]),
        ("patch", number, [dyn], True, lambda v: _version(v)[2]),
    ]


def declared(cel: Any, functions: list[Function]) -> list[Any]:
    """The functions in the library's form."""
    by_name: dict[str, list[Any]] = {}
    for name, result, given, is_member, function in functions:
        turn = len(by_name.setdefault(name, []))
        made = cel.Overload(f"kubernetes_{name}_{turn}", result, given, is_member, function)
        by_name[name].append(made)
    return [cel.FunctionDecl(name, made) for name, made in by_name.items()]
