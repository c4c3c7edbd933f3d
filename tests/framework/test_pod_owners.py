"""Belonging: the version of the selectors of Services and controllers."""

from typing import Any

from bayplan.framework.pod_owners import SelectorVersion
from bayplan.testing.builders import ObjectLister, make_object
from bayplan.testing.devices import make_class


def make_replica_set(replicas: int = 1, app: str = "web") -> Any:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}}
    return make_object("ReplicaSet", "web", namespace="default", spec=spec)


def make_service(app: str) -> Any:
    return make_object("Service", "web", namespace="default", spec={"selector": {"app": app}})


def test_a_controller_that_is_scaled_keeps_the_version() -> None:
    lister, version = ObjectLister([make_replica_set(1), make_service("web")]), SelectorVersion()
    first = version.of(lister)

    lister.add(make_replica_set(5))
    lister.add(make_class("gpu"))

    assert version.of(lister) == first


def test_the_version_changes_with_selectors_and_objects_that_have_them() -> None:
    service = make_service("web")
    lister, version = ObjectLister([make_replica_set()]), SelectorVersion()
    versions = [version.of(lister)]

    for change, obj in (
        (lister.add, service),
        (lister.add, make_service("db")),
        (lister.add, make_replica_set(app="db")),
        (lister.remove, service),
        (lister.add, service),
    ):
        change(obj)
        versions.append(version.of(lister))

    assert versions == sorted(set(versions))


def test_another_lister_has_another_version() -> None:
    version = SelectorVersion()
    first = version.of(ObjectLister([make_service("web")]))

    assert version.of(ObjectLister([make_service("db")])) != first


class PlainLister(ObjectLister):
    """A lister without a log of changes."""

    changes_since: Any = None


def test_without_a_log_of_changes_every_change_of_such_an_object_counts() -> None:
    lister, version = PlainLister([make_replica_set(1)]), SelectorVersion()
    first = version.of(lister)

    lister.add(make_replica_set(5))

    assert version.of(lister) > first
