"""Mutations: the objects of the corpus, changed at random places."""

from __future__ import annotations

import copy
import gzip
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml
from hypothesis import strategies as st

from .material import CORPUS

Tree = Any
Path = tuple[Any, ...]
EXTREMES: tuple[Any, ...] = (
    None,
    "",
    " ",
    "y",
    "-1",
    "1e309",
    "9" * 30,
    "10E999",
    "0.0000000001n",
    "2000-13-45T99:00:00Z",
    "\x00",
    "ü/ß:*",
    "x" * 300,
    0,
    -1,
    2**31,
    2**63,
    -(2**70),
    1.5,
    float("1e300"),
    True,
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"name": None},
    [{}],
)
KINDS = ("drop", "blank", "extreme", "duplicate", "swap", "wrap")


@cache
def corpus_trees() -> tuple[Tree, ...]:
    """Every object of the corpus: manifests first, then those of the dump."""
    trees: list[Tree] = []
    for name in ("nodes.yaml", "platform.yaml", "shop.yaml"):
        trees += yaml.load_all((CORPUS / name).read_text(), yaml.CSafeLoader)
    dump = gzip.decompress((CORPUS / "dump.yaml.gz").read_bytes())
    return (*trees, *yaml.load(dump, yaml.CSafeLoader)["items"])


def paths_in(tree: Tree, at: Path = ()) -> Iterator[Path]:
    """The paths of all values below the root."""
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in items:
        yield (*at, key)
        yield from paths_in(value, (*at, key))


def mutate(tree: Tree, place: float, kind: str, value: Any) -> None:
    """Change the tree at one of its paths, chosen by `place` from 0 to 1."""
    paths = list(paths_in(tree))
    if not paths:
        return
    *way, last = paths[min(int(place * len(paths)), len(paths) - 1)]
    parent = tree
    for key in way:
        parent = parent[key]
    match kind:
        case "drop":
            del parent[last]
        case "blank":
            parent[last] = type(parent[last])() if parent[last] is not None else ""
        case "extreme":
            parent[last] = copy.deepcopy(value)
        case "duplicate" if isinstance(parent, list):
            parent.insert(last, copy.deepcopy(parent[last]))
        case "duplicate":
            parent[f"{last}Copy"] = copy.deepcopy(parent[last])
        case "swap":
            parent[last] = str(parent[last]) if isinstance(parent[last], int) else [parent[last]]
        case "wrap":
            parent[last] = {str(last): parent[last]}


CHANGES = st.tuples(
    st.floats(0, 1, exclude_max=True), st.sampled_from(KINDS), st.sampled_from(EXTREMES)
)


@st.composite
def mutated_inputs(draw: st.DrawFn) -> list[Tree]:
    """Two nodes and a few other objects of the corpus, of which some are changed."""
    trees = corpus_trees()
    others = st.integers(0, len(trees) - 1)
    chosen = [1, 2, *draw(st.lists(others, min_size=1, max_size=6, unique=True))]
    found = [copy.deepcopy(trees[index]) for index in chosen]
    for tree in found:
        for place, kind, value in draw(st.lists(CHANGES, max_size=3)):
            mutate(tree, place, kind, value)
    return found
