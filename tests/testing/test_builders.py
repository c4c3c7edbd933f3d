"""Builders: the short forms have the expected meaning, and the objects are complete."""

from collections.abc import Callable

import pytest

from bayplan.api.node import HOSTNAME, ZONE
from bayplan.api.pod import HostPort, Pod, Toleration
from bayplan.api.taints import Taint
from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError
from bayplan.testing.builders import (
    RecordingClient,
    make_handle,
    make_node,
    make_object,
    make_pod,
    make_table,
)

GIB = 1024**3


def test_node_has_its_resources_in_the_schedulers_units() -> None:
    node = make_node("a", cpu="1500m", memory="2Gi", pods=7, extended={"nvidia.com/gpu": 8})

    assert node.allocatable == {
        "cpu": 1500,
        "memory": 2 * GIB,
        "pods": 7,
        "nvidia.com/gpu": 8,
    }


def test_node_without_memory_has_none() -> None:
    assert make_node(memory=None).allocatable == {"cpu": 4000, "pods": 110}


def test_node_has_a_hostname_and_a_zone() -> None:
    assert make_node("a", zone="z", labels={"tier": "prod"}).labels == {
        HOSTNAME: "a",
        ZONE: "z",
        "tier": "prod",
    }
    assert make_node("a", labels={HOSTNAME: "other"}).labels == {HOSTNAME: "other"}


def test_node_has_the_other_given_fields() -> None:
    node = make_node(
        "a", unschedulable=True, images={"nginx": 5}, features=("F",), annotations={"k": "v"}
    )

    assert (node.unschedulable, node.declared_features) == (True, ("F",))
    assert [(image.names, image.size_bytes) for image in node.images] == [(("nginx",), 5)]
    assert node.annotations == {"k": "v"}


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        pytest.param("k=v:NoSchedule", ("k", "v", "NoSchedule"), id="key, value and effect"),
        pytest.param("k:NoExecute", ("k", "", "NoExecute"), id="no value"),
        pytest.param({"key": "k", "effect": "NoSchedule"}, ("k", "", "NoSchedule"), id="tree"),
    ],
)
def test_taint(text: str, taint: tuple[str, str, str]) -> None:
    key, value, effect = taint

    assert make_node(taints=[text]).taints == (Taint(key=key, value=value, effect=effect),)


@pytest.mark.parametrize(
    ("text", "toleration"),
    [
        pytest.param("k=v:NoSchedule", ("k", "Equal", "v", "NoSchedule"), id="equal"),
        pytest.param("k=v", ("k", "Equal", "v", ""), id="equal, every effect"),
        pytest.param("k:NoExecute", ("k", "Exists", "", "NoExecute"), id="any value"),
        pytest.param("k", ("k", "Exists", "", ""), id="any value and effect"),
        pytest.param("", ("", "Exists", "", ""), id="everything"),
        pytest.param(
            {"key": "k", "operator": "Gt", "value": "3"}, ("k", "Gt", "3", ""), id="as a tree"
        ),
    ],
)
def test_toleration(text: str, toleration: tuple[str, str, str, str]) -> None:
    key, operator, value, effect = toleration
    expected = Toleration(key=key, operator=operator, value=value, effect=effect)

    assert make_pod(tolerations=[text]).tolerations == (expected,)


@pytest.mark.parametrize(
    ("given", "port"),
    [
        pytest.param(80, ("0.0.0.0", "TCP", 80), id="a number"),
        pytest.param("53/UDP", ("0.0.0.0", "UDP", 53), id="with a protocol"),
        pytest.param("10.0.0.1:80", ("10.0.0.1", "TCP", 80), id="with an address"),
        pytest.param("::1:80/SCTP", ("::1", "SCTP", 80), id="all of it"),
        pytest.param({"hostPort": 80}, ("0.0.0.0", "TCP", 80), id="as a tree"),
    ],
)
def test_host_port(given: int | str, port: tuple[str, str, int]) -> None:
    assert make_pod(host_ports=[given]).spec.host_ports == (HostPort(*port),)


def test_pod_is_the_same_as_one_from_a_cluster() -> None:
    sent = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {
                "nodeName": "a",
                "priority": 5,
                "nodeSelector": {"tier": "prod"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "containers": [
                    {
                        "name": "container-0",
                        "image": "nginx",
                        "resources": {"requests": {"cpu": "100m", "nvidia.com/gpu": "1"}},
                    }
                ],
            },
        }
    )

    made = make_pod(
        "web",
        namespace="shop",
        labels={"app": "web"},
        node_name="a",
        priority=5,
        node_selector={"tier": "prod"},
        tolerations=["gpu"],
        images=["nginx"],
        cpu="100m",
        requests={"nvidia.com/gpu": 1},
    )

    assert isinstance(sent, Pod)
    assert made.spec is sent.spec
    assert (made.key, made.labels, made.node_name) == (sent.key, sent.labels, sent.node_name)


def test_plain_pod_has_the_spec_of_a_plain_pod() -> None:
    sent = decode_object(
        {
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "container-0"}]},
        }
    )

    assert isinstance(sent, Pod)
    assert make_pod().spec is sent.spec


def test_pods_of_different_names_have_different_uids() -> None:
    assert make_pod("a").uid != make_pod("b").uid
    assert make_pod("a").uid == make_pod("a").uid
    assert make_pod("a", uid="mine").uid == "mine"


def test_pod_has_one_container_per_image() -> None:
    pod = make_pod(images=["a", "b"], cpu="1")

    assert pod.spec.images == ("a", "b")
    assert pod.requests == {"cpu": 1000}
    assert make_pod(images=[]).spec.containers is None


def test_pod_may_be_terminating_and_nominated() -> None:
    pod = make_pod(terminating=True, nominated_node_name="a", start_time="2024-01-01T00:00:00Z")

    assert (pod.is_terminating, pod.nominated_node_name) == (True, "a")
    assert pod.status.start_time == "2024-01-01T00:00:00Z"


def test_spec_and_status_take_precedence() -> None:
    pod = make_pod(priority=1, spec={"priority": 2}, status={"phase": "Failed"})

    assert (pod.priority, pod.is_finished) == (2, True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(
            lambda: make_node(taints=["gpu"]),
            'taint: expected key=value:Effect or key:Effect; got "gpu"',
            id="a taint without effect",
        ),
        pytest.param(
            lambda: make_node("a", taints=["gpu:Never"]), "node a: spec.taints", id="odd effect"
        ),
        pytest.param(
            lambda: make_pod(host_ports=["http"]), 'expected a number.*got "http"', id="odd port"
        ),
        pytest.param(
            lambda: make_table(make_node("a"), pods=[make_pod("p")]),
            "make_table: pod default/p: expected a node_name; got none",
            id="a pod on no node",
        ),
        pytest.param(lambda: make_object("Ship", "x"), 'got "Ship"', id="unknown kind"),
    ],
)
def test_a_mistake_is_reported(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_table_has_a_row_per_node_in_order_with_its_pods() -> None:
    table = make_table(
        make_node("b"),
        make_node("a"),
        pods=[make_pod("p", node_name="a", cpu="1")],
        namespaces={"blue": {"team": "blue"}},
    )

    assert table.names == ["b", "a"]
    assert table.pod_count.tolist() == [0, 1]
    assert table.requested["cpu"].tolist() == [0, 1000]
    assert table.namespace_labels("blue") == {"team": "blue"}


def test_lister_of_the_handle_finds_objects() -> None:
    here = make_object("Service", "web", namespace="shop", spec={"selector": {"app": "web"}})
    there = make_object("Service", "web")
    lister = make_handle(objects=[here, there]).lister

    assert list(lister.list("Service")) == [here, there]
    assert list(lister.list("Service", "shop")) == [here]
    assert lister.get("Service", "default", "web") is there
    assert lister.get("Service", "default", "none") is None
    assert list(lister.list("ReplicaSet")) == []


def test_handle_has_the_nominated_pods() -> None:
    pod = make_pod("p")
    nominator = make_handle(nominated={"a": [pod]}).nominator

    assert nominator.nominated_pods("a") == [pod]
    assert nominator.nominated_pods("b") == []
    nominator.delete(pod)
    assert nominator.nominated_pods("a") == []


def test_client_of_the_handle_records_its_calls() -> None:
    client, pod, other = make_handle().client, make_pod("p"), make_pod("q")
    assert isinstance(client, RecordingClient)

    client.bind(pod, "a")
    client.evict(other, pod)
    client.clear_nomination(pod)

    assert (client.bound, client.evicted, client.cleared) == ([("default/p", "a")], [other], [pod])
