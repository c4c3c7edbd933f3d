"""Seen: what came up before, within bounds."""

from bayplan.runtime.seen import SLOTS, Seen


def test_the_second_time_a_thing_was_seen_before() -> None:
    seen = Seen()

    assert [seen.add("a"), seen.add("b"), seen.add("a")] == [False, False, True]


def test_what_came_up_lately_is_known_and_the_rest_forgotten() -> None:
    seen = Seen()
    for number in range(1, 4 * SLOTS):
        seen.add(number)

    assert seen.add(4 * SLOTS - 1)
    assert not seen.add(1)


def test_objects_at_neighbouring_addresses_do_not_crowd_each_other_out() -> None:
    # The hash of an object is its address without the last four bits; specs lie some hundred bytes apart.
    hashes = [(0x7F12_3456_0000 + 416 * number) >> 4 for number in range(1000)]
    seen = Seen()
    for number in hashes:
        seen.add(number)

    assert sum(map(seen.add, hashes)) > 900
