"""CycleState: the data of one attempt, and the changes that a what-if may make."""

from __future__ import annotations

import pytest

from bayplan.framework import CycleState


class Counted:
    """A value that a what-if may change."""

    def __init__(self, pods: int) -> None:
        self.pods = pods

    def clone(self) -> Counted:
        return Counted(self.pods)


def test_a_value_is_read_as_it_was_written() -> None:
    state = CycleState()
    state.write("key", [1])

    assert state.read("key") == [1]
    assert state.get("key") == [1]


def test_a_missing_value_is_not_found() -> None:
    state = CycleState()

    with pytest.raises(KeyError, match="not found"):
        state.read("key")
    assert state.get("key") is None


def test_delete_forgets_and_may_be_repeated() -> None:
    state = CycleState()
    state.write("key", 1)

    state.delete("key")
    state.delete("key")

    assert state.get("key") is None


def test_clone_copies_values_that_can_clone_themselves() -> None:
    state, counted = CycleState(), Counted(1)
    state.write("counted", counted)

    copy = state.clone()
    copy.read("counted").pods += 1

    assert (counted.pods, copy.read("counted").pods) == (1, 2)


def test_clone_shares_all_other_values() -> None:
    state, terms = CycleState(), ["term"]
    state.write("terms", terms)

    assert state.clone().read("terms") is terms


def test_writing_to_a_clone_leaves_the_original_alone() -> None:
    state = CycleState()
    copy = state.clone()

    copy.write("key", 1)

    assert state.get("key") is None


def test_clone_has_the_skipped_plugins() -> None:
    state = CycleState()
    state.skip_filter.add("NodePorts")
    state.skip_score.add("NodeAffinity")

    copy = state.clone()

    assert (copy.skip_filter, copy.skip_score) == ({"NodePorts"}, {"NodeAffinity"})
