"""Image states: sizes, and on how many nodes a row believes an image to be."""

import pytest

from bayplan.table import NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_object, make_pod, make_table

MIB = 1024 * 1024


def seen(table: NodeTable, name: str = "i:1") -> list[int]:
    found: list[int] = table.images.total([name], table.node_count).tolist()
    return found


def test_total_is_the_size_times_the_share_of_nodes_truncated() -> None:
    table = make_table(
        make_node("a", images={"i:1": 100, "j:1": 7}),
        make_node("b", images={"i:1": 100}),
        make_node("c"),
    )

    assert seen(table) == [66, 66, 0]
    assert table.images.total(["i:1", "j:1", "nowhere:1"], 3).tolist() == [68, 66, 0]


def test_size_is_that_of_the_first_node_that_reported_the_image() -> None:
    table = make_table(make_node("a", images={"i:1": 100}), make_node("b", images={"i:1": 900}))

    assert seen(table) == [100, 100]


def test_size_is_reported_again_once_no_node_had_the_image() -> None:
    table = make_table(make_node("a", images={"i:1": 100}))
    writer = TableWriter(table)

    writer.set_node(make_node("a"))
    writer.set_node(make_node("a", images={"i:1": 300}))
    table.images.refresh()

    assert seen(table) == [300]


@pytest.mark.parametrize(
    ("others", "size"),
    [
        pytest.param([], 300, id="the only node that has it says how large it is"),
        pytest.param(["b"], 100, id="with others the first size stays"),
    ],
)
def test_size_when_the_first_node_changes_its_mind(others: list[str], size: int) -> None:
    first = make_node("a", images={"i:1": 100})
    table = make_table(first, *(make_node(name, images={"i:1": 100}) for name in others))
    version = table.images.version

    TableWriter(table).set_node(make_node("a", images={"i:1": 300}))
    table.images.refresh()

    assert seen(table)[0] == size
    assert (table.images.version != version) == (size == 300)


def test_an_image_listed_twice_has_the_first_size() -> None:
    images = [{"names": ["i:1", "i:2"], "sizeBytes": 100}, {"names": ["i:1"], "sizeBytes": 5}]
    node = make_object("Node", "a", status={"images": images})

    assert seen(make_table(node)) == [100]


def test_a_change_elsewhere_is_seen_after_the_row_changed_and_a_snapshot_was_taken() -> None:
    table = make_table(make_node("a", images={"i:1": 100}), make_node("b"))
    writer = TableWriter(table)
    assert seen(table) == [50, 0]

    writer.set_node(make_node("b", images={"i:1": 100}))
    table.images.refresh()
    assert seen(table) == [50, 100], "row a did not change: it still believes in one node"

    writer.add_pod(make_pod(node_name="a"))
    assert seen(table) == [50, 100], "no snapshot was taken since"

    table.images.refresh()
    assert seen(table) == [100, 100]


def test_an_image_that_others_lost_is_forgotten_only_by_rows_that_changed() -> None:
    images = {"i:1": 100}
    table = make_table(*(make_node(name, images=images) for name in "abc"))
    writer = TableWriter(table)

    writer.set_node(make_node("c"))
    writer.set_node(make_node("b", images=images, labels={"touched": "yes"}))
    table.images.refresh()

    assert seen(table) == [100, 66, 0]


def test_version_changes_with_what_rows_see() -> None:
    table = make_table(make_node("a", images={"i:1": 100}), make_node("b"))
    writer = TableWriter(table)
    start = table.images.version

    table.images.refresh()
    writer.add_pod(make_pod(node_name="b"))
    table.images.refresh()
    calm = table.images.version
    writer.set_node(make_node("b", images={"i:1": 100}))
    changed = table.images.version
    table.images.refresh()

    assert start == calm < changed < table.images.version


def test_history_is_cut_to_what_some_row_may_still_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.table.images.HISTORY_LIMIT", 4)
    images = {"i:1": 100}
    table = make_table(make_node("old", images=images), make_node("new"))
    writer = TableWriter(table)

    def come_and_go() -> None:
        for node in (make_node("new", images=images), make_node("new")):
            writer.set_node(node)
            table.images.refresh()

    for _ in range(10):
        come_and_go()
    assert seen(table) == [50, 0], "the first row still sees the count of the beginning"

    writer.set_node(make_node("old", images=images, labels={"touched": "yes"}))
    come_and_go()
    assert seen(table) == [100, 0], "it saw the other row with the image"
    for i in range(20):
        writer.set_node(make_node("old", images=images, labels={"touched": str(i)}))
        come_and_go()
    assert len(table.images._states["i:1"].moments) < 10, "of 62"


def test_images_of_a_removed_node_are_gone() -> None:
    table = make_table(make_node("a", images={"i:1": 500 * MIB}), make_node("b"))

    TableWriter(table).remove_node("a")
    table.images.refresh()

    assert seen(table) == [0, 0]
