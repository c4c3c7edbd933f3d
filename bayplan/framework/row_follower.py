"""RowFollower: which rows to look at again, because they or the pods nominated to them changed."""

from __future__ import annotations

from ..table import ChangeLog, NodeTable
from .handle import Nominator


class RowFollower:
    """Up to where one reader has followed some logs of a table, and a nominator."""

    __slots__ = ("_logs", "_nominations", "_nominator", "_table", "_versions")

    def __init__(self, table: NodeTable, nominator: Nominator, *logs: ChangeLog) -> None:
        self._table = table
        self._nominator = nominator
        self._logs = logs
        self._versions: list[int] | None = None
        self._nominations = -1

    @property
    def is_up_to_date(self) -> bool:
        """Whether nothing changed."""
        now = [log.version for log in self._logs]
        return self._versions == now and self._nominations == self._nominator.version

    def changed(self) -> list[int] | None:
        """The rows to look at again, in no order; None: too many to go through them, or not known."""
        versions, table, nominator = self._versions, self._table, self._nominator
        if versions is None:
            return None
        found: list[int] = []
        for log, version in zip(self._logs, versions, strict=True):
            if log.version != version:
                rows = log.since(version)
                if rows is None:
                    return None
                found = rows if not found else list({*found, *rows})
        if nominator.version != self._nominations:
            names = nominator.changed_since(self._nominations)
            if names is None:
                return None
            known = (table.row_of.get(name) for name in names)
            found = list({*found, *(row for row in known if row is not None)})
        return None if 4 * len(found) > len(table) else found

    def forget(self) -> None:
        """Nothing is known any more."""
        self._versions = None

    def note(self) -> None:
        """All changes up to now were seen to."""
        self._versions = [log.version for log in self._logs]
        self._nominations = self._nominator.version
