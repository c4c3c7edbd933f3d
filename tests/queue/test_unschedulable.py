from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.unschedulable import UnschedulablePods
from bayplan.testing.builders import make_pod


def make_info(name: str, *rejectors: str, at: float = 0.0) -> QueuedPodInfo:
    info = QueuedPodInfo(make_pod(name), at)
    info.set_rejectors(rejectors)
    return info


def groups(pods: UnschedulablePods) -> list[tuple[set[str], list[str]]]:
    return [(set(by.plugins), [i.pod.name for i in infos]) for by, infos in pods.groups()]


def test_pods_are_grouped_by_rejectors() -> None:
    pods = UnschedulablePods()
    for info in (make_info("p", "A"), make_info("q", "A", "B"), make_info("r", "A")):
        pods.put(info)

    assert groups(pods) == [({"A"}, ["p", "r"]), ({"A", "B"}, ["q"])]


def test_a_pod_changes_its_group_with_its_rejectors() -> None:
    pods, info = UnschedulablePods(), make_info("p", "A")
    pods.put(info)
    info.unschedulable_plugins |= {"B"}
    pods.put(info)

    assert groups(pods) == [({"A", "B"}, ["p"])]
    assert len(pods) == 1


def test_delete_leaves_nothing_behind() -> None:
    pods, info = UnschedulablePods(), make_info("p", "A")
    pods.put(info)
    info.unschedulable_plugins |= {"B"}

    assert pods.delete("default/p") is info
    assert pods.delete("default/p") is None
    assert groups(pods) == []
    assert pods.oldest() is None


def test_the_oldest_is_the_one_that_waits_longest_since_its_attempt_or_flush() -> None:
    pods = UnschedulablePods()
    first, second = make_info("p", "A", at=1.0), make_info("q", "A", at=2.0)
    pods.put(first)
    pods.put(second)
    assert pods.oldest() is first

    first.flush_timestamp = 3.0
    pods.put(first)
    assert pods.oldest() is second


def kinds(pods: UnschedulablePods) -> list[list[str]]:
    return [[i.pod.name for i in kind.values()] for _, found in pods.kinds() for kind in found]


def test_pods_of_one_spec_share_a_group_unless_they_have_distinguishing_state() -> None:
    pods = UnschedulablePods()
    small, nominated = make_info("small", "A"), make_info("nominated", "A")
    small.pod = make_pod("small", cpu="1")
    nominated.pod = make_pod("nominated", nominated_node_name="n")
    for info in (make_info("p", "A"), small, nominated, make_info("q", "A")):
        pods.put(info)

    assert kinds(pods) == [["p", "q"], ["small"], ["nominated"]]
    assert groups(pods) == [({"A"}, ["p", "small", "nominated", "q"])], "in the order they came"


def test_a_pod_that_changes_its_group_keeps_its_position() -> None:
    pods, first = UnschedulablePods(), make_info("first", "A")
    for info in (first, make_info("second", "B"), make_info("third", "A")):
        pods.put(info)

    first.pod = make_pod("first", nominated_node_name="n")
    pods.put(first)

    assert kinds(pods) == [["third"], ["first"], ["second"]]
    assert groups(pods) == [({"A"}, ["first", "third"]), ({"B"}, ["second"])]
