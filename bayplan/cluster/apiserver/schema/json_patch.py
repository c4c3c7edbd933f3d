"""JSON patch: RFC 6902. Returns a changed copy and does not modify the object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any


class PatchError(Exception):
    """An invalid patch; `is_conflict` when a `test` in it failed or its target does not exist."""

    def __init__(self, message: str, is_unprocessable: bool = False) -> None:
        super().__init__(message)
        self.is_unprocessable = is_unprocessable


def json_patch(target: Any, operations: Any) -> Any:
    """`target` after all operations of a JSON patch; raises PatchError."""
    if not isinstance(operations, list):
        raise PatchError("expected a list of operations")
    document = deepcopy(target)
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise PatchError("expected each operation to be an object")
        run = _OPERATIONS.get(str(operation.get("op")))
        if run is None:
            raise PatchError(f"Unexpected kind: {operation.get('op')}")
        document = run(document, operation)
    return document


def _add(document: Any, operation: Mapping[str, Any]) -> Any:
    return _put(document, _steps(operation, "path"), deepcopy(_value(operation)))


def _remove(document: Any, operation: Mapping[str, Any]) -> Any:
    steps = _steps(operation, "path")
    if not steps:
        raise PatchError("the whole document cannot be removed")
    parent = _find(document, steps[:-1])
    key = _key(parent, steps[-1], may_be_new=False)
    if isinstance(parent, dict) and key not in parent:
        raise _absent(steps)
    del parent[key]
    return document


def _replace(document: Any, operation: Mapping[str, Any]) -> Any:
    steps = _steps(operation, "path")
    if not steps:
        return deepcopy(_value(operation))
    _find(document, steps)
    parent = _find(document, steps[:-1])
    parent[_key(parent, steps[-1], may_be_new=False)] = deepcopy(_value(operation))
    return document


def _move(document: Any, operation: Mapping[str, Any]) -> Any:
    source = _steps(operation, "from")
    value = _find(document, source)
    document = _remove(document, {"path": operation.get("from")})
    return _put(document, _steps(operation, "path"), value)


def _copy(document: Any, operation: Mapping[str, Any]) -> Any:
    value = deepcopy(_find(document, _steps(operation, "from")))
    return _put(document, _steps(operation, "path"), value)


def _test(document: Any, operation: Mapping[str, Any]) -> Any:
    steps, wanted = _steps(operation, "path"), operation.get("value")
    try:
        found = _find(document, steps)
    except PatchError:
        if wanted is None:
            return document
        raise
    if found != wanted or isinstance(found, bool) is not isinstance(wanted, bool):
        raise PatchError(f"testing value {operation.get('path')} failed", is_unprocessable=True)
    return document


_OPERATIONS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError(f"operation {operation.get('op')} has no value")
    return operation["value"]


def _steps(operation: Mapping[str, Any], name: str) -> list[str]:
    """The steps of a JSON pointer."""
    pointer = operation.get(name)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f'expected a JSON pointer as "{name}"; got {pointer!r}')
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _find(document: Any, steps: list[str]) -> Any:
    found = document
    for step in steps:
        key = _key(found, step, may_be_new=False)
        if isinstance(found, dict) and key not in found:
            raise _absent(steps)
        found = found[key]
    return found


def _put(document: Any, steps: list[str], value: Any) -> Any:
    if not steps:
        return value
    parent = _find(document, steps[:-1])
    key = _key(parent, steps[-1], may_be_new=True)
    if isinstance(parent, list):
        parent.insert(key, value)
    else:
        parent[key] = value
    return document


def _key(parent: Any, step: str, may_be_new: bool) -> Any:
    """The key or index of a step within `parent`."""
    if isinstance(parent, dict):
        return step
    if not isinstance(parent, list):
        raise PatchError(f"nothing can be found at {step!r} of a plain value", True)
    if step == "-" and may_be_new:
        return len(parent)
    if not step.isdecimal() or int(step) >= len(parent) + may_be_new:
        raise PatchError(f"no element {step!r} in a list of {len(parent)}", True)
    return int(step)


def _absent(steps: list[str]) -> PatchError:
    return PatchError(f"nothing is at /{'/'.join(steps)}", is_unprocessable=True)
