"""Vary: put values into a scheduler's configuration, by paths.

`args.PLUGIN.FIELD` is an argument of a plugin, `weight.PLUGIN` its weight, both in every profile; any other path
is a field of the configuration, such as `podMaxBackoffSeconds` or `profiles[0].percentageOfNodesToScore`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from itertools import pairwise
from typing import Any

from ..config.files import API_VERSION, KIND
from ..errors import InputError

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_PATH = re.compile(r"[^.\[\]]+(?:\[\d+\])*(?:\.[^.\[\]]+(?:\[\d+\])*)*")
Steps = list[str | int]


def varied(tree: Mapping[str, Any] | None, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """A copy of the configuration with these values by path; raises InputError for a path that leads nowhere."""
    if not values:
        return None if tree is None else deepcopy(dict(tree))
    changed = (
        deepcopy(dict(tree)) if tree is not None else {"apiVersion": API_VERSION, "kind": KIND}
    )
    for path, value in values.items():
        _set(changed, path, value)
    return changed


def _set(tree: dict[str, Any], path: str, value: Any) -> None:
    if not _PATH.fullmatch(path):
        raise InputError(f'{path}: expected a path such as args.PLUGIN.FIELD; got "{path}"')
    steps: Steps = [name or int(number) for name, number in _STEP.findall(path)]
    match steps:
        case ["args", str(plugin), str(_), *_]:
            for profile in _profiles(tree, path):
                entry = _named(profile, "pluginConfig", plugin, path)
                _put(entry.setdefault("args", {}), steps[2:], value, path)
        case ["weight", str(plugin)]:
            for profile in _profiles(tree, path):
                _weigh(profile, plugin, value, path)
        case ["args" | "weight", *_]:
            raise InputError(f"{path}: expected args.PLUGIN.FIELD or weight.PLUGIN")
        case _:
            _put(tree, steps, value, path)


def _profiles(tree: dict[str, Any], path: str) -> list[dict[str, Any]]:
    profiles = tree.setdefault("profiles", [{}])
    if not isinstance(profiles, list) or not all(isinstance(each, dict) for each in profiles):
        raise InputError(f"{path}: expected a configuration with a list of profiles")
    return profiles


def _named(parent: dict[str, Any], field: str, name: str, path: str) -> dict[str, Any]:
    """The entry of this name in a list, which is added where there is none."""
    entries = parent.setdefault(field, [])
    if not isinstance(entries, list):
        raise InputError(f"{path}: expected {field} to be a list")
    for entry in entries:
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry
    entries.append({"name": name})
    added: dict[str, Any] = entries[-1]
    return added


def _weigh(profile: dict[str, Any], plugin: str, value: Any, path: str) -> None:
    """Set the weight where the plugin is enabled for scoring, otherwise at multiPoint."""
    plugins = profile.setdefault("plugins", {})
    if not isinstance(plugins, dict):
        raise InputError(f"{path}: expected plugins to be an object")
    score = plugins.get("score")
    enabled = score.get("enabled") if isinstance(score, dict) else None
    listed = {each.get("name") for each in enabled or () if isinstance(each, dict)}
    point = "score" if plugin in listed else "multiPoint"
    where = plugins.setdefault(point, {})
    if not isinstance(where, dict):
        raise InputError(f"{path}: expected plugins.{point} to be an object")
    _named(where, "enabled", plugin, path)["weight"] = value


def _put(tree: Any, steps: Steps, value: Any, path: str) -> None:
    """Set a field below `tree`; objects on the way that are missing are made."""
    for step, following in pairwise(steps):
        if isinstance(step, str):
            if not isinstance(tree, dict):
                raise InputError(f"{path}: expected an object above {step}")
            tree = tree.setdefault(step, [{}] if isinstance(following, int) else {})
        else:
            tree = _item(tree, step, path)
    last = steps[-1]
    if isinstance(last, int):
        _item(tree, last, path)
    elif not isinstance(tree, dict):
        raise InputError(f"{path}: expected an object above {last}")
    tree[last] = value


def _item(tree: Any, number: int, path: str) -> Any:
    if not isinstance(tree, list) or number >= len(tree):
        raise InputError(f"{path}: expected a list with more than {number} entries")
    return tree[number]
