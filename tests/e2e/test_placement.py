"""Placement: every placement rule once, by a scheduler as a separate process."""

from collections import Counter
from typing import Any

from tests.rig.live.cluster import ClusterUnderTest

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
SIZE = 600 * 1024 * 1024


def near(app: str, key: str = HOSTNAME) -> dict[str, Any]:
    """A term of pod affinity or anti-affinity."""
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_node_selector(cluster: ClusterUnderTest) -> None:
    cluster.node("slow")
    cluster.node("fast", labels={"disk": "fast"})
    cluster.start_scheduler()

    cluster.pod("picky", nodeSelector={"disk": "fast"})
    cluster.pod("hopeless", nodeSelector={"disk": "none"})

    assert cluster.wait_bound("picky") == "fast"
    assert cluster.wait_refused("hopeless").startswith(
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    )


def test_node_affinity(cluster: ClusterUnderTest) -> None:
    cluster.node("small", labels={"cores": "4"})
    cluster.node("large", labels={"cores": "16"})
    cluster.node("huge", labels={"cores": "64", "spot": "yes"})
    cluster.start_scheduler()

    required = {"nodeSelectorTerms": [expression("cores", "Gt", "8")]}
    preferred = [{"weight": 100, "preference": expression("spot", "In", "yes")}]
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    wishes = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    cluster.pod("wishes", affinity={"nodeAffinity": {**terms, **wishes}})
    without_spot = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    *expression("cores", "Gt", "8")["matchExpressions"],
                    {"key": "spot", "operator": "DoesNotExist"},
                ]
            }
        ]
    }
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": without_spot}
    cluster.pod("demands", affinity={"nodeAffinity": rule})

    assert cluster.wait_bound("wishes") == "huge"
    assert cluster.wait_bound("demands") == "large"


def test_taints_and_cordons(cluster: ClusterUnderTest) -> None:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    cluster.node("theirs", taints=[taint])
    cluster.node("closed", unschedulable=True)
    cluster.start_scheduler()

    cluster.pod("stranger")
    cluster.pod("member", tolerations=[{"key": "team", "operator": "Equal", "value": "a"}])

    assert cluster.wait_bound("member") == "theirs"
    message = cluster.wait_refused("stranger")
    assert message.startswith("0/2 nodes are available: ")
    assert "1 node(s) were unschedulable" in message
    assert "1 node(s) had untolerated taint(s)" in message


def test_pod_affinity_and_anti_affinity(cluster: ClusterUnderTest) -> None:
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        cluster.node(name, labels={ZONE: zone})
    cluster.start_scheduler()
    first = cluster.pod("db", labels={"app": "db"}, nodeSelector={ZONE: "a"})
    home = cluster.wait_bound(first["metadata"]["name"])

    together = {"requiredDuringSchedulingIgnoredDuringExecution": [near("db", ZONE)]}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [near("db")]}
    cluster.pod("close", affinity={"podAffinity": together, "podAntiAffinity": apart})
    cluster.pod("lonely", affinity={"podAffinity": {**both("missing")}})

    other = {"a1": "a2", "a2": "a1"}[home]
    assert cluster.wait_bound("close") == other
    assert "didn't match pod affinity rules" in cluster.wait_refused("lonely")

    # Existing pods count, too: a pod with the label must keep away from this one.
    cluster.pod("shy", labels={"app": "shy"}, affinity={"podAntiAffinity": both("db", HOSTNAME)})
    cluster.wait_bound("shy")
    cluster.pod("db-2", labels={"app": "db"}, nodeSelector={HOSTNAME: cluster.node_of("shy")})
    words = "didn't satisfy existing pods anti-affinity rules"
    cluster.wait_refused("db-2", words)


def both(app: str, key: str = ZONE) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [near(app, key)]}


def test_topology_spread(cluster: ClusterUnderTest) -> None:
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c")):
        cluster.node(name, labels={ZONE: zone})
    cluster.start_scheduler()

    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    for number in range(6):
        cluster.pod(f"web-{number}", labels={"app": "web"}, topologySpreadConstraints=[rule])
    nodes = cluster.wait_all_bound(6)
    cluster.pod(
        "full",
        labels={"app": "web"},
        nodeSelector={HOSTNAME: "c1"},
        topologySpreadConstraints=[rule],
    )
    cluster.wait_bound("full")  # the skew becomes one, if the selector leaves it to c alone
    cluster.pod(
        "more",
        labels={"app": "web"},
        tolerations=[],
        topologySpreadConstraints=[{**rule, "nodeAffinityPolicy": "Ignore"}],
        nodeSelector={HOSTNAME: "c1"},
    )

    assert Counter(node[0] for node in nodes.values()) == {"a": 2, "b": 2, "c": 2}
    assert "didn't match pod topology spread constraints" in cluster.wait_refused("more")


def test_host_ports(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.node("b")
    cluster.start_scheduler()

    for name in ("one", "two", "three"):
        container = {"name": "main", "image": "app:1", "ports": [{"containerPort": 80}]}
        container["ports"][0]["hostPort"] = 8080  # type: ignore[index]
        cluster.pod(name, containers=[container])
    nodes = cluster.wait_all_bound(2)

    (left,) = {"one", "two", "three"} - set(nodes)
    assert sorted(nodes.values()) == ["a", "b"]
    assert "2 node(s) didn't have free ports" in cluster.wait_refused(left)


def test_resources(cluster: ClusterUnderTest) -> None:
    cluster.node("cpus", room={"cpu": "8", "example.com/gpu": "0"})
    cluster.node("gpus", room={"cpu": "2", "example.com/gpu": "2"})
    cluster.start_scheduler()

    cluster.pod("wide", {"cpu": "6"})
    cluster.pod("sharp", {"cpu": "1", "example.com/gpu": "2"})
    assert cluster.wait_bound("wide") == "cpus"
    assert cluster.wait_bound("sharp") == "gpus"
    cluster.pod("late", {"cpu": "1", "example.com/gpu": "1"})
    cluster.pod("fat", {"cpu": "3", "memory": "1Gi"})

    assert "2 Insufficient example.com/gpu" in cluster.wait_refused("late")
    assert "2 Insufficient cpu" in cluster.wait_refused("fat")

    cluster.client.delete(cluster.path("Pod", "sharp"), gracePeriodSeconds=0)
    assert cluster.wait_bound("late") == "gpus"


def test_the_emptier_node_is_chosen(cluster: ClusterUnderTest) -> None:
    cluster.node("empty")
    cluster.node("busy")
    cluster.pod("there", {"cpu": "3", "memory": "6Gi"}, nodeName="busy")
    cluster.start_scheduler()

    cluster.pod("new", {"cpu": "500m"})

    assert cluster.wait_bound("new") == "empty"


def test_the_node_that_has_the_image_is_chosen(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.node("b", images=[{"names": ["big:1"], "sizeBytes": 2 * SIZE}])
    cluster.start_scheduler()

    for number in range(2):
        cluster.pod(f"p-{number}", containers=[{"name": "main", "image": "big:1"}])

    assert set(cluster.wait_all_bound(2).values()) == {"b"}


def test_pods_of_higher_priority_come_first(cluster: ClusterUnderTest) -> None:
    name = cluster.namespace
    cluster.make("PriorityClass", f"{name}-high", value=1000, preemptionPolicy="Never")
    cluster.make("PriorityClass", f"{name}-low", value=-5)
    cluster.node("a", room={"cpu": "1"})
    cluster.pod("low", {"cpu": "1"}, priorityClassName=f"{name}-low")
    cluster.pod("middle", {"cpu": "1"})
    cluster.pod("high", {"cpu": "1"}, priorityClassName=f"{name}-high")

    cluster.start_scheduler()

    assert cluster.wait_bound("high") == "a"
    cluster.wait_refused("low", "Insufficient cpu")
    cluster.wait_refused("middle", "Insufficient cpu")
    cluster.client.delete(cluster.path("Pod", "high"), gracePeriodSeconds=0)
    assert cluster.wait_bound("middle") == "a"
    assert cluster.node_of("low") == ""


def test_scheduling_gates(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.start_scheduler()

    cluster.pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    cluster.pod("open")
    assert cluster.wait_bound("open") == "a"
    assert "non-empty scheduling gates" in cluster.wait_refused("gated")
    assert cluster.node_of("gated") == ""
    cluster.client.patch(cluster.path("Pod", "gated"), {"spec": {"schedulingGates": None}})

    assert cluster.wait_bound("gated") == "a"


def test_pods_of_other_schedulers_are_ignored(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.start_scheduler(
        profiles=[{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]
    )

    cluster.pod("foreign", schedulerName="somebody-else")
    cluster.pod("second", schedulerName="second")
    cluster.pod("first")

    assert cluster.wait_all_bound(2) == {"first": "a", "second": "a"}
    assert cluster.node_of("foreign") == ""


def test_events_are_recorded(cluster: ClusterUnderTest) -> None:
    cluster.node("a", room={"cpu": "1"})
    cluster.start_scheduler()

    cluster.pod("placed", {"cpu": "1"})
    cluster.wait_bound("placed")
    cluster.pod("waiting", {"cpu": "1"})
    cluster.wait_refused("waiting")

    placed = cluster.wait_event("placed", "Scheduled")
    assert placed["note"] == f"Successfully assigned {cluster.namespace}/placed to a"
    assert (placed["type"], placed["action"]) == ("Normal", "Binding")
    waiting = cluster.wait_event("waiting", "FailedScheduling")
    assert waiting["note"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (waiting["type"], waiting["action"]) == ("Warning", "Scheduling")
    assert waiting["reportingController"] == "default-scheduler"
