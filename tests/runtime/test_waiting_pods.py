"""Waiting pods: allowed, rejected, preempted, or out of time; the first decision counts."""

from bayplan.clock import ManualClock, Timers
from bayplan.framework import SUCCESS, Code, Status
from bayplan.runtime.waiting_pods import HeldPod, HeldPods
from bayplan.testing.builders import make_pod


class Wait:
    """One pod that A (30 s) and B (60 s) hold back."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.decided: list[Status] = []
        timeouts = {"A": 30.0, "B": 60.0}
        self.pod = HeldPod(make_pod("p", uid="u"), timeouts, self.timers, self.decided.append)

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.fire_due()


def test_goes_on_when_all_allow() -> None:
    wait = Wait()

    wait.pod.allow("A")
    assert (wait.decided, wait.pod.pending_plugins) == ([], ["B"])
    wait.pod.allow("B")

    assert wait.decided == [SUCCESS]
    wait.advance(100)
    assert wait.decided == [SUCCESS]


def test_allow_of_an_unknown_plugin_is_harmless() -> None:
    wait = Wait()

    wait.pod.allow("Unknown")

    assert (wait.decided, wait.pod.pending_plugins) == ([], ["A", "B"])


def test_reject_counts_once() -> None:
    wait = Wait()

    assert wait.pod.reject("B", "no")
    assert not wait.pod.reject("A", "me too")
    wait.pod.allow("A")
    wait.pod.allow("B")
    wait.advance(100)

    assert wait.decided == [Status(Code.Unschedulable, ("no",), "B")]


def test_preempt_is_an_error() -> None:
    wait = Wait()

    assert wait.pod.preempt("P", "made room")

    assert wait.decided == [Status(Code.Error, ("made room",), "P")]


def test_the_first_timer_rejects() -> None:
    wait = Wait()

    wait.advance(29.9)
    assert wait.decided == []
    wait.advance(0.2)

    text = "rejected due to timeout after waiting 30s at plugin A"
    assert wait.decided == [Status(Code.Unschedulable, (text,), "A")]
    wait.advance(100)
    assert len(wait.decided) == 1


def test_an_allowed_plugin_has_no_timer_any_more() -> None:
    wait = Wait()

    wait.pod.allow("A")
    wait.advance(59)
    assert wait.decided == []
    wait.advance(2)

    assert [status.plugin for status in wait.decided] == ["B"]


def test_pods_by_uid_until_removed() -> None:
    wait, pods = Wait(), HeldPods()
    pods.add(wait.pod)

    assert pods.get("u") is wait.pod
    assert list(pods) == [wait.pod]
    assert pods.reject("u")
    assert wait.decided == [Status(Code.Unschedulable, ("removed",))]
    assert not pods.reject("other")
    pods.remove("u")
    assert (len(pods), pods.get("u")) == (0, None)
