"""Reserved: the future use of nominated pods, row by row."""

from bayplan.api.pod import Pod
from bayplan.framework.reserved import Reserved
from bayplan.queue.nominator import PodNominator
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod, make_table


def rival(name: str, cpu: str = "1", priority: int = 5) -> Pod:
    return make_pod(name, uid=name, cpu=cpu, priority=priority)


def test_pods_of_enough_priority_are_summed_up() -> None:
    nominator, table = PodNominator(), make_table(make_node("a"), make_node("b"))
    for pod, node in ((rival("p"), "b"), (rival("q", "2"), "b"), (rival("r", priority=4), "a")):
        nominator.add(pod, node)

    reserved = Reserved(table, nominator, priority=5)
    reserved.follow()

    assert reserved.rows.tolist() == [1]
    assert reserved.usage("cpu").tolist() == [0, 3000]
    assert reserved.usage("pods").tolist() == [0, 2]
    assert reserved.usage("example.com/gpu").tolist() == [0, 0]
    assert [pod.name for pod in reserved.pods(1)] == ["p", "q"]


def test_nominations_that_come_and_go_are_followed() -> None:
    nominator, table = PodNominator(), make_table(make_node("a"), make_node("b"))
    reserved = Reserved(table, nominator, priority=0)
    reserved.follow()
    assert not reserved

    nominator.add(rival("p"), "a")
    reserved.follow()
    assert reserved.rows.tolist() == [0]
    nominator.add(rival("p", "3"), "b")
    reserved.follow()
    assert reserved.usage("cpu").tolist() == [0, 3000]
    nominator.delete(rival("p"))
    reserved.follow()
    assert not reserved
    assert reserved.usage("cpu").tolist() == [0, 0]


def test_a_node_that_comes_later_finds_its_nominated_pods() -> None:
    nominator, table = PodNominator(), make_table(make_node("a"))
    nominator.add(rival("p"), "b")
    reserved = Reserved(table, nominator, priority=0)
    reserved.follow()
    assert not reserved

    writer = TableWriter(table)
    writer.set_node(make_node("b"))
    reserved.follow()
    assert reserved.rows.tolist() == [1]

    writer.remove_node("b")
    writer.set_node(make_node("c"))
    reserved.follow()
    assert not reserved, "another node took the row"
