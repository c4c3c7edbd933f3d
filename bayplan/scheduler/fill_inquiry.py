"""Fill inquiry: which pods would get a node, if they were placed one after another on some of the nodes.

Only what nodes are and rules on amounts count, so that the kernel places all pods in one call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..amounts.kernel import compiled, fill
from ..api.pod import Pod
from ..table import Bools, Ints
from .cycle import Scheduler
from .inquiry import profile_of


def fill_in_order(
    scheduler: Scheduler, pods: Sequence[Pod], order: Ints, places: Sequence[Ints], ranks: Ints
) -> Bools | None:
    """bool [places, order]: whether each pod of `order`, numbers of `pods`, gets a node on the rows of a place.

    Of equal nodes a pod gets the one of the lowest rank. None: more than amounts decides about one of the pods, or
    there are more than the kernel takes, or it is not compiled.
    """
    profiles = {profile_of(scheduler, pod).name: pod for pod in pods}
    if compiled is None or len(profiles) != 1:
        return None
    scheduler.cache.snapshot.update()
    fillings = scheduler.fillings_of(profile_of(scheduler, pods[0]), pods)
    if fillings is None or len(fillings.kinds) > compiled.MOST_KINDS:
        return None
    ends = np.cumsum([len(rows) for rows in places])
    rows = np.concatenate(places).astype(np.int64)
    found = fill(fillings.kinds, fillings.classes[order], rows, ends.astype(np.int64), ranks)
    return np.asarray(found.hosts >= 0)
