"""The contract between the scheduler and its plugins: everything a plugin author imports.

Lives here: extension points, statuses, verdicts, CycleState, cluster events, the handle, diagnosis.
May enter: `api`, `table`. Must not happen: behaviour of one particular scheduler.
Called by: plugins (in-tree and others), `runtime`, `scheduler`.
"""

from ..api.custom import CustomResource
from ..table import NodeInfo
from .cycle_state import CycleState
from .events import ActionType, ClusterEvent, EventWithHint, Hint, wait_for
from .handle import Handle
from .interface import (
    CLUSTER,
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PodGroupPostFilterPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Settled,
    typed_args,
)
from .scores import MAX_SCORE, scale_to_max
from .status import SKIP, SUCCESS, Code, Status, failure, unresolvable, unschedulable, wait
from .verdict import Verdict

__all__ = [
    "ActionType",
    "BindPlugin",
    "CLUSTER",
    "ClusterEvent",
    "Code",
    "CustomResource",
    "CycleState",
    "EventWithHint",
    "FilterPlugin",
    "GROUPS",
    "Handle",
    "Hint",
    "MAX_SCORE",
    "NODE_OBJECT",
    "NODE_ROW",
    "NodeInfo",
    "PermitPlugin",
    "PlacementGeneratePlugin",
    "PlacementScorePlugin",
    "Plugin",
    "PodGroupPostFilterPlugin",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "ReservePlugin",
    "SKIP",
    "SUCCESS",
    "ScorePlugin",
    "Settled",
    "Status",
    "Verdict",
    "failure",
    "scale_to_max",
    "typed_args",
    "unresolvable",
    "unschedulable",
    "wait",
    "wait_for",
]
