"""PrioritySort: the order of the active queue."""

from dataclasses import dataclass

import pytest

from bayplan.api.pod import Pod
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.testing.builders import make_pod


@dataclass
class Queued:
    pod: Pod
    timestamp: float
    initial_attempt_timestamp: float | None = None


def queued(priority: int | None, timestamp: float) -> Queued:
    return Queued(make_pod(priority=priority), timestamp)


@pytest.mark.parametrize(
    ("first", "second", "before"),
    [
        pytest.param(queued(2, 9), queued(1, 1), True, id="higher priority, though it came later"),
        pytest.param(queued(1, 1), queued(2, 9), False, id="lower priority"),
        pytest.param(queued(1, 1), queued(1, 2), True, id="equal priority, waiting longer"),
        pytest.param(queued(1, 2), queued(1, 1), False, id="equal priority, came later"),
        pytest.param(queued(1, 1), queued(1, 1), False, id="nothing is before its equal"),
        pytest.param(queued(None, 2), queued(-1, 1), True, id="no priority counts as 0"),
        pytest.param(queued(None, 1), queued(0, 2), True, id="no priority equals 0"),
    ],
)
def test_less(first: Queued, second: Queued, before: bool) -> None:
    plugin = PrioritySort()

    assert plugin.less(first, second) is before
    assert (plugin.sort_key(first) < plugin.sort_key(second)) is before


def test_sort_key_sorts_a_queue() -> None:
    queue = [queued(0, 1), queued(5, 3), queued(-1, 0), queued(5, 2)]

    ordered = sorted(queue, key=PrioritySort().sort_key)

    assert [(q.pod.priority, q.timestamp) for q in ordered] == [(5, 2), (5, 3), (0, 1), (-1, 0)]
