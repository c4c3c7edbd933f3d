"""Custom resources: a plugin follows a CRD that is added, changed and deleted; the role of the example."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rig.live.client import LiveClient, Tree
from tests.rig.live.cluster import ClusterUnderTest, Server
from tests.rig.live.processes import Process
from tests.rig.live.schedulers import (
    BAYPLAN,
    make_config,
    scheduler_under_test,
    start_scheduler,
)
from tests.rig.trees import numa_tree

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "node-resource-topology"
NAME = "noderesourcetopologies.v1alpha2.topology.node.k8s.io"
REASON = "no NUMA zone has room for the whole pod"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
ACCOUNT = "bayplan-scheduler"
FOLDERS = {
    "ServiceAccount": ACCOUNTS,
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/kube-system/roles",
    "RoleBinding": f"{RBAC}/namespaces/kube-system/rolebindings",
}
WAIT_S = 90.0
"""Longer than the pause between two tries for a missing resource."""

pytestmark = pytest.mark.skipif(
    scheduler_under_test() != BAYPLAN, reason="the plugin is one of Bayplan's"
)


@pytest.fixture
def definition(cluster: ClusterUnderTest) -> Iterator[Tree]:
    """The definition of the example, created for the test and deleted afterwards."""
    tree: Tree = yaml.safe_load((EXAMPLE / "crd.yaml").read_text())
    yield tree
    cluster.client.delete(f"{DEFINITIONS}/{tree['metadata']['name']}")


def define(client: LiveClient, process: Process, definition: Tree) -> None:
    """Create the definition, and wait until its objects can be."""
    client.create(DEFINITIONS, definition)
    process.wait_until(lambda: client.find(TOPOLOGIES) is not None, "defined", WAIT_S)


def guaranteed(cluster: ClusterUnderTest, name: str) -> None:
    amounts = {"cpu": "2", "memory": "1Gi"}
    container = {"name": "main", "image": "app:1"}
    cluster.pod(
        name, containers=[{**container, "resources": {"requests": amounts, "limits": amounts}}]
    )


def wait_said(process: Process, words: str) -> None:
    process.wait_until(lambda: words in process.log.read_text(), f"said {words!r}", WAIT_S)


def start(cluster: ClusterUnderTest) -> Process:
    return cluster.start_scheduler("--plugins", str(EXAMPLE / "topology_match.py"))


def test_a_definition_comes_changes_and_goes_while_pods_are_scheduled(
    cluster: ClusterUnderTest, definition: Tree
) -> None:
    client = cluster.client
    cluster.node("a", room={"cpu": "16", "memory": "16Gi", "pods": "110"})
    process = start(cluster)

    guaranteed(cluster, "before")
    assert cluster.wait_bound("before") == "a"
    wait_said(process, f"{NAME}: the server does not have this resource")

    define(client, process, definition)
    client.create(TOPOLOGIES, numa_tree("a", "1"))
    wait_said(process, f"{NAME}: can be read now")
    guaranteed(cluster, "refused")
    cluster.wait_refused("refused", REASON)
    cluster.pod("burstable", {"cpu": "1"})
    assert cluster.wait_bound("burstable") == "a"

    # A change of the object wakes the pod.
    client.patch(f"{TOPOLOGIES}/a", {"zones": numa_tree("a", "2")["zones"]})
    assert cluster.wait_bound("refused") == "a"

    # Its deletion is followed, too.
    cluster.node("b")
    client.patch(f"{TOPOLOGIES}/a", {"zones": numa_tree("a", "1")["zones"]})
    client.create(TOPOLOGIES, numa_tree("b", "1"))
    guaranteed(cluster, "last")
    cluster.wait_refused("last", REASON)
    client.delete(f"{TOPOLOGIES}/b")
    assert cluster.wait_bound("last") == "b"

    # Without the definition the scheduler continues.
    client.delete(f"{DEFINITIONS}/{definition['metadata']['name']}")
    guaranteed(cluster, "after")
    assert cluster.wait_bound("after") in ("a", "b")
    said = process.log.read_text().count(f"{NAME}: the server does not have this resource")
    assert said <= 2, "once before the definition was there, once after"


def test_objects_that_are_there_at_the_start_are_known_to_the_first_pod(
    cluster: ClusterUnderTest, definition: Tree, server: Server
) -> None:
    cluster.node("small")
    cluster.node("large")
    define(cluster.client, server.api_server, definition)
    cluster.client.create(TOPOLOGIES, numa_tree("small", "1"))
    cluster.client.create(TOPOLOGIES, numa_tree("large", "3"))
    for number in range(2):
        guaranteed(cluster, f"p{number}")

    start(cluster)

    assert set(cluster.wait_all_bound(2).values()) == {"large"}


@pytest.fixture
def account(server: Server, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig for the service account of deploy/, with its roles."""
    client = LiveClient(server.kubeconfig)
    trees = list(yaml.safe_load_all((ROOT / "deploy" / "10-rbac.yaml").read_text()))
    trees += yaml.safe_load_all((EXAMPLE / "rbac.yaml").read_text())
    made = [tree for tree in trees if not is_of_example(tree)]
    for tree in made:
        client.create(FOLDERS[tree["kind"]], tree)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = client.create(f"{ACCOUNTS}/{ACCOUNT}/token", request)["status"]["token"]
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "account.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    yield path
    for tree in trees:
        client.delete(f"{FOLDERS[tree['kind']]}/{tree['metadata']['name']}")


def is_of_example(tree: Any) -> bool:
    return bool(tree["metadata"]["name"] == "bayplan-topologies")


def test_the_role_of_the_example_is_what_the_scheduler_needs(
    cluster: ClusterUnderTest, definition: Tree, account: Path, server: Server, tmp_path: Path
) -> None:
    client = cluster.client
    cluster.node("a")
    define(client, server.api_server, definition)
    client.create(TOPOLOGIES, numa_tree("a", "1"))
    config = make_config(account)
    plugins = ("--plugins", str(EXAMPLE / "topology_match.py"))
    process = start_scheduler(BAYPLAN, config, tmp_path / "account", *plugins)
    try:
        guaranteed(cluster, "before")
        assert cluster.wait_bound("before") == "a", "without the role the plugin has no objects"
        wait_said(process, "is there a role with get, list and watch?")

        for tree in yaml.safe_load_all((EXAMPLE / "rbac.yaml").read_text()):
            client.create(FOLDERS[tree["kind"]], tree)
        wait_said(process, f"{NAME}: can be read now")
        guaranteed(cluster, "after")
        cluster.wait_refused("after", REASON)
    finally:
        process.kill()
