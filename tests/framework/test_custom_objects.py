"""Custom resources that a plugin reads through its handle."""

import pytest

from bayplan.errors import PluginError
from bayplan.framework import CustomResource
from bayplan.testing.builders import make_custom, make_handle, make_object

FOOS = CustomResource("foos.v1.example.com", "Foo")
RACKS = CustomResource("racks.v1.example.com", "Rack", is_namespaced=False)


def test_objects_are_found_by_namespace_and_name() -> None:
    a, b = make_custom(FOOS, "a", namespace="x"), make_custom(FOOS, "a", namespace="y")
    rack = make_custom(RACKS, "r")
    handle = make_handle(objects=[a, b, rack])

    foos = handle.custom_objects(FOOS.name)

    assert foos.get("a", "y") is b
    assert foos.get("a") is None
    assert foos.list() == [a, b]
    assert foos.list("x") == [a]
    assert handle.custom_objects(RACKS.name).get("r") is rack


def test_the_version_changes_with_objects_of_the_resource_alone() -> None:
    handle = make_handle()
    foos, version = handle.custom_objects(FOOS.name), handle.custom_objects(FOOS.name).version

    handle.lister.add(make_object("Service", "s"))  # type: ignore[attr-defined]
    handle.lister.add(make_custom(RACKS, "r"))  # type: ignore[attr-defined]
    assert foos.version == version

    handle.lister.add(make_custom(FOOS, "a"))  # type: ignore[attr-defined]
    assert foos.version != version
    assert handle.custom_objects(FOOS.name).version == foos.version


def test_what_no_plugin_declares_is_refused_by_name() -> None:
    handle = make_handle()
    handle.custom_resources = {FOOS.name: FOOS}

    with pytest.raises(PluginError, match=r'custom_resources \(foos.v1.example.com\); got "foo'):
        handle.custom_objects("foo.v1.example.com")
