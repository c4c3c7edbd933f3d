"""Policies: plugins that ship with Bayplan and are no part of kube-scheduler; see docs/policies.md.

Contents: a score by the mix of resources (`alignment.py`); placement policies for shares of GPUs, one module
each, and the account of which pod has which GPU (`ledger.py`). May import what plugins may import, and nothing of the
core imports this folder: installed as entry points, the plugins are there for configurations that name them.
"""

from .alignment import NodeResourcesAlignment
from .best_fit import GpuBestFit
from .clustering import GpuClustering
from .dot_product import GpuDotProduct
from .fgd import FGD
from .gpu_share import GpuPolicy, GpuShare, GpuSharing
from .ledger import GpuLedger
from .packing import GpuPacking
from .random_fit import GpuRandom

__all__ = [
    "FGD",
    "GpuBestFit",
    "GpuClustering",
    "GpuDotProduct",
    "GpuLedger",
    "GpuPacking",
    "GpuPolicy",
    "GpuRandom",
    "GpuShare",
    "GpuSharing",
    "NodeResourcesAlignment",
]
