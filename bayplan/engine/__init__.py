"""Engine: decides where a pod goes, from one array per class of pods that follows the changes of the table.

What lives here: the plan of a class (which plugins take part, and how), the view of a class (a value per row), the part
of it that depends on node objects alone, and the budget of memory for views. May import `runtime` (which runs plugins)
and what is below it. The decision is the one that `runtime` makes plugin by plugin, the reference, which is used where
the engine does not apply. The scheduler calls `Engine.decide`.
"""

from .class_plan import ClassPlan
from .class_view import ClassView
from .describing import Judging, describe_judging
from .engine import Decision, Engine, Fillings

__all__ = [
    "ClassPlan",
    "ClassView",
    "Decision",
    "Engine",
    "Fillings",
    "Judging",
    "describe_judging",
]
