"""Bayplan: the Kubernetes scheduler as a Python library.

Contents: the version, and the front for notebooks and scripts:

    from bayplan import Cluster, simulate, explain, compare

The folders below hold everything else; start with `bayplan.scheduler` to run one and with `bayplan.framework` to
extend one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .notebook import (
        Add,
        AddNodes,
        AddTaint,
        Cluster,
        Cordon,
        Delete,
        Drain,
        Patch,
        RemoveTaint,
        Resize,
        Scale,
        Uncordon,
        Upgrade,
        capacity,
        compare,
        explain,
        plan,
        plot,
        rebalance,
        replay,
        simulate,
        sweep,
        what_if,
    )

__version__ = "0.2.0"
__all__ = [
    "Add",
    "AddNodes",
    "AddTaint",
    "Cluster",
    "Cordon",
    "Delete",
    "Drain",
    "Patch",
    "RemoveTaint",
    "Resize",
    "Scale",
    "Uncordon",
    "Upgrade",
    "capacity",
    "compare",
    "explain",
    "plan",
    "plot",
    "rebalance",
    "replay",
    "simulate",
    "sweep",
    "what_if",
]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that importing one folder does not load all of them."""
    if name in __all__:
        from . import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module 'bayplan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
