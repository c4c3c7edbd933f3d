"""Kubeconfig: the cluster and the user that the current context of a kubeconfig names.

Mirrors k8s.io/client-go/tools/clientcmd: of several files the first that has an entry counts, and a
path is relative to the file that has it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, os_errors_named
from ..yaml_tree import RepeatedKey, YamlError, iter_trees


class Section:
    """The settings of a cluster or of a user. `path` names it in messages."""

    def __init__(self, settings: Mapping[str, Any], path: str, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self.path = path

    def __contains__(self, name: str) -> bool:
        return self._settings.get(name) is not None

    def text(self, name: str) -> str | None:
        """A text; None if it is absent or empty."""
        value = self._settings.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a string", type(value).__name__)
        return value or None

    def flag(self, name: str) -> bool:
        """True or false; false if it is absent."""
        value = self._settings.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false", repr(value))
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty if it is absent."""
        value = self._settings.get(name) or []
        if not isinstance(value, list):
            raise self.wrong(name, "a list", type(value).__name__)
        return [str(item) for item in value]

    def trees(self, name: str) -> list[Mapping[str, Any]]:
        """A list of objects; empty if it is absent."""
        value = self._settings.get(name) or []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.wrong(name, "a list of objects", type(value).__name__)
        return value

    def part(self, name: str) -> Section:
        """An object within this one."""
        value = self._settings.get(name)
        if not isinstance(value, Mapping):
            raise self.wrong(name, "an object", type(value).__name__)
        return Section(value, f"{self.path}.{name}", self._folder)

    def file(self, name: str) -> bytes | None:
        """The content of the file that a setting names; None if it names none."""
        value = self.text(name)
        if value is None:
            return None
        file = self._folder / Path(value).expanduser()
        try:
            return file.read_bytes()
        except OSError as error:
            raise self.wrong(name, "a file that can be read", f"{file}: {error.strerror}") from None

    def data(self, name: str) -> bytes | None:
        """The data of `<name>-data` in base64, or else of the file that `name` names."""
        encoded = self.text(f"{name}-data")
        if encoded is None:
            return self.file(name)
        try:
            return base64.b64decode(encoded)
        except (binascii.Error, ValueError) as error:
            raise self.wrong(f"{name}-data", "base64", str(error)) from None

    def wrong(self, name: str, expected: str, got: str) -> InputError:
        """The error for a setting that is not as expected."""
        return InputError(f"{self.path}.{name}: expected {expected}; got {got}")


class Kubeconfig(NamedTuple):
    """The cluster and the identity of a context."""

    context: str
    namespace: str
    """Empty if the context has none."""
    cluster: Section
    user: Section


def read_kubeconfig(files: Iterable[Path], source: str, context: str | None = None) -> Kubeconfig:
    """Read `files`, those that exist, as one; `source` names them in messages.

    Raises InputError when they are invalid.
    """
    trees = [(file, _read(file)) for file in files if file.exists()]
    name = context or next(filter(None, (_text(tree, "current-context") for _, tree in trees)), "")
    if not name:
        raise InputError(f"{source}: current-context: expected the name of a context; got none")
    chosen, path, _ = _find(trees, source, "context", name)
    cluster = _find(trees, source, "cluster", _text(chosen, "cluster"))
    user_name = _text(chosen, "user")
    anonymous: tuple[Mapping[str, Any], str, Path] = ({}, f"{path}.user", Path())
    user = _find(trees, source, "user", user_name) if user_name else anonymous
    return Kubeconfig(name, _text(chosen, "namespace"), Section(*cluster), Section(*user))


def _ignore(repeated: RepeatedKey) -> None:
    """Of equal keys the last counts, as for kubectl."""


def _read(file: Path) -> Mapping[str, Any]:
    try:
        with os_errors_named(file, "a file that can be read"):
            tree = next(iter_trees(file.read_bytes(), _ignore), None)
    except YamlError as error:
        raise InputError(f"{file}: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        raise InputError(
            f"{file}: expected clusters, users and contexts as kubectl writes them; "
            f"got {type(tree).__name__}"
        )
    return tree


def _find(
    trees: list[tuple[Path, Mapping[str, Any]]], source: str, kind: str, name: str
) -> tuple[Mapping[str, Any], str, Path]:
    """The first entry of that name in `clusters`, `contexts` or `users`, its path and its folder."""
    for file, tree in trees:
        for i, entry in enumerate(tree.get(f"{kind}s") or ()):
            if isinstance(entry, Mapping) and entry.get("name") == name:
                path = f"{file}: {kind}s[{i}].{kind}"
                found = entry.get(kind) or {}
                if not isinstance(found, Mapping):
                    raise InputError(f"{path}: expected an object; got {type(found).__name__}")
                return found, path, file.absolute().parent
    raise InputError(f'{source}: {kind}s: expected one with name "{name}"; got none')


def _text(tree: Mapping[str, Any], name: str) -> str:
    value = tree.get(name)
    return value if isinstance(value, str) else ""
