"""Build: settings of a scheduler, as an object and as keywords."""

import pytest

from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.config.defaults import default_config
from bayplan.scheduler import FirstByName, Scheduler, SchedulerSettings, build_scheduler
from bayplan.testing.builders import make_node, make_pod


def explanation_of_an_attempt(scheduler: Scheduler) -> object:
    scheduler.on_add(make_node("a"))
    scheduler.on_add(make_pod("p"))
    attempt = scheduler.schedule_one()
    assert attempt is not None
    return attempt.explanation


def test_keywords_are_fields_of_the_settings() -> None:
    clock, ties = ManualClock(), FirstByName()

    by_keyword = build_scheduler(default_config(), MemoryCluster(), clock=clock, ties=ties)
    by_object = build_scheduler(
        default_config(), MemoryCluster(), SchedulerSettings(clock=clock, ties=ties)
    )

    assert (by_keyword.clock, by_keyword.ties) == (by_object.clock, by_object.ties) == (clock, ties)


def test_a_keyword_replaces_a_field_of_the_given_settings() -> None:
    settings = SchedulerSettings(clock=ManualClock(), explain=True)

    plain = build_scheduler(default_config(), MemoryCluster(), settings, explain=False)
    explaining = build_scheduler(default_config(), MemoryCluster(), settings)

    assert explanation_of_an_attempt(plain) is None
    assert explanation_of_an_attempt(explaining) is not None


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="'colour'"):
        build_scheduler(default_config(), MemoryCluster(), colour="blue")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        SchedulerSettings().seed = 1  # type: ignore[misc]
