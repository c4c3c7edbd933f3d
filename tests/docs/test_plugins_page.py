"""docs/plugins.md names the parts for plugin authors: every column of the node table, every extension point."""

import re
from pathlib import Path

from bayplan.framework import NodeInfo
from bayplan.framework.interface import EXTENSION_POINTS
from bayplan.table import NodeTable

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
NOT_FOR_PLUGINS = {
    # Internals of the columns and of caches.
    *("size", "live_column", "unschedulable_column", "pod_count_column", "max_pods_column"),
    *("row_changes", "node_changes", "order_changes", "namespaces_version"),
    *("amounts", "amounts_at", "offered", "followed", "count_amounts"),
}


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def words_in_code(text: str) -> set[str]:
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


def public(obj: object) -> set[str]:
    return {name for name in dir(obj) if not name.startswith("_")}


def test_every_column_of_the_node_table_is_named() -> None:
    missing = public(NodeTable()) - NOT_FOR_PLUGINS - words_in_code(section("The node table"))

    assert missing == set()


def test_every_column_that_is_named_exists() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", section("The node table"), re.M)
    named = {re.match(r"\w+", code)[0] for row in rows for code in re.findall(r"`([^`]+)`", row)}  # type: ignore[index]

    assert named - {"len"} - public(NodeTable()) == set()
    assert len(named) > 20


def test_everything_of_one_node_is_named() -> None:
    assert public(NodeInfo) - {"row", "table"} <= words_in_code(section("The node table"))


def test_every_extension_point_is_named_with_its_class() -> None:
    life = section("Its life")

    for point, base in EXTENSION_POINTS.items():
        camel = re.sub(r"_(\w)", lambda found: found[1].upper(), point)
        assert f"\n| {camel} | `{base.__name__}` |" in life
