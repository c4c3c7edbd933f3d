from hypothesis import given
from hypothesis import strategies as st

from bayplan.queue.heap import SLACK, KeyedHeap


def drain(heap: KeyedHeap[int]) -> list[int]:
    found = []
    while (item := heap.pop()) is not None:
        found.append(item)
    return found


def test_pop_gives_the_items_in_order() -> None:
    heap: KeyedHeap[int] = KeyedHeap(lambda item: item)
    for item in (3, 1, 2):
        heap.put(str(item), item)

    assert heap.peek() == 1
    assert drain(heap) == [1, 2, 3]
    assert heap.pop() is None
    assert heap.peek() is None


def test_equal_items_keep_insertion_order_after_a_replacement() -> None:
    heap: KeyedHeap[tuple[int, str]] = KeyedHeap(lambda item: item[0])
    heap.put("a", (1, "a"))
    heap.put("b", (1, "b"))
    heap.put("a", (1, "new a"))

    assert heap.in_order() == [(1, "new a"), (1, "b")]
    assert len(heap) == 2


def test_a_replaced_item_moves_and_occurs_once() -> None:
    heap: KeyedHeap[int] = KeyedHeap(lambda item: item)
    heap.put("a", 1)
    heap.put("b", 2)
    heap.put("a", 3)

    assert heap.get("a") == 3
    assert drain(heap) == [2, 3]


def test_delete_returns_the_item() -> None:
    heap: KeyedHeap[int] = KeyedHeap(lambda item: item)
    heap.put("a", 1)

    assert heap.delete("a") == 1
    assert heap.delete("a") is None
    assert "a" not in heap
    assert heap.peek() is None


def test_stale_slots_are_removed() -> None:
    heap: KeyedHeap[int] = KeyedHeap(lambda item: item)
    for item in range(10_000):
        heap.put("same", -item)

    assert len(heap._slots) <= 2 + SLACK


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "delete", "pop"]), st.integers(0, 9), st.integers(0, 5)),
        max_size=300,
    )
)
def test_it_behaves_as_a_sorted_dict(steps: list[tuple[str, int, int]]) -> None:
    heap: KeyedHeap[tuple[int, str]] = KeyedHeap(lambda item: item)
    model: dict[str, tuple[int, str]] = {}
    for step, number, rank in steps:
        key = str(number)
        if step == "put":
            heap.put(key, (rank, key))
            model[key] = (rank, key)
        elif step == "delete":
            assert heap.delete(key) == model.pop(key, None)
        else:
            first = min(model.values(), default=None)
            assert heap.pop() == first
            if first is not None:
                del model[first[1]]
        assert heap.in_order() == sorted(model.values())
        assert heap.peek() == min(model.values(), default=None)
