"""Strategic merge patch: a merge patch that merges lists by key; and kubectl's apply, which makes such patches.

Mirrors k8s.io/apimachinery/pkg/util/strategicpatch: `$patch: delete|replace|merge`,
`$deleteFromPrimitiveList/x`, `$setElementOrder/x`, `$retainKeys`. Fields missing from the table of
fields are merged as in a plain merge patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .fields import FIELDS, Field, FieldType

DIRECTIVE, RETAIN = "$patch", "$retainKeys"
DELETE_FROM, ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"

Object = dict[str, Any]


class PatchError(Exception):
    """An invalid patch; `is_unprocessable` when a `test` in it failed or its target does not exist."""

    def __init__(self, message: str, is_unprocessable: bool = False) -> None:
        super().__init__(message)
        self.is_unprocessable = is_unprocessable


def applied(current: Object, given: Object, last: Object, type_name: str) -> Object:
    """`current` after kubectl apply of `given`: fields and entries that `last` had and `given` has not are removed.

    `last` is the manifest that was applied before; empty without one. For a type that is not in the table of fields
    lists are replaced, as for custom resources.
    """
    merged = _merge_map(current, _with_kept_keys(given, type_name), type_name)
    return _without_former(merged, given, last, type_name)


def _with_kept_keys(given: Mapping[str, Any], type_name: str) -> Object:
    """`given` with the directive of structs of which only one part can be set, such as the source of a volume."""
    fields, marked = FIELDS.of(type_name), dict(given)
    for name, value in given.items():
        field = fields.get(name)
        if field is None:
            continue
        struct = _struct_of(field)
        item = field.type.item if field.merge_key else None
        if isinstance(value, Mapping) and struct:
            marked[name] = _marked(value, struct, field.retains_keys)
        elif isinstance(value, list) and item is not None:
            marked[name] = [
                _marked(one, item.name, field.retains_keys) if isinstance(one, Mapping) else one
                for one in value
            ]
    return marked


def _marked(value: Mapping[str, Any], type_name: str, retains_keys: bool) -> Object:
    marked = _with_kept_keys(value, type_name)
    return {**marked, RETAIN: list(value)} if retains_keys else marked


def _without_former(merged: Object, given: Any, last: Any, type_name: str) -> Object:
    """`merged` without fields that only `last` has."""
    fields = FIELDS.of(type_name)
    for name, former in last.items():
        if name not in given:
            merged.pop(name, None)
        elif isinstance(former, Mapping) and isinstance(given[name], Mapping):
            kind = _struct_of(fields.get(name))
            merged[name] = _without_former(merged[name], given[name], former, kind)
        elif isinstance(former, list) and isinstance(given[name], list) and name in fields:
            _drop_former(merged[name], given[name], former, fields[name])
    return merged


def _drop_former(merged: list[Any], given: list[Any], former: list[Any], field: Field) -> None:
    """Remove entries that only `former` has from a list that is merged by key, and fields of the others."""
    key = field.merge_key
    if key is None:
        return
    if not key:
        merged[:] = [item for item in merged if item in given or item not in former]
        return
    kept, known = {one.get(key): one for one in given}, {one.get(key): one for one in former}
    merged[:] = [item for item in merged if item[key] in kept or item[key] not in known]
    for item in merged:
        if item[key] in kept and item[key] in known:
            item_type = field.type.item.name if field.type.item else ""
            _without_former(item, kept[item[key]], known[item[key]], item_type)


def strategic_merge(target: Object, patch: Any, type_name: str) -> Object:
    """Apply the patch to `target`, of the type; returns a copy."""
    if not isinstance(patch, Mapping):
        raise PatchError("expected the patch to be an object")
    return _merge_map(target, patch, type_name)


def _merge_map(target: Any, patch: Mapping[str, Any], type_name: str) -> Object:
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"Unknown patch type found: {directive}")
    merged: Object = dict(target) if isinstance(target, Mapping) else {}
    if RETAIN in patch:
        kept = set(patch[RETAIN] or ())
        merged = {key: value for key, value in merged.items() if key in kept}
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            name = key.removeprefix(DELETE_FROM)
            gone = value or ()
            merged[name] = [item for item in merged.get(name) or () if item not in gone]
    fields = FIELDS.of(type_name)
    for key, value in patch.items():
        if key in (DIRECTIVE, RETAIN) or key.startswith((DELETE_FROM, ORDER)):
            continue
        if value is None:
            merged.pop(key, None)
        else:
            order = patch.get(ORDER + key)
            merged[key] = _merge_value(merged.get(key), value, fields.get(key), order)
    _only_order(merged, patch, fields)
    return merged


def _only_order(merged: Object, patch: Mapping[str, Any], fields: Mapping[str, Field]) -> None:
    """Sort lists for which the patch gives only the order."""
    for key, order in patch.items():
        name = key.removeprefix(ORDER)
        if key.startswith(ORDER) and name not in patch and isinstance(merged.get(name), list):
            field = fields.get(name)
            merged[name] = _ordered(merged[name], order, field.merge_key or "" if field else "")


def _merge_value(target: Any, value: Any, field: Field | None, order: Any) -> Any:
    if isinstance(value, Mapping):
        return _merge_map(target, value, _struct_of(field))
    if not isinstance(value, list) or field is None or field.merge_key is None:
        return _without_directives(value)
    items = target if isinstance(target, list) else []
    if field.merge_key == "":
        merged = [*items, *(item for item in value if item not in items)]
    else:
        merged = _merge_list(items, value, field)
    return _ordered(merged, order, field.merge_key)


def _merge_list(items: list[Any], changes: list[Any], field: Field) -> list[Any]:
    """The items with the changes of those that have the same key."""
    key = field.merge_key
    assert key
    item_type = field.type.item.name if field.type.item else ""
    if any(
        isinstance(change, Mapping) and change.get(DIRECTIVE) == "replace" for change in changes
    ):
        return [c for c in changes if not (isinstance(c, Mapping) and DIRECTIVE in c)]
    merged = list(items)
    for change in changes:
        if not isinstance(change, Mapping) or key not in change:
            raise PatchError(f"map: {change!r} does not contain declared merge key: {key}")
        places = [
            i
            for i, item in enumerate(merged)
            if isinstance(item, Mapping) and item.get(key) == change[key]
        ]
        if change.get(DIRECTIVE) == "delete":
            merged = [item for i, item in enumerate(merged) if i not in places]
        elif places:
            merged[places[0]] = _merge_map(merged[places[0]], change, item_type)
        else:
            merged.append(_merge_map({}, change, item_type))
    return merged


def _ordered(items: list[Any], order: Any, key: str) -> list[Any]:
    """The items in the order of the patch; those it does not name stay behind their neighbour."""
    if not isinstance(order, list) or not order:
        return items
    wanted = [entry.get(key) if isinstance(entry, Mapping) else entry for entry in order]
    names = [item.get(key) if isinstance(item, Mapping) else item for item in items]
    ranks, last = [], -1.0
    for name in names:
        last = float(wanted.index(name)) if name in wanted else last + 1e-6
        ranks.append(last)
    return [item for _, _, item in sorted(zip(ranks, range(len(items)), items, strict=True))]


def _struct_of(field: Field | None) -> str:
    """The type of the fields of a map; "" when its keys are free."""
    kind: FieldType | None = field.type if field is not None else None
    return kind.name if kind is not None and kind.form == "struct" else ""


def _without_directives(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_directives(v) for v in value]
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if key != DIRECTIVE}
    return value
