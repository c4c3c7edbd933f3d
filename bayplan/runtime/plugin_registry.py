"""Plugin registry: plugin classes by name. A class that cannot work is refused here, not at its first pod.

Mirrors pkg/scheduler/framework/runtime/registry.go.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from ..errors import PluginError
from ..framework import (
    CustomResource,
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    QueueSortPlugin,
    ScorePlugin,
)
from ..framework.interface import EXTENSION_POINTS, Scope
from ..releases.release import DEFAULT_RELEASE
from .plugin_failures import PACKAGE, exception_text, last_line_in, place_of_line

ENTRY_POINT_GROUP = "bayplan.plugins"
EITHER = (
    (FilterPlugin, "filter_rows", "filter_node"),
    (ScorePlugin, "score_rows", "score_node"),
    (QueueSortPlugin, "sort_key", "less"),
)

FORMER_DECLARATIONS = {
    "normalizes_by_bounds": "`normalize` is tried on sample scores",
    "may_block": "make the method `async def` if it does not block",
    "acts_on_placements": "PostFilter is called for every member",
    "quorum": "Permit is called for every member",
}
"""Attributes of plugins that were read in earlier versions, and the present ones."""


class Registry:
    """The plugins a configuration can name, without the pairs of plugin and extension point in `missing_points`."""

    def __init__(
        self,
        plugins: Iterable[type[Plugin]] = (),
        missing_points: Collection[tuple[str, str]] = DEFAULT_RELEASE.missing_points,
    ) -> None:
        self._classes: dict[str, type[Plugin]] = {}
        self._missing_points = missing_points
        self._sources: dict[str, str] = {}
        for plugin in plugins:
            self.register(plugin, "in-tree")

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __contains__(self, name: str) -> bool:
        return name in self._classes

    def __len__(self) -> int:
        return len(self._classes)

    def get(self, name: str) -> type[Plugin]:
        """The class of plugin `name`."""
        return self._classes[name]

    def source(self, name: str) -> str:
        """Origin of plugin `name`: `in-tree`, a file, or a package."""
        return self._sources[name]

    def implements(self, name: str, point: str) -> bool:
        """Whether plugin `name` takes part in the extension point, e.g. `pre_filter`."""
        base = EXTENSION_POINTS.get(point)
        if base is None or (name, point) in self._missing_points:
            return False
        return name in self._classes and issubclass(self.get(name), base)

    def register(self, plugin: type[Plugin], source: str = "code") -> None:
        """Add a plugin class; raises PluginError when it cannot work. A class may be given again, as by its package."""
        check_plugin(plugin)
        if self._classes.get(plugin.name, plugin) is not plugin:
            raise PluginError(f"a plugin named {plugin.name} already exists")
        self._classes[plugin.name] = plugin
        self._sources[plugin.name] = source

    def load_entry_points(self) -> None:
        """Add the plugins that installed packages offer."""
        from importlib.metadata import entry_points  # slow to import

        for entry in entry_points(group=ENTRY_POINT_GROUP):
            source = entry.dist.name if entry.dist else entry.value
            try:
                plugin = entry.load()
            except (Exception, SystemExit) as error:
                reason = _import_reason(error)
                raise PluginError(
                    f"{source}: plugin {entry.name} ({entry.value}) cannot be loaded: {reason}"
                ) from error
            if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
                raise PluginError(f"{source}: {entry.value} is not a Plugin class")
            self.register(plugin, source)

    def load_file(self, path: str) -> list[str]:
        """Add the plugins defined in a Python file or an installed module (`package.module`); returns their names."""
        module = _import_module(path) if names_module(path) else _import_file(Path(path))
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, Plugin)
            and value.__module__ == module.__name__
            and value.name
        ]
        if not found:
            raise PluginError(f"{path}: expected at least one Plugin class with a name; got none")
        for plugin in found:
            try:
                self.register(plugin, path)
            except PluginError as error:
                raise PluginError(f"{path}: {error}") from error
        return [plugin.name for plugin in found]


def _import_reason(error: BaseException) -> str:
    """The error, with the last line of the package's code that was reached."""
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        is_own = not file.startswith((PACKAGE, "<")) and "importlib" not in file
        place = place_of_line(file, line) if is_own else place
    return f"{place}: {exception_text(error)}" if place else exception_text(error)


def check_plugin(plugin: type[Plugin]) -> None:
    """Raise PluginError unless `plugin` has a name, an extension point and the methods of that point."""
    if not plugin.name:
        raise PluginError(f"{plugin.__qualname__}: expected a class attribute `name`; got none")
    name: Any = plugin.name
    if not isinstance(name, str):
        raise PluginError(f"{plugin.__qualname__}: name: expected a string; got {name!r}")
    scope: Any = plugin.scope
    if not isinstance(scope, Scope):
        raise PluginError(f"{name}: scope: expected a Scope; got {scope!r}")
    points = [base for base in EXTENSION_POINTS.values() if issubclass(plugin, base)]
    if not points:
        raise PluginError(f"{plugin.name}: expected an extension point as base class; got none")
    for base in (
        *points,
        *((PreFilterExtensions,) if issubclass(plugin, PreFilterExtensions) else ()),
    ):
        for method in vars(base):
            if getattr(getattr(plugin, method, None), "__isabstractmethod__", False):
                raise PluginError(f"{plugin.name}: expected a method `{method}`; got none")
    for base, rows, node in EITHER:
        if not issubclass(plugin, base):
            continue
        if getattr(plugin, rows) is getattr(base, rows) and getattr(plugin, node) is getattr(
            base, node
        ):
            raise PluginError(f"{plugin.name}: expected a method `{rows}` or `{node}`; got neither")
    for former, instead in FORMER_DECLARATIONS.items():
        if hasattr(plugin, former):
            text = f"{plugin.name}: `{former}` has no effect any more: {instead}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
    _check_custom_resources(plugin)


def _check_custom_resources(plugin: type[Plugin]) -> None:
    for i, resource in enumerate(plugin.custom_resources):
        where = f"{plugin.name}: custom_resources[{i}]"
        if not isinstance(resource, CustomResource):
            raise PluginError(f"{where}: expected a CustomResource; got {resource!r}")
        if problem := resource.problem():
            raise PluginError(f"{where}: {problem}")


def names_module(path: str) -> bool:
    """Whether it is the name of a module in a package rather than of a file."""
    parts = path.split(".")
    is_dotted = len(parts) > 1 and all(part.isidentifier() for part in parts)
    return is_dotted and parts[-1] != "py" and not Path(path).exists()


def module_source(name: str) -> Path:
    """The file of an installed module; raises PluginError when there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{name}: cannot be imported: {_import_reason(error)}") from error
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise PluginError(f"{name}: expected an installed module with a file; got none")
    return Path(spec.origin)


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{name}: cannot be imported: {_import_reason(error)}") from error


def _import_file(path: Path) -> ModuleType:
    name = f"bayplan_plugins_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise PluginError(
            f"{path}: expected a Python file; got {'a folder' if path.is_dir() else 'none'}"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginError(import_fault(str(path), str(spec.origin), error)) from error
    return module


def import_fault(path: str, origin: str, error: BaseException) -> str:
    """File and line where the import of the plugin file `path` failed, and the error."""
    if isinstance(error, SyntaxError) and error.filename == origin:
        return f"{path}:{error.lineno}: {type(error).__name__}: {error.msg}"
    line = last_line_in(origin, error.__traceback__)
    where = path if line is None else f"{path}:{line}"
    return f"{where}: {exception_text(error)}"
