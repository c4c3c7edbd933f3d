"""Custom resources: objects of a plugin's own kinds wake the pods that it refused."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.errors import PluginError
from bayplan.framework import (
    SUCCESS,
    ActionType,
    CustomResource,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Hint,
    NodeInfo,
    ScorePlugin,
    Status,
    unschedulable,
    wait_for,
)
from bayplan.framework.registration import declared_events
from bayplan.scheduler.catalog import input_needs
from bayplan.testing.builders import make_custom, make_node, make_object, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from tests.rig.scenarios import Scenario

PERMITS = CustomResource("permits.v1.example.com", "Permit", is_namespaced=False)
OTHERS = CustomResource("others.v1.example.com", "Other")


class NeedsPermit(FilterPlugin):
    """A node takes pods while a Permit of its name allows it."""

    name = "NeedsPermit"
    custom_resources: ClassVar[tuple[CustomResource, ...]] = (PERMITS,)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        permit = self.handle.custom_objects(PERMITS.name).get(node.name)
        is_open = permit is not None and permit.raw["spec"]["open"]
        return SUCCESS if is_open else unschedulable("no permit")

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            wait_for(PERMITS.name, ActionType.Add | ActionType.Update, self._after_permit),
            wait_for(PERMITS.name, ActionType.Delete),
        )

    def _after_permit(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if new.raw["spec"]["open"] else Hint.SKIP


class AnyChange(NeedsPermit):
    """Registers no events."""

    name = "AnyChange"

    def events_to_register(self) -> Sequence[EventWithHint]:
        return FilterPlugin.events_to_register(self)


class WatchesOthers(NeedsPermit):
    """Another plugin with events of another resource."""

    name = "WatchesOthers"
    custom_resources = (PERMITS, OTHERS)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (wait_for(OTHERS.name, ActionType.All),)


def permit(is_open: bool = True, name: str = "n") -> Any:
    return make_custom(PERMITS, name, spec={"open": is_open})


def refused(plugin: type[FilterPlugin], *objects: Any) -> Scenario:
    """A scheduler that refused one pod; its backoff is over."""
    scenario = Scenario(make_node("n"), *objects, plugins=[plugin])
    scenario.add(make_pod("p"))
    assert all("no permit" in attempt.message for attempt in scenario.run())
    scenario.advance(20)
    scenario.run()
    return scenario


def waits(scenario: Scenario) -> bool:
    """Whether the pod is neither tried nor placed."""
    return not scenario.run()


def node_of(scenario: Scenario, name: str = "p") -> str:
    found: Pod = scenario.cluster.get("Pod", "default", name)
    return found.node_name


@pytest.mark.parametrize("plugin", [NeedsPermit, AnyChange])
def test_a_new_object_wakes_the_pod(plugin: type[FilterPlugin]) -> None:
    scenario = refused(plugin)

    scenario.add(permit())
    scenario.run()

    assert node_of(scenario) == "n"


def test_a_changed_object_wakes_the_pod_when_the_hint_says_so() -> None:
    scenario = refused(NeedsPermit, permit(is_open=False))

    scenario.cluster.update(permit(is_open=False))
    assert waits(scenario)

    scenario.cluster.update(permit())
    scenario.run()
    assert node_of(scenario) == "n"


def test_a_deleted_object_is_gone_for_the_next_pod_and_wakes_those_that_wait() -> None:
    scenario = Scenario(make_node("n"), permit(), plugins=[NeedsPermit])
    scenario.add(make_pod("first"))
    scenario.run()
    assert node_of(scenario, "first") == "n"

    scenario.cluster.delete(permit())
    scenario.add(make_pod("second"))
    (attempt,) = scenario.run()
    assert "no permit" in attempt.message

    scenario.advance(20)
    scenario.add(permit(name="other"))
    scenario.run()
    scenario.advance(20)
    scenario.cluster.delete(permit(name="other"))
    assert [attempt.pod.name for attempt in scenario.run()] == ["second"]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(make_object("Service", "s"), id="a known kind"),
        pytest.param(make_object("PersistentVolume", "v"), id="a kind that others wait for"),
        pytest.param(make_custom(OTHERS, "o"), id="another custom resource"),
    ],
)
def test_objects_of_other_kinds_leave_the_pod_waiting(obj: Any) -> None:
    scenario = refused(NeedsPermit)

    scenario.add(obj)

    assert waits(scenario)


def test_events_of_another_resource_are_not_those_of_this_one() -> None:
    scenario = refused(WatchesOthers)

    scenario.add(permit())
    assert waits(scenario)

    scenario.add(make_custom(OTHERS, "o"))
    assert len(scenario.run()) == 1


def test_a_plugin_that_says_nothing_waits_for_its_own_resources_too() -> None:
    scenario = Scenario(make_node("n"), plugins=[AnyChange])
    (profile,) = scenario.scheduler.profiles.values()

    waited = {wanted.event.resource for wanted in declared_events(profile.plugins["AnyChange"])}

    assert PERMITS.name in waited
    assert "Node" in waited


def waiting_for(resource: str) -> type[FilterPlugin]:
    def events(self: Any) -> Sequence[EventWithHint]:
        return (wait_for(resource, ActionType.Add),)

    return type("Odd", (NeedsPermit,), {"name": "Odd", "events_to_register": events})


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        pytest.param(
            "Nodes",
            'Odd: events_to_register: expected a resource such as Node, or foos.v1.example.com; got "Nodes"; '
            "did you mean Node?",
            id="a known kind, misspelt",
        ),
        pytest.param("Permit", 'got "Permit"', id="the kind of a custom resource"),
        pytest.param(
            "permit.v1.example.com",
            "expected permit.v1.example.com in custom_resources; got permits.v1.example.com",
            id="not the plural",
        ),
    ],
)
def test_a_wrong_name_is_refused_when_the_scheduler_is_built(resource: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        Scenario(make_node("n"), plugins=[waiting_for(resource)])
    assert message in str(caught.value)

    with pytest.raises(AssertionError) as failed:
        check_conformance(waiting_for(resource), [make_pod()], make_table(make_node("n")))
    assert message in str(failed.value)


def test_an_action_that_custom_objects_do_not_have_is_refused() -> None:
    def events(self: Any) -> Sequence[EventWithHint]:
        return (wait_for(PERMITS.name, ActionType.Add | ActionType.UpdateNodeLabel),)

    odd = type("Odd", (NeedsPermit,), {"name": "Odd", "events_to_register": events})

    with pytest.raises(PluginError, match=r"Add, Update, Delete or All; got Add\|UpdateNodeLabel"):
        Scenario(make_node("n"), plugins=[odd])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        pytest.param(
            ("permits.v1.example.com",), "expected a CustomResource; got 'perm", id="text"
        ),
        pytest.param(
            (PERMITS, CustomResource("Foo", "Foo")), r"custom_resources\[1\]: name: ", id="a kind"
        ),
    ],
)
def test_a_wrong_declaration_is_refused(declared: Any, message: str) -> None:
    wrong = type("Wrong", (NeedsPermit,), {"name": "Wrong", "custom_resources": declared})

    with pytest.raises(PluginError, match=message):
        Scenario(make_node("n"), plugins=[wrong])


def test_plugins_must_agree_on_a_resource() -> None:
    other = (CustomResource(PERMITS.name, "Permit", is_namespaced=True),)
    second = type("Second", (NeedsPermit,), {"name": "Second", "custom_resources": other})

    with pytest.raises(PluginError, match="as NeedsPermit has it: kind Permit, cluster-scoped"):
        Scenario(make_node("n"), plugins=[NeedsPermit, second])


class ReadsUndeclared(ScorePlugin):
    name = "ReadsUndeclared"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(self.handle.custom_objects(PERMITS.name).list())


def test_reading_what_is_not_declared_is_an_error_that_names_the_attribute() -> None:
    scenario = Scenario(make_node("n"), make_node("m"), plugins=[ReadsUndeclared])
    scenario.add(make_pod("p"))

    (attempt,) = scenario.run()

    assert "expected a name in custom_resources (none)" in attempt.message


def test_conformance_finds_a_scope_that_leaves_out_the_objects() -> None:
    from bayplan.framework import NODE_OBJECT

    objects, table = [permit()], make_table(make_node("n"), make_node("m"))
    check_conformance(NeedsPermit, [make_pod()], table, objects=objects)
    cached = type("Cached", (NeedsPermit,), {"name": "Cached", "scope": NODE_OBJECT})
    with pytest.raises(AssertionError, match="with no object"):
        check_conformance(cached, [make_pod()], table, objects=objects)

    def cluster_key(self: Any, table: Any) -> int:
        return int(self.handle.custom_objects(PERMITS.name).version)

    keyed = type("Keyed", (cached,), {"name": "Keyed", "cluster_key": cluster_key})
    check_conformance(keyed, [make_pod()], table, objects=objects)


def test_what_files_must_have_for_a_plugin_is_known_before_they_are_read() -> None:
    assert input_needs(default_config()).custom_resources == ()
    assert input_needs(default_config(), [NeedsPermit]).custom_resources == (PERMITS,)
