"""PluginNames: the plugins that a profile names must exist, implement their point, and occur once.

kube-scheduler stops at the first of these mistakes (`expand.py` has its texts); here all of them are found.
"""

import difflib
from collections.abc import Collection

from .expand import Implements
from .gates import TOPOLOGY_AWARE_WORKLOAD_SCHEDULING, FeatureGates
from .problems import Literally, ProblemKind, Problems, show
from .types import PLACEMENT_POINTS, POINT_NAMES, Profile

MULTI_POINT = "multi_point"
SIMILAR = 0.8
"""Likeness of misspelt names; many plugins of other projects are called Node or Scheduling, too."""


def find_plugin_problems(
    profile: Profile, path: str, registered: Collection[str], implements: Implements
) -> Problems:
    """Returns the mistakes in the plugin lists of the profile at `path` of the file."""
    problems = Problems()
    for point in (*POINT_NAMES, MULTI_POINT):
        written = POINT_NAMES.get(point, "multiPoint")
        seen: set[str] = set()
        for ref in profile.plugins.at(point).enabled:
            where, name = f"{path}.plugins.{written}.enabled", ref.name
            if name not in registered:
                expected = suggest(name, registered)
                problems.add(where, expected, name, ProblemKind.UNSUPPORTED)
            elif point != MULTI_POINT and not implements(name, point):
                expected, got = f"plugins that implement {written}", Literally(show(name))
                problems.add(where, expected, got, ProblemKind.UNSUPPORTED)
            elif name in seen:
                problems.add(where, "each plugin once", name, ProblemKind.DUPLICATE)
            seen.add(name)
    return problems


def plugin_notes(
    profile: Profile,
    path: str,
    registered: Collection[str],
    implements: Implements,
    gates: FeatureGates,
) -> list[str]:
    """Returns notes on settings about plugins that are read and have no effect."""
    notes = []
    named = profile.plugins.names()
    for name in profile.plugin_config:
        if name not in registered and name not in named:
            hint = f" (expected {suggest(name, registered)})"
            notes.append(f"{path}.pluginConfig: {name}: no such plugin; no effect{hint}")
    if gates.enabled(TOPOLOGY_AWARE_WORKLOAD_SCHEDULING):
        return notes
    for name in sorted(named & {*registered} - {"NodeResourcesFit"}):
        points = [POINT_NAMES[point] for point in PLACEMENT_POINTS if implements(name, point)]
        if points:
            points_text = " and ".join(points)
            notes.append(
                f"{path}.plugins: {name}: {points_text} is not run without the feature gate "
                f"{TOPOLOGY_AWARE_WORKLOAD_SCHEDULING}"
            )
    return notes


def suggest(name: str, registered: Collection[str]) -> str:
    """Returns the names that were expected in place of an unknown plugin `name`."""
    similar = difflib.get_close_matches(name, registered, n=1, cutoff=SIMILAR)
    return similar[0] if similar else "the name of a plugin"
