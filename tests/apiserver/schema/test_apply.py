"""Server-side apply: ownership of fields."""

from typing import Any

import pytest

from bayplan.apiserver.schema.apply import ApplyConflictError, Manager, apply

TYPE = "apps.v1.Deployment"
ONE = Manager("one", "apps/v1", "2026-01-01T00:00:00Z")
TWO = Manager("two", "apps/v1", "2026-01-02T00:00:00Z")


def config(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": spec}


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


def test_fields_a_manager_no_longer_sets_are_removed() -> None:
    first = apply({}, config(replicas=2, paused=True), TYPE, ONE)

    second = apply(first, config(replicas=2), TYPE, ONE)

    assert first["spec"] == {"replicas": 2, "paused": True}
    assert second["spec"] == {"replicas": 2}


def test_fields_of_another_manager_stay() -> None:
    both = apply(
        apply({}, config(replicas=2, paused=True), TYPE, ONE), config(paused=True), TYPE, TWO
    )

    left = apply(both, config(replicas=2), TYPE, ONE)

    assert left["spec"] == {"replicas": 2, "paused": True}


def test_another_value_for_a_field_of_another_manager_is_a_conflict() -> None:
    live = apply({}, config(replicas=2), TYPE, ONE)

    with pytest.raises(ApplyConflictError) as caught:
        apply(live, config(replicas=3), TYPE, TWO)

    assert caught.value.conflicts == [("one", ".spec.replicas")]


def test_force_changes_the_owner_of_a_field() -> None:
    live = apply(
        apply({}, config(replicas=2), TYPE, ONE), config(replicas=3), TYPE, TWO, force=True
    )

    assert live["spec"] == {"replicas": 3}
    assert [entry["manager"] for entry in live["metadata"]["managedFields"]] == ["two"]
    assert apply(live, config(), TYPE, ONE)["spec"] == {"replicas": 3}


def test_items_of_a_list_belong_to_the_managers_that_set_them() -> None:
    main, side = {"name": "main", "image": "a"}, {"name": "side", "image": "b"}
    live = apply({}, config(template=pod(main)), TYPE, ONE)
    live = apply(live, config(template=pod(side)), TYPE, TWO)

    left = apply(live, config(template=pod()), TYPE, ONE)

    assert live["spec"]["template"]["spec"]["containers"] == [main, side]
    assert left["spec"]["template"]["spec"]["containers"] == [side]


def test_conflict_names_the_element() -> None:
    live = apply({}, config(template=pod({"name": "main", "image": "a"})), TYPE, ONE)

    with pytest.raises(ApplyConflictError) as caught:
        apply(live, config(template=pod({"name": "main", "image": "b"})), TYPE, TWO)

    path = '.spec.template.spec.containers[name="main"].image'
    assert caught.value.conflicts == [("one", path)]


def test_applying_twice_changes_nothing() -> None:
    live = apply({}, config(replicas=2, template=pod({"name": "m", "image": "a"})), TYPE, ONE)
    later = ONE._replace(time="2027-01-01T00:00:00Z")

    again = apply(live, config(replicas=2, template=pod({"name": "m", "image": "a"})), TYPE, later)

    assert again == live


def test_atomic_values_are_replaced_as_a_whole() -> None:
    live = apply({}, config(selector={"matchLabels": {"a": "1"}}), TYPE, ONE)

    live = apply(live, config(selector={"matchLabels": {"b": "1"}}), TYPE, ONE)

    assert live["spec"]["selector"] == {"matchLabels": {"b": "1"}}
