"""Volumes: claims and the nodes that reach them: bound, selected or provisioned."""

from typing import Any

from tests.rig.live.cluster import ClusterUnderTest

HOSTNAME = "kubernetes.io/hostname"
WAIT = "WaitForFirstConsumer"


def make_class(
    cluster: ClusterUnderTest, mode: str = WAIT, provisioner: str = "test.bayplan.dev"
) -> str:
    name = f"{cluster.namespace}-{mode.lower()}"
    cluster.make("StorageClass", name, provisioner=provisioner, volumeBindingMode=mode)
    return name


def make_claim(cluster: ClusterUnderTest, name: str, storage_class: str, **spec: Any) -> None:
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.make(
        "PersistentVolumeClaim", name, spec={**wants, "storageClassName": storage_class, **spec}
    )


def make_volume(
    cluster: ClusterUnderTest,
    name: str,
    node: str,
    storage_class: str,
    size: str = "1Gi",
    **spec: Any,
) -> None:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    offers = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": f"/volumes/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    cluster.make("PersistentVolume", name, spec={**offers, **spec})


def uses(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def claim_of(cluster: ClusterUnderTest, name: str) -> Any:
    return cluster.client.get(cluster.path("PersistentVolumeClaim", name))


def test_a_pod_goes_where_its_volume_is(cluster: ClusterUnderTest) -> None:
    for name in ("a", "b", "c"):
        cluster.node(name)
    storage_class = make_class(cluster, "Immediate", "kubernetes.io/no-provisioner")
    wanted = {"namespace": cluster.namespace, "name": "data"}
    make_volume(cluster, f"{cluster.namespace}-v", "b", storage_class, claimRef=wanted)
    make_claim(cluster, "data", storage_class, volumeName=f"{cluster.namespace}-v")
    cluster.start_scheduler()

    cluster.pod("reader", **uses("data"))
    cluster.pod("lost", **uses("missing"))

    assert cluster.wait_bound("reader") == "b"
    assert 'persistentvolumeclaim "missing" not found' in cluster.wait_refused("lost")


def test_a_volume_is_provisioned_for_the_pods_node(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.node("b", labels={"disk": "fast"})
    make_claim(cluster, "data", make_class(cluster))
    cluster.start_scheduler()

    cluster.pod("writer", nodeSelector={"disk": "fast"}, **uses("data"))

    assert cluster.wait_bound("writer") == "b"
    claim = claim_of(cluster, "data")
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "b"


def test_a_volume_is_chosen_with_the_node(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    cluster.node("b")
    storage_class = make_class(cluster, WAIT, "kubernetes.io/no-provisioner")
    small, large = f"{cluster.namespace}-small", f"{cluster.namespace}-large"
    make_volume(cluster, small, "a", storage_class, "512Mi")
    make_volume(cluster, large, "b", storage_class, "5Gi")
    make_claim(cluster, "data", storage_class)
    make_claim(cluster, "more", storage_class)
    cluster.start_scheduler()

    cluster.pod("writer", **uses("data"))

    assert cluster.wait_bound("writer") == "b"
    assert claim_of(cluster, "data")["spec"]["volumeName"] == large
    cluster.pod("second", **uses("more"))
    words = "node(s) didn't find available persistent volumes to bind"
    cluster.wait_refused("second", words)
    make_volume(cluster, f"{cluster.namespace}-new", "a", storage_class)
    assert cluster.wait_bound("second") == "a"


def test_the_volume_limit_of_a_node(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    driver = {"name": "test.bayplan.dev", "nodeID": "a", "allocatable": {"count": 1}}
    cluster.make("CSINode", "a", spec={"drivers": [{**driver, "topologyKeys": [HOSTNAME]}]})
    storage_class = make_class(cluster)
    make_claim(cluster, "one", storage_class)
    make_claim(cluster, "two", storage_class)
    cluster.start_scheduler()

    cluster.pod("first", **uses("one"))
    assert cluster.wait_bound("first") == "a"
    cluster.pod("second", **uses("two"))

    cluster.wait_refused("second", "node(s) exceed max volume count")
