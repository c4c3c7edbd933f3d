import pytest

from bayplan.api.pod import Pod
from bayplan.framework.events import (
    EACH_SPEC,
    FORCE_ACTIVATE,
    NODE,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
    Hint,
    HintFunction,
    called_for,
)
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.queueing_hints import (
    AFTER_BACKOFF,
    IMMEDIATELY,
    SKIP,
    QueueingHints,
    QueueingStrategy,
)
from bayplan.testing.builders import make_pod

ADDED = ClusterEvent(NODE, ActionType.Add)


def says(answer: Hint) -> HintFunction:
    return lambda pod, old, new: answer


def fails(pod: Pod, old: object, new: object) -> Hint:
    raise ValueError("a hint that fails")


HINTS = QueueingHints(
    {
        "default-scheduler": [
            (ADDED, "Yes", says(Hint.QUEUE)),
            (ADDED, "No", says(Hint.SKIP)),
            (ADDED, "Fails", fails),
            (ADDED, "Silent", None),
            (ADDED, "Both", says(Hint.SKIP)),
            (ClusterEvent(NODE, ActionType.All), "Both", says(Hint.QUEUE)),
        ],
        "second": [(ClusterEvent(NODE, ActionType.Delete), "Gate", None)],
    }
)


def make_info(
    unschedulable: list[str], pending: list[str], profile: str = "default-scheduler"
) -> QueuedPodInfo:
    info = QueuedPodInfo(make_pod("p", uid="p", spec={"schedulerName": profile}), 0.0)
    info.set_rejectors(unschedulable, pending)
    return info


@pytest.mark.parametrize(
    ("unschedulable", "pending", "expected"),
    [
        pytest.param(["Yes"], [], AFTER_BACKOFF, id="a rejector finds it worth it"),
        pytest.param(["No"], [], SKIP, id="the only rejector does not"),
        pytest.param(["No", "Yes"], [], AFTER_BACKOFF, id="one of two is enough"),
        pytest.param(["Fails"], [], AFTER_BACKOFF, id="a hint that fails counts as Queue"),
        pytest.param(["Silent"], [], AFTER_BACKOFF, id="no hint counts as Queue"),
        pytest.param(["Both"], [], AFTER_BACKOFF, id="the second registration returns Queue"),
        pytest.param(["Other"], [], SKIP, id="the rejector did not register"),
        pytest.param([], ["Yes"], IMMEDIATELY, id="a pending plugin makes it urgent"),
        pytest.param(["Yes"], ["No"], AFTER_BACKOFF, id="only the unschedulable one returns Queue"),
        pytest.param(["Yes"], ["Silent"], IMMEDIATELY, id="the pending one takes precedence"),
        pytest.param(["Yes"], ["Yes"], IMMEDIATELY, id="both in one"),
        pytest.param([], [], AFTER_BACKOFF, id="an error: any event will do"),
    ],
)
def test_strategy(unschedulable: list[str], pending: list[str], expected: QueueingStrategy) -> None:
    info = make_info(unschedulable, pending)

    assert HINTS.plan(NODE_ADD).strategy(info, info.rejection, None, None) is expected


def test_a_pod_of_a_profile_without_registrations_is_requeued() -> None:
    info = make_info(["Other"], [], profile="unknown")

    assert HINTS.plan(NODE_ADD).strategy(info, info.rejection, None, None) is AFTER_BACKOFF


@pytest.mark.parametrize(
    ("rejectors", "target", "expected"),
    [
        pytest.param(["No"], None, AFTER_BACKOFF, id="for all"),
        pytest.param(["No"], make_pod("p", uid="p"), AFTER_BACKOFF, id="for this pod"),
        pytest.param(["No"], make_pod("p", uid="q"), SKIP, id="for another pod"),
        pytest.param(["No"], "no pod", SKIP, id="for something that is no pod"),
        pytest.param([], make_pod("p", uid="q"), AFTER_BACKOFF, id="an error goes before"),
    ],
)
def test_a_wildcard_needs_no_hint(
    rejectors: list[str], target: object, expected: QueueingStrategy
) -> None:
    info = make_info(rejectors, [])

    assert HINTS.plan(FORCE_ACTIVATE).strategy(info, info.rejection, None, target) is expected


@pytest.mark.parametrize(
    ("event", "plugin", "expected"),
    [
        pytest.param(NODE_ADD, "", True, id="the pod is not gated"),
        pytest.param(NODE_ADD, "Gate", False, id="the plugin did not register for it"),
        pytest.param(NODE_DELETE, "Gate", True, id="it did, if in another profile"),
        pytest.param(FORCE_ACTIVATE, "Gate", True, id="a wildcard opens every gate"),
    ],
)
def test_can_open(event: ClusterEvent, plugin: str, expected: bool) -> None:
    assert HINTS.plan(event).can_open(plugin) is expected


def test_interest() -> None:
    assert HINTS.plan(NODE_ADD).is_of_interest
    assert not HINTS.plan(ClusterEvent("PersistentVolume", ActionType.Add)).is_of_interest
    assert QueueingHints({}).plan(FORCE_ACTIVATE).is_of_interest


# Groups of equal pods


class Counting:
    """A hint that returns Queue for pods on behalf of `uid`, Skip for others, and records its calls."""

    def __init__(self, uid: str = "") -> None:
        self.uid = uid
        self.asked: list[str] = []

    def hint(self, pod: Pod, old: object, new: object) -> Hint:
        self.asked.append(pod.name)
        return Hint.QUEUE if pod.uid == self.uid else Hint.SKIP

    @called_for(EACH_SPEC)
    def marked(self, pod: Pod, old: object, new: object) -> Hint:
        return self.hint(pod, old, new)


def make_kind(*names: str) -> dict[str, QueuedPodInfo]:
    infos = [QueuedPodInfo(make_pod(name, uid=name), 0.0) for name in names]
    for info in infos:
        info.set_rejectors(["Counts"])
    return {info.pod.key: info for info in infos}


def worth(hint: HintFunction, kind: dict[str, QueuedPodInfo], new: object) -> list[str]:
    hints = QueueingHints({"default-scheduler": [(ADDED, "Counts", hint)]})
    rejection = next(iter(kind.values())).rejection
    found = hints.plan(ADDED).worth_of_kinds(rejection, [kind], None, new)
    assert all(strategy is AFTER_BACKOFF for _, strategy in found)
    return [info.pod.name for info, _ in found]


def test_a_spec_only_hint_is_called_once_per_group() -> None:
    counting = Counting()

    assert worth(counting.marked, make_kind("p", "q", "r"), None) == []
    assert counting.asked == ["p"]


def test_its_result_applies_to_the_whole_group() -> None:
    assert worth(called_for(EACH_SPEC)(says(Hint.QUEUE)), make_kind("p", "q", "r"), None) == [
        "p",
        "q",
        "r",
    ]
    assert worth(called_for(EACH_SPEC)(fails), make_kind("p", "q"), None) == ["p", "q"]


def test_the_hint_is_called_separately_for_the_pod_of_the_event() -> None:
    counting, kind = Counting("p"), make_kind("p", "q", "r")

    assert worth(counting.marked, kind, make_pod("p", uid="p")) == ["p"]
    assert sorted(counting.asked) == ["p", "q"]


def test_any_other_hint_is_called_for_every_pod() -> None:
    counting = Counting("q")

    assert worth(counting.hint, make_kind("p", "q", "r"), None) == ["q"]
    assert counting.asked == ["p", "q", "r"]


def narrow(*keys: str) -> HintFunction:
    return called_for(lambda old, new: keys if new == "narrow" else None)(says(Hint.QUEUE))


@pytest.mark.parametrize(
    ("hints", "new", "asked"),
    [
        pytest.param([narrow("ns/a")], "narrow", ["ns/a"], id="one pod"),
        pytest.param([narrow()], "narrow", [], id="no pod"),
        pytest.param([narrow("ns/a")], "wide", None, id="any pod"),
        pytest.param([narrow("ns/b"), narrow("ns/a")], "narrow", ["ns/b", "ns/a"], id="two hints"),
        pytest.param(
            [narrow("ns/b"), says(Hint.SKIP)], "narrow", None, id="a hint without a target"
        ),
        pytest.param([narrow("ns/b"), None], "narrow", None, id="one without a hint"),
    ],
)
def test_hints_are_called_only_for_pods_the_event_may_affect(
    hints: list[HintFunction | None], new: str, asked: list[str] | None
) -> None:
    listed = [(ADDED, f"P{i}", hint) for i, hint in enumerate(hints)]
    plan = QueueingHints({"default-scheduler": listed}).plan(NODE_ADD)
    info = QueuedPodInfo(make_pod("a", namespace="ns"), 0.0)
    info.set_rejectors([f"P{i}" for i in range(len(hints))], [])

    found = plan.affected(info.rejection, None, new)

    assert (found if found is None else list(found)) == asked
