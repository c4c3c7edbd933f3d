"""PortColumns: host ports in use, as counts per row of each (protocol, port, ip).

Mirrors HostPortInfo of staging/src/k8s.io/kube-scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..api.pod import HostPort
from .columns import Bools, Column, Rows, Size

ANY_IP = "0.0.0.0"  # the wildcard of hostIP, not an address to bind to


class PortColumns:
    """How many pods of each row use a host port, by ip."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._users: dict[tuple[str, int], dict[str, Column]] = {}

    def add(self, row: int, ports: Iterable[HostPort], sign: int = 1) -> None:
        """Count `ports` at `row` (writer only)."""
        for port in ports:
            by_ip = self._users.setdefault((port.protocol, port.port), {})
            if port.ip not in by_ip:
                by_ip[port.ip] = Column(self._size)
            by_ip[port.ip].data[row] += sign

    def conflicts(self, ports: Iterable[HostPort], rows: Rows) -> Bools:
        """bool per row of `rows`: some pod there holds one of `ports`; 0.0.0.0 clashes with every ip."""
        conflict = np.zeros(self._size.rows, dtype=np.bool_)[rows]
        for port in ports:
            for ip, users in self._users.get((port.protocol, port.port), {}).items():
                if ANY_IP in (port.ip, ip) or port.ip == ip:
                    conflict |= users.view[rows] > 0
        return conflict

    def fork(self, size: Size, row: int) -> PortColumns:
        """The ports of one row, copied."""
        copy = PortColumns(size)
        copy._users = {
            key: {ip: column.fork(size, row) for ip, column in by_ip.items()}
            for key, by_ip in self._users.items()
        }
        return copy
