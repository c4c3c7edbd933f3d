"""Devices in the place of extended resources, as NodeResourcesFit sees them.

Mirrors shouldDelegateResourceToDRA of pkg/scheduler/framework/plugins/noderesources/fit.go and
calculateDRAResourceTotals of resource_allocation.go there.
"""

from __future__ import annotations

import numpy as np

from ...api.dra import DeviceClass
from ...framework.devices import Devices, Offer, Selection
from ...table import Ints, NodeTable, Rows


class DeviceTotals:
    """How many devices of a class a node has, and how many of them are in use."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def of_rows(self, device_class: DeviceClass, table: NodeTable, rows: Rows) -> tuple[Ints, Ints]:
        """Two int64 per row: the devices there are, and those in use."""
        names = [table.names[row] for row in table.numbers(rows)]
        totals = [self.of_node(device_class, name) for name in names]
        found = np.array(totals, dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def of_node(self, device_class: DeviceClass, node_name: str) -> tuple[int, int]:
        """The same for one node. Whether pools are complete makes no difference here."""
        devices = self._devices
        selection = devices.classes.selection(device_class)
        offers = [
            offer
            for offer in devices.inventory.reached(devices.table.row_of[node_name])
            if _is_picked(selection, offer)
        ]
        return len(offers), sum(offer.id in devices.allocated for offer in offers)


def _is_picked(selection: Selection, offer: Offer) -> bool:
    return selection.judge(offer) is True
