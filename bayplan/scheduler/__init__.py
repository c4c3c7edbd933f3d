"""The order of steps: the path of a pod from the queue to its node.

Lives here: the scheduling cycle (`cycle.py`, read it first), the search for nodes, host selection, event handlers, and
`build.py`, which puts everything together. May enter: everything below it. Must not happen: a placement rule (those are
plugins), a thread, I/O. Called by: `drivers`, `sim`, `answers`, `cli`.
"""

from ..engine import Decision, Reason
from ..queue.queued_pod import QueuedPodInfo
from ..runtime.plugin_registry import module_source, names_module
from .attempt import Attempt, Explanation, Outcome, PluginScore
from .build import build_scheduler
from .catalog import (
    PluginDescription,
    describe_plugins,
    effective_plugins,
    notes_on_plugins,
    plugin_faults,
)
from .cycle import Scheduler
from .group_attempt import GroupAttempt, MemberTrial, cause_of, run_to_tell
from .inquiry import GroupInquiry, Inquiry, gated_attempts
from .parts import PluginSource, SchedulerSettings
from .select_host import FirstByName, RandomTies, TieBreak

__all__ = [
    "Attempt",
    "Decision",
    "Explanation",
    "FirstByName",
    "GroupAttempt",
    "GroupInquiry",
    "Inquiry",
    "MemberTrial",
    "Outcome",
    "PluginDescription",
    "PluginScore",
    "PluginSource",
    "QueuedPodInfo",
    "RandomTies",
    "Reason",
    "Scheduler",
    "SchedulerSettings",
    "TieBreak",
    "build_scheduler",
    "cause_of",
    "describe_plugins",
    "effective_plugins",
    "gated_attempts",
    "module_source",
    "names_module",
    "notes_on_plugins",
    "plugin_faults",
    "run_to_tell",
]
