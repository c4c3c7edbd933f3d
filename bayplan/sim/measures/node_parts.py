"""Node parts: what is free of the parts of nodes, such as each GPU, by the account of the plugins that assign them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from ...errors import PluginError
from ...table import Ints, NodeTable

FreeParts: TypeAlias = Mapping[str, Ints]
"""By resource: int64 per node and part."""


class PartsAccount(Protocol):
    """A plugin, as far as parts of nodes are concerned."""

    name: ClassVar[str]

    def free_parts(self, table: NodeTable) -> FreeParts:
        """The free amounts by resource, with a line per row of the table."""


def free_parts(
    plugins: Iterable[PartsAccount], table: NodeTable, nodes: Sequence[str]
) -> dict[str, Ints]:
    """The free amounts of the nodes of these names; of several plugins that have a resource, those of the first.

    Raises PluginError when a plugin fails.
    """
    found: dict[str, Ints] = {}
    rows: Ints | None = None
    for plugin in plugins:
        try:
            given = plugin.free_parts(table)
        except Exception as error:
            raise PluginError(
                f"{plugin.name}: free_parts: {type(error).__name__}: {error}"
            ) from error
        for resource, parts in given.items():
            if np.ndim(parts) != 2 or len(parts) < len(table.live):
                raise PluginError(
                    f"{plugin.name}: free_parts: {resource}: expected an array with a line per row of the table and "
                    f"a column per part; got one of shape {np.shape(parts)}"
                )
            if rows is None:
                rows = np.array([table.row_of[name] for name in nodes], dtype=np.int64)
            found.setdefault(resource, np.asarray(parts)[rows])
    return found
