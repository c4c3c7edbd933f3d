"""ImageLocality: favour nodes that already have the pod's images, the more so the larger and commoner they are.

Mirrors pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ..api.pod import Pod, PodSpec
from ..framework import MAX_SCORE, NODE_OBJECT, CycleState, ScorePlugin
from ..framework.handle import release_of
from ..releases.release import ImageVolumes
from ..table import Ints, NodeTable, Rows

MIB = 1024 * 1024
MIN_THRESHOLD = 23 * MIB
MAX_CONTAINER_THRESHOLD = 1000 * MIB


class ImageLocality(ScorePlugin):
    """The score grows with the bytes that need not be pulled, between two thresholds."""

    name = "ImageLocality"
    scope = NODE_OBJECT

    def spec_key(self, spec: PodSpec) -> Hashable:
        """The images of the pod that some node has; pods without such images share a key. Their version is in
        `cluster_key`.
        """
        on_nodes = self.handle.table.images
        known = tuple([image for image in spec.images if normalized_name(image) in on_nodes])
        return (known, self._counted(spec)) if known else ()

    def _counted(self, spec: PodSpec) -> int:
        """The number of images by which the ceiling grows."""
        containers = len(spec.init_containers or ()) + len(spec.containers or ())
        is_more = release_of(self).image_volumes is ImageVolumes.SIZE_AND_CEILING
        return len(spec.images) if is_more else containers

    def cluster_key(self, table: NodeTable) -> Hashable:
        # If no node has an image, every node scores 0, whatever the number of nodes.
        return (table.images.version, table.node_count) if table.images else None

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        if not table.images:
            return np.zeros(table.count(rows), dtype=np.int64)
        counted = self._counted(pod.spec)
        images = pod.spec.images
        if release_of(self).image_volumes is ImageVolumes.IGNORED:
            images = images[:counted]
        names = [normalized_name(image) for image in images]
        present = table.images.total(names, table.node_count)[rows]
        if not present.any():
            return present
        ceiling = MAX_CONTAINER_THRESHOLD * counted
        if (
            ceiling <= MIN_THRESHOLD
        ):  # no container, only image volumes: upstream's range is inverted
            ceiling = MIN_THRESHOLD + 1
        clamped = np.clip(present, MIN_THRESHOLD, ceiling)
        return MAX_SCORE * (clamped - MIN_THRESHOLD) // (ceiling - MIN_THRESHOLD)


def normalized_name(image: str) -> str:
    """The image name with `:latest` when it has no tag."""
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"
