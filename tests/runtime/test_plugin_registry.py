"""The registry: accepted plugins, and the reasons for refusing others."""

import importlib.metadata
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.errors import PluginError
from bayplan.framework import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PreBindPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
)
from bayplan.plugins.in_tree import IN_TREE
from bayplan.runtime import Registry
from bayplan.runtime.plugin_registry import check_plugin


class ByNode(FilterPlugin):
    name = "ByNode"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class ByRows(ScorePlugin):
    name = "ByRows"

    def score_rows(self, state: CycleState, pod: Pod, table: Any, rows: Any) -> Any:
        raise NotImplementedError


class Nameless(FilterPlugin):
    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class Pointless(Plugin):
    name = "Pointless"


class Undecided(FilterPlugin):
    name = "Undecided"


class Scoreless(ByNode, ScorePlugin):
    name = "Scoreless"


class NeverUnreserves(ReservePlugin):
    name = "NeverUnreserves"

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS


class HalfTold(PreFilterPlugin, PreFilterExtensions):
    name = "HalfTold"

    def pre_filter(self, state: CycleState, pod: Pod, table: Any) -> Status:
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class AlsoByNode(ByNode):
    name = "ByNode"


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        pytest.param(
            Nameless, "Nameless: expected a class attribute `name`; got none", id="no name"
        ),
        pytest.param(
            Pointless,
            "Pointless: expected an extension point as base class; got none",
            id="no extension point",
        ),
        pytest.param(
            Undecided,
            "Undecided: expected a method `filter_rows` or `filter_node`; got neither",
            id="a filter that judges nothing",
        ),
        pytest.param(
            Scoreless,
            "Scoreless: expected a method `score_rows` or `score_node`; got neither",
            id="a score that scores nothing",
        ),
        pytest.param(
            NeverUnreserves,
            "NeverUnreserves: expected a method `unreserve`; got none",
            id="a missing method",
        ),
        pytest.param(
            HalfTold,
            "HalfTold: expected a method `remove_pod`; got none",
            id="a missing method of the extensions",
        ),
        pytest.param(AlsoByNode, "a plugin named ByNode already exists", id="a name that is taken"),
    ],
)
def test_a_bad_plugin_is_refused_with_the_reason(plugin: type[Plugin], text: str) -> None:
    known = Registry([ByNode])

    with pytest.raises(PluginError) as refusal:
        known.register(plugin)

    assert str(refusal.value) == text
    assert list(known) == ["ByNode"]


@pytest.mark.parametrize("plugin", [ByNode, ByRows])
def test_either_way_of_judging_is_enough(plugin: type[Plugin]) -> None:
    known = Registry([plugin])

    assert known.get(plugin.name) is plugin


def test_implements_goes_by_the_base_classes() -> None:
    known = Registry([ByNode])

    assert known.implements("ByNode", "filter")
    assert not known.implements("ByNode", "score")
    assert not known.implements("ByNode", "no_such_point")
    assert not known.implements("Unknown", "filter")


def test_in_tree_plugins_are_all_fine() -> None:
    known = Registry(IN_TREE)

    assert len(known) == len(IN_TREE)
    assert known.source("NodeName") == "in-tree"


FILE = """
from bayplan.framework import SUCCESS, FilterPlugin

class Base(FilterPlugin):
    def filter_node(self, state, pod, node):
        return SUCCESS

class First(Base):
    name = "First"

class Second(Base):
    name = "Second"
"""


def test_load_file_takes_the_named_classes_defined_there(tmp_path: Path) -> None:
    file = tmp_path / "policy.py"
    file.write_text(FILE)
    known = Registry()

    assert known.load_file(str(file)) == ["First", "Second"]
    assert list(known) == ["First", "Second"]
    assert known.source("First") == str(file)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param(
            "from bayplan.plugins.node_name import NodeName",
            "{}: expected at least one Plugin class with a name; got none",
            id="imported classes do not count",
        ),
        pytest.param("1 / 0", "{}:1: ZeroDivisionError: division by zero", id="it raises"),
        pytest.param("def", "{}:1: SyntaxError: ", id="it is no Python"),
        pytest.param(
            FILE.replace('"Second"', '"First"'),
            "{}: a plugin named First already exists",
            id="two of one name",
        ),
        pytest.param(
            FILE.replace('(Base):\n    name = "Second"', '(FilterPlugin):\n    name = "Second"'),
            "{}: Second: expected a method `filter_rows` or `filter_node`; got neither",
            id="a bad plugin",
        ),
    ],
)
def test_load_file_names_the_file_and_the_fault(tmp_path: Path, source: str, text: str) -> None:
    file = tmp_path / "policy.py"
    file.write_text(source)

    with pytest.raises(PluginError) as refusal:
        Registry().load_file(str(file))

    assert str(refusal.value).startswith(text.format(file))
    assert "\n" not in str(refusal.value)


def test_load_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="expected a Python file; got none"):
        Registry().load_file(str(tmp_path / "nothing.py"))
    with pytest.raises(PluginError, match="expected a Python file; got"):
        Registry().load_file(str(tmp_path))


def test_installed_module_is_named_with_dots() -> None:
    known = Registry()

    assert known.load_file("bayplan.policies.fgd") == ["FGD"]
    assert known.source("FGD") == "bayplan.policies.fgd"
    assert known.load_file("bayplan.policies.fgd") == ["FGD"]  # the same class again


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "bayplan.policies.nothing",
            "bayplan.policies.nothing: cannot be imported: ModuleNotFoundError",
            id="a module that is not there",
        ),
        pytest.param(
            "bayplan.policies",
            "bayplan.policies: expected at least one Plugin class with a name; got none",
            id="a package that only imports plugins",
        ),
        pytest.param("nothing", "nothing: expected a Python file; got none", id="without a dot"),
    ],
)
def test_module_that_has_no_plugins(name: str, text: str) -> None:
    with pytest.raises(PluginError) as refusal:
        Registry().load_file(name)

    assert str(refusal.value).startswith(text)


class Entry:
    """An entry point of an installed package."""

    def __init__(self, found: Any) -> None:
        self.name, self.value = "mine", "package.module:Class"
        self.dist = SimpleNamespace(name="a-package")
        self._found = found

    def load(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def offer(monkeypatch: pytest.MonkeyPatch, *found: Any) -> list[str]:
    asked: list[str] = []

    def entry_points(group: str) -> list[Entry]:
        asked.append(group)
        return [Entry(one) for one in found]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return asked


def test_entry_points_of_the_group_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, known = offer(monkeypatch, ByNode, ByRows), Registry()

    known.load_entry_points()

    assert asked == ["bayplan.plugins"]
    assert list(known) == ["ByNode", "ByRows"]
    assert known.source("ByRows") == "a-package"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param(
            ImportError("no module named gpu"),
            "a-package: plugin mine (package.module:Class) cannot be loaded: "
            "tests/runtime/test_plugin_registry.py:LINE: ImportError: no module named gpu",
            id="it cannot be imported",
        ),
        pytest.param(
            "text", "a-package: package.module:Class is not a Plugin class", id="not a class"
        ),
        pytest.param(
            dict, "a-package: package.module:Class is not a Plugin class", id="not a plugin"
        ),
    ],
)
def test_a_bad_entry_point_names_its_package(
    monkeypatch: pytest.MonkeyPatch, found: Any, text: str
) -> None:
    offer(monkeypatch, found)

    with pytest.raises(PluginError) as refusal:
        Registry().load_entry_points()

    assert re.sub(r":\d+:", ":LINE:", str(refusal.value)) == text


def test_a_declaration_that_is_no_longer_read_is_named() -> None:
    class Blocks(PreBindPlugin):
        name = "Blocks"
        may_block = False

        def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return SUCCESS

    with pytest.warns(DeprecationWarning, match="Blocks: `may_block` has no effect any more"):
        check_plugin(Blocks)
