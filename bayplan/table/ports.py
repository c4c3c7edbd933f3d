"""PortColumns: host ports in use, as a set of (protocol, port, ip) per row.

As in kube-scheduler, a port that several pods hold is in the set once, so removing one of these pods frees it.

Mirrors HostPortInfo of staging/src/k8s.io/kube-scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..api.pod import HostPort
from .columns import Bools, Column, Rows, Size

ANY_IP = "0.0.0.0"  # the wildcard of hostIP, not an address to bind to


class PortColumns:
    """Whether a host port of each row is taken, by ip."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._taken: dict[tuple[str, int], dict[str, Column]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Take `ports` at `row` (writer only); returns whether one of them was free."""
        return self._set(row, ports, True)

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Free `ports` at `row`, also where another pod holds them (writer only)."""
        self._set(row, ports, False)

    def taken_at(self, row: int) -> list[Column]:
        """Ports taken at `row`, for `restore`."""
        columns = (column for by_ip in self._taken.values() for column in by_ip.values())
        return [column for column in columns if column.data[row]]

    def restore(self, row: int, taken: list[Column]) -> None:
        """Restore the taken ports of `row` (writer only)."""
        for by_ip in self._taken.values():
            for column in by_ip.values():
                column.data[row] = False
        for column in taken:
            column.data[row] = True

    def _set(self, row: int, ports: Iterable[HostPort], is_taken: bool) -> bool:
        changed = False
        for port in ports:
            by_ip = self._taken.setdefault((port.protocol, port.port), {})
            if port.ip not in by_ip:
                by_ip[port.ip] = Column(self._size, np.bool_, False)
            taken = by_ip[port.ip].data
            changed = changed or bool(taken[row]) != is_taken
            taken[row] = is_taken
        return changed

    def conflicts(self, ports: Iterable[HostPort], rows: Rows) -> Bools:
        """bool per row of `rows`: some pod there holds one of `ports`; 0.0.0.0 clashes with every ip."""
        conflict = np.zeros(self._size.rows, dtype=np.bool_)[rows]
        for port in ports:
            for ip, taken in self._taken.get((port.protocol, port.port), {}).items():
                if ANY_IP in (port.ip, ip) or port.ip == ip:
                    conflict |= taken.view[rows]
        return conflict

    def fork(self, size: Size, row: int) -> PortColumns:
        """The ports of one row, copied."""
        copy = PortColumns(size)
        copy._taken = {
            key: {ip: column.fork(size, row) for ip, column in by_ip.items()}
            for key, by_ip in self._taken.items()
        }
        return copy
