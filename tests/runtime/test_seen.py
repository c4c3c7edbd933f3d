"""Seen: what came up before, within bounds."""

from mooring.runtime.seen import MAX_SEEN, Seen


def test_the_second_time_a_thing_was_seen_before() -> None:
    seen = Seen()

    assert [seen.add("a"), seen.add("b"), seen.add("a")] == [False, False, True]


def test_what_came_up_lately_is_known_and_the_rest_forgotten() -> None:
    seen = Seen()
    for number in range(2 * MAX_SEEN):
        seen.add(number)

    assert seen.add(2 * MAX_SEEN - 1)
    assert not seen.add(0)
