"""Bayplan: the Kubernetes scheduler as a Python library.

Contents: the version, and the front for notebooks and scripts:

    from bayplan import Cluster, simulate, explain, compare

The folders below hold everything else; start with `bayplan.scheduler` to run one and with `bayplan.framework` to
extend one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers.what_if import (
        Add,
        AddNodes,
        AddTaint,
        Cordon,
        Delete,
        Drain,
        Patch,
        RemoveTaint,
        Resize,
        Scale,
        Uncordon,
        Upgrade,
    )
    from .notebook.cluster import Cluster
    from .notebook.pictures import plot
    from .notebook.questions import (
        capacity,
        compare,
        explain,
        plan,
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
        for home in (
            "notebook.questions",
            "notebook.cluster",
            "notebook.pictures",
            "answers.what_if",
        ):
            found = getattr(import_module(f"bayplan.{home}"), name, None)
            if found is not None:
                return found
    raise AttributeError(f"module 'bayplan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
