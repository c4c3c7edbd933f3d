"""Job backoffs: the wait before failed pods are replaced."""

from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock, Timers
from bayplan.cluster.memory.jobs import JobBackoffs
from bayplan.testing.builders import make_pod

KEY = ("Job", "default", "batch")


def finished(phase: str) -> Pod:
    pod = make_pod("p")
    return pod.with_status(replace(pod.status, phase=phase))


def test_the_wait_doubles_with_each_failure_and_a_success_ends_it() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    checked: list[float] = []
    backoffs = JobBackoffs((clock, timers), lambda key: checked.append(clock.monotonic()))
    start = clock.monotonic()

    for wait_s in (10, 20, 40):
        backoffs.finished(KEY, finished("Failed"))
        assert backoffs.must_wait(KEY)
        assert backoffs.must_wait(KEY), "one timer is set"
        clock.advance(wait_s)
        timers.fire_due()
        assert not backoffs.must_wait(KEY)

    assert [moment - start for moment in checked] == [10, 30, 70]
    backoffs.finished(KEY, finished("Failed"))
    backoffs.finished(KEY, finished("Succeeded"))
    assert not backoffs.must_wait(KEY)


def test_the_wait_is_at_most_ten_minutes() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    backoffs = JobBackoffs((clock, timers), lambda key: None)
    for _ in range(50):
        backoffs.finished(KEY, finished("Failed"))

    assert backoffs.must_wait(KEY)
    clock.advance(600)
    assert not backoffs.must_wait(KEY)
