import pytest

from bayplan.queue.backoff import BackoffQueue
from bayplan.queue.queued_pod import NO_BACKOFF, QueuedPodInfo
from bayplan.testing.builders import make_pod

NOON = 1_700_000_000.0


def make_queue(initial_s: float = 1, max_s: float = 10) -> BackoffQueue:
    return BackoffQueue(initial_s, max_s, lambda info: (-info.pod.priority, info.timestamp))


def make_info(
    name: str = "pod",
    *,
    failures: int = 0,
    errors: int = 0,
    at: float = NOON,
    priority: int = 0,
    expires: float = NO_BACKOFF,
) -> QueuedPodInfo:
    info = QueuedPodInfo(make_pod(name, priority=priority), at)
    info.unschedulable_count, info.consecutive_errors_count = failures, errors
    info.set_rejectors(["Fit"] if failures and not errors else [])
    info.backoff_expiration = expires
    return info


@pytest.mark.parametrize(
    ("initial_s", "max_s", "expected"),
    [
        pytest.param(1, 10, [1, 2, 4, 8, 10, 10], id="the default doubles up to ten seconds"),
        pytest.param(2, 60, [2, 4, 8, 16, 32, 60, 60], id="longer ones"),
        pytest.param(5, 3, [3, 3], id="an initial backoff above the maximum is cut"),
    ],
)
def test_backoff_grows_with_each_rejection(
    initial_s: float, max_s: float, expected: list[float]
) -> None:
    queue = make_queue(initial_s, max_s)

    found = [queue.expiration(make_info(failures=n + 1)) - NOON for n in range(len(expected))]

    assert found == expected


@pytest.mark.parametrize(
    ("failures", "errors", "expected"),
    [
        pytest.param(0, 0, NO_BACKOFF, id="never failed"),
        pytest.param(3, 1, NOON + 1, id="errors in a row count instead of rejections"),
        pytest.param(3, 0, NOON + 4, id="rejections"),
        pytest.param(500, 0, NOON + 10, id="very many"),
    ],
)
def test_which_failures_count(failures: int, errors: int, expected: float) -> None:
    assert make_queue().expiration(make_info(failures=failures, errors=errors)) == expected


def test_a_maximum_of_zero_switches_backoff_off() -> None:
    assert make_queue(1, 0).expiration(make_info(failures=3)) == NO_BACKOFF


@pytest.mark.parametrize(
    ("initial_s", "at", "expected"),
    [
        pytest.param(1, NOON + 0.7, NOON + 1, id="cut to the whole second"),
        pytest.param(0.3, NOON + 0.7, NOON + 1, id="a sum with a float rounding error"),
        pytest.param(0.3, NOON + 0.699999, NOON, id="one microsecond less"),
    ],
)
def test_backoff_ends_with_a_whole_second(initial_s: float, at: float, expected: float) -> None:
    assert make_queue(initial_s).expiration(make_info(failures=1, at=at)) == expected


@pytest.mark.parametrize(
    ("now", "waits"),
    [
        pytest.param(NOON + 0.999999, True, id="before"),
        pytest.param(NOON + 1.999999, True, id="all through the second it ends in"),
        pytest.param(NOON + 2.0, False, id="at the next one"),
    ],
)
def test_is_backing_off(now: float, waits: bool) -> None:
    assert make_queue().is_backing_off(make_info(expires=NOON + 1), now) is waits


def test_pods_of_one_window_are_in_active_queue_order() -> None:
    queue = make_queue()
    queue.add(make_info("low", failures=1, expires=NOON, priority=1))
    queue.add(make_info("high", failures=1, expires=NOON, priority=2))
    queue.add(make_info("early", failures=1, expires=NOON - 1))

    assert [info.pod.name for info in queue.rejected.in_order()] == ["early", "high", "low"]


def test_pop_completed_takes_finished_backoffs_from_both_heaps() -> None:
    queue = make_queue()
    queue.add(make_info("error", errors=1, expires=NOON))
    queue.add(make_info("rejected", failures=1, expires=NOON))
    queue.add(make_info("later", failures=1, expires=NOON + 1))

    assert queue.next_completion() == NOON + 1
    assert queue.pop_completed(NOON + 0.5) == []
    assert [info.pod.name for info in queue.pop_completed(NOON + 1)] == ["rejected", "error"]
    assert len(queue) == 1
    assert "default/later" in queue


def test_a_pod_is_in_one_of_the_heaps() -> None:
    queue, info = make_queue(), make_info(errors=1, expires=NOON)
    queue.add(info)
    info.set_rejectors(["Fit"])
    queue.add(info)

    assert (len(queue.rejected), len(queue.errors)) == (1, 0)
    assert queue.delete(info.pod.key) is info
    assert queue.next_completion() is None
