"""JSON patch: RFC 6902. Returns a changed copy and does not modify the object.

The limits on operations and copied bytes are those of kube-apiserver; the size of a copy is that of its JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from ...api.schema.strategic import PatchError

MAX_OPERATIONS = 10_000
MAX_COPIED = 3 << 20
"""Bytes that all copies of a patch may have together."""


class TooLargePatchError(PatchError):
    """A patch with too many operations."""


def json_patch(target: Any, operations: Any) -> Any:
    """`target` after all operations of a JSON patch; raises PatchError."""
    if not isinstance(operations, list):
        raise PatchError("expected a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise TooLargePatchError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    try:
        document = _patched(deepcopy(target), operations)
        is_too_deep = is_deeper(document, MAX_STORED_DEPTH)
    except RecursionError:
        is_too_deep = True
    if is_too_deep:
        problem = f"expected an object of at most {MAX_STORED_DEPTH} levels"
        raise PatchError(problem, is_unprocessable=True)
    return document


def _patched(document: Any, operations: list[Any]) -> Any:
    copied = 0
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise PatchError("expected each operation to be an object")
        kind = operation.get("op")
        run = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if run is None:
            raise PatchError(f"Unexpected kind: {kind}")
        if run is _copy:
            copied += len(msgspec.json.encode(_find(document, _steps(operation, "from"))))
            if copied > MAX_COPIED:
                problem = f"the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
                raise PatchError(f"Unable to complete the copy, {problem}", is_unprocessable=True)
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


MAX_DEPTH = 200
"""Levels of the body of a request."""
MAX_STORED_DEPTH = MAX_DEPTH + 10
"""Limit on the levels of an object, including those of its managedFields."""


def is_deeper(tree: Any, levels: int) -> bool:
    """Whether lists and objects are nested more deeply than that."""
    below = [tree] if isinstance(tree, dict | list) else []
    for _ in range(levels):
        if not below:
            return False
        below = [
            item
            for holder in below
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
    return bool(below)
