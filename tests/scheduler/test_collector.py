import gc
import weakref

import pytest

from bayplan.scheduler.collector import YOUNG, rare_collections


class Ring:
    """An object that only a search for garbage can free."""

    def __init__(self) -> None:
        self.itself = self


def test_afterwards_all_is_as_before() -> None:
    before = gc.get_threshold()

    def fail() -> None:
        with rare_collections():
            assert gc.get_threshold()[0] == YOUNG
            assert gc.get_freeze_count() > 0
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_cycles_are_freed_all_the_same() -> None:
    with rare_collections():
        ring = weakref.ref(Ring())
        assert ring() is not None
        kept: list[list[int]] = [[] for _ in range(2 * YOUNG)]

        assert ring() is None
    assert kept
