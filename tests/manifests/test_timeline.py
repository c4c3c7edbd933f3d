"""Timeline: decoding, and errors."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.errors import DecodeError
from bayplan.manifests.timeline import TimelineTarget
from bayplan.sim import Timeline

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def read(*events: Any) -> Timeline:
    tree = {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "events": list(events)}
    timeline = decode_object(tree)
    assert isinstance(timeline, Timeline)
    return timeline


def test_an_event_has_a_time_and_objects_to_add_change_and_remove() -> None:
    patch = {"kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": None}
    (event,) = read(
        {"at": "1h30m", "add": [NODE], "change": [patch], "remove": ["node/a", "pod/shop/b"]}
    ).events

    assert event.at_s == 5400
    assert [obj.name for obj in event.add] == ["n"]
    assert event.change[0].ref == TimelineTarget("Deployment", "shop", "web")
    assert "spec" in event.change[0].patch  # a null is a part of the patch
    assert [str(ref) for ref in event.remove] == ["node/a", "pod/shop/b"]


def test_a_list_of_objects_can_be_added_and_the_default_namespace_left_out() -> None:
    items = {"kind": "List", "items": [NODE, {**NODE, "metadata": {"name": "m"}}]}
    (event,) = read({"at": "0", "add": [items], "remove": ["pod/a"]}).events

    assert [obj.name for obj in event.add] == ["n", "m"]
    assert event.remove == (TimelineTarget("Pod", "default", "a"),)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            {"add": [NODE]},
            "events[0].at: expected a duration such as 90s, 5m or 1h30m; got none",
            id="no time",
        ),
        pytest.param(
            {"at": "soon", "add": [NODE]},
            'events[0].at: expected a duration such as 90s, 5m or 1h30m; got "soon"',
            id="no duration",
        ),
        pytest.param(
            {"at": 90, "add": [NODE]},
            "events[0].at: expected a duration such as 90s, 5m or 1h30m; got 90",
            id="no unit",
        ),
        pytest.param(
            {"at": "1s"},
            "events[0]: expected add, change or remove; got none of them",
            id="nothing happens",
        ),
        pytest.param(
            {"at": "1s", "removes": ["node/a"]},
            "events[0].removes: expected one of at, add, change, remove",
            id="another field",
        ),
        pytest.param(
            {"at": "1s", "remove": "node/a"},
            'events[0].remove: expected a list; got "node/a"',
            id="no list",
        ),
        pytest.param(
            {"at": "1s", "remove": ["node"]},
            'events[0].remove[0]: expected kind/name or kind/namespace/name; got "node"',
            id="no name",
        ),
        pytest.param(
            {"at": "1s", "remove": ["node/a", "car/b"]},
            "events[0].remove[1]: expected kind/name or kind/namespace/name of a kind we know; "
            'got "car/b"',
            id="unknown kind to remove",
        ),
        pytest.param(
            {"at": "1s", "remove": ["node/a/b"]},
            'events[0].remove[0]: expected kind/name; got "node/a/b"',
            id="a namespace where there is none",
        ),
        pytest.param(
            {"at": "1s", "change": [{"kind": "Node"}]},
            "events[0].change[0].metadata.name: expected the name of an object; got none",
            id="a change without a name",
        ),
        pytest.param(
            {"at": "1s", "change": [{"kind": "Car", "metadata": {"name": "a"}}]},
            'events[0].change[0].kind: expected a kind we know; got "Car"',
            id="unknown kind to change",
        ),
        pytest.param(
            {"at": "1s", "add": [NODE, {"kind": "Pod", "metadata": {"name": "a"}, "spec": 7}]},
            "events[0].add[1]: pod default/a: spec: expected object, got integer",
            id="a bad object",
        ),
        pytest.param(
            {"at": "1s", "add": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
            "events[0].add[0]: expected an object that affects scheduling; got a ConfigMap",
            id="an object of an ignored kind",
        ),
        pytest.param(
            "x" * 1000,
            f'events[0]: expected an object with at, add, change, remove; got "{"x" * 100}…"',
            id="a long text, of which the beginning is shown",
        ),
        pytest.param(
            7, "events[0]: expected an object with at, add, change, remove; got 7", id="no object"
        ),
    ],
)
def test_an_invalid_timeline(event: Any, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read(event)

    assert str(caught.value) == f"timeline: {expected}"


def test_a_timeline_without_events() -> None:
    with pytest.raises(DecodeError, match="events: expected a list of events; got none"):
        decode_object({"apiVersion": "bayplan.dev/v1", "kind": "Timeline"})


def read_series(*series: Any) -> Timeline:
    tree = {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "series": list(series)}
    timeline = decode_object(tree)
    assert isinstance(timeline, Timeline)
    return timeline


def points(*pairs: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"at": at, "replicas": replicas} for at, replicas in pairs]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, [(0, 3), (32400, 40)], id="once"),
        pytest.param(
            {"every": "24h", "until": "25h"},
            [(0, 3), (32400, 40), (86400, 3), (118800, 40)],
            id="as often as it begins before its end",
        ),
        pytest.param(
            {"minReplicas": 4, "maxReplicas": 30}, [(0, 4), (32400, 30)], id="within its bounds"
        ),
    ],
)
def test_a_series_of_replicas(more: dict[str, Any], expected: list[tuple[int, int]]) -> None:
    series = {"target": "deployment/shop/web", "replicas": points(("0s", 3), ("9h", 40))} | more

    timeline = read_series(series)

    scales = [(event.at_s, event.scale[0]) for event in timeline.events]
    assert [(at_s, scale.replicas) for at_s, scale in scales] == expected
    assert {scale.ref for _, scale in scales} == {TimelineTarget("Deployment", "shop", "web")}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            {"target": "node/a"},
            "target: expected a workload with replicas (Deployment, ReplicaSet, "
            'ReplicationController, StatefulSet) or a HorizontalPodAutoscaler; got "node/a"',
            id="a kind without replicas",
        ),
        pytest.param(
            {"replicas": points(("1h", 3), ("1h", 4))},
            'replicas[1].at: expected a later time than the one before; got "1h"',
            id="times that are not in order",
        ),
        pytest.param(
            {"replicas": points(("1h", -3))},
            "replicas[0].replicas: expected a number of pods, 0 or more; got -3",
            id="a negative number",
        ),
        pytest.param(
            {"replicas": []},
            "replicas: expected a list of times and numbers; got none",
            id="no points",
        ),
        pytest.param(
            {"replicas": [{"at": "1h"}]},
            "replicas[0]: expected an object with at and replicas; got an object",
            id="a point without replicas",
        ),
        pytest.param(
            {"every": "1h", "until": "2h"},
            'every: expected more than the last time of the series; got "1h"',
            id="a repetition that is too short",
        ),
        pytest.param(
            {"every": "61m"},
            "until: expected a duration such as 90s, 5m or 1h30m; got none",
            id="a repetition without an end",
        ),
        pytest.param(
            {"every": "61m", "until": "999999h"},
            "until: expected at most 100,000 changes of replicas",
            id="too many repetitions",
        ),
        pytest.param(
            {"minReplicas": 5, "maxReplicas": 4},
            "maxReplicas: expected minReplicas or more; got 4",
            id="bounds in the wrong order",
        ),
        pytest.param(
            {"pods": 4},
            "pods: expected one of target, replicas, minReplicas, maxReplicas, every, until",
            id="another field",
        ),
    ],
)
def test_an_invalid_series(change: dict[str, Any], expected: str) -> None:
    series = {"target": "deployment/web", "replicas": points(("1h", 3))} | change

    with pytest.raises(DecodeError) as caught:
        read_series(series)

    assert str(caught.value) == f"timeline: series[0].{expected}"
