"""The plugins that place pod groups. They can be configured; placing groups as a whole is not there yet.

Mirrors pkg/scheduler/framework/plugins/{topologyaware,podgrouppodscount}.
"""

from ..framework import PlacementGeneratePlugin, PlacementScorePlugin


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    """Proposes one domain of the topology of a pod group after the other. Not run yet."""

    name = "TopologyPlacementGenerator"


class PodGroupPodsCount(PlacementScorePlugin):
    """Prefers placements for as many pods of the group as possible. Not run yet."""

    name = "PodGroupPodsCount"
