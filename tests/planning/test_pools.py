"""Pools: results of documents, and messages about faulty ones."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.node import ZONE, Node
from bayplan.api.taints import Taint
from bayplan.config.problems import Problems
from bayplan.errors import InputError
from bayplan.planning import NodeBudget, PoolReading, read_instance_table, read_pools
from bayplan.planning.instance_types import NO_TABLE
from bayplan.planning.node_groups import GroupSize, find_groups, read_status

EXAMPLES = Path(__file__).parents[2] / "examples" / "plan"
CSV = """\
# a comment
name,cpu,memory,gpu,price,spot_price,zones,kubernetes.io/arch
m5.large,2,8Gi,,0.096,0.04,a b,amd64
m5.xlarge,4,16Gi,,0.192,,a b,amd64
m6g.large,2,8Gi,,0.077,0.03,a,arm64
g4dn.xlarge,4,16Gi,1,0.526,,b c,amd64
"""


def make_pool(**spec: Any) -> dict[str, Any]:
    types = [{"name": "small", "capacity": {"cpu": 2, "memory": "8Gi"}, "price": 0.1}]
    return {
        "apiVersion": "bayplan.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "web"},
        "spec": {"nodeTypes": types} | spec,
    }


def make_karpenter(*requirements: tuple[str, str, list[str]], **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"team": "shop"}},
        "spec": {
            "nodeClassRef": {"name": "default"},
            "startupTaints": [{"key": "cni", "effect": "NoExecute"}],
            "requirements": [
                {"key": key, "operator": operator, "values": values}
                for key, operator, values in requirements
            ],
        },
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "kp"},
        "spec": {"template": template} | spec,
    }


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("types.csv").write_text(CSV)


def read(*documents: Any, table: bool = False) -> PoolReading:
    Path("pools.yaml").write_text(yaml.safe_dump_all(documents))
    return read_pools(["pools.yaml"], read_instance_table("types.csv") if table else NO_TABLE)


def names(reading: PoolReading) -> list[str]:
    return [one.name for _, one in reading.types]


def test_a_type_makes_a_node_with_all_that_pods_can_ask_for() -> None:
    gpu = {"driver": "gpu.example.com", "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}
    small = {
        "name": "small",
        "capacity": {"cpu": 2, "memory": "8Gi", "example.com/fpga": 1},
        "overhead": {"cpu": "100m"},
        "labels": {"disk": "ssd"},
        "price": 0.1,
        "csiLimits": {"ebs.csi.aws.com": 25},
        "devices": [gpu],
    }
    taint = {"key": "spot", "effect": "NoSchedule"}
    reading = read(
        make_pool(nodeTypes=[small], taints=[taint], labels={"tier": "web"}, zones=["a"])
    )

    node, csi_node, devices = reading.pools[0].types[0].make_objects("n1", "a")

    assert isinstance(node, Node)
    assert node.allocatable == {
        "cpu": 1900,
        "memory": 8 << 30,
        "example.com/fpga": 1,
        "pods": 110,
    }
    assert node.capacity["cpu"] == 2000
    assert node.labels == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": "n1",
        "node.kubernetes.io/instance-type": "small",
        "bayplan.dev/pool": "web",
        "tier": "web",
        "disk": "ssd",
        ZONE: "a",
    }
    assert node.taints == (Taint(key="spot", effect="NoSchedule"),)
    assert node.annotations == {"bayplan.dev/cost": "0.1"}
    assert csi_node.limits == {"ebs.csi.aws.com": 25}  # type: ignore[union-attr]
    assert devices.spec.node_name == "n1"  # type: ignore[union-attr]
    assert [one.name for one in devices.spec.devices] == ["gpu-0", "gpu-1"]  # type: ignore[union-attr]


def test_a_node_that_boots_has_its_startup_taints_and_is_not_ready() -> None:
    (pool,) = read(make_pool(startupTaints=[{"key": "cni", "effect": "NoExecute"}])).pools

    booting = pool.types[0].make_node("n1", is_booting=True)
    ready = pool.types[0].make_node("n1")

    assert [taint.key for taint in booting.taints] == ["cni"]
    assert ready.taints == ()
    assert [node.conditions[0].status for node in (booting, ready)] == ["False", "True"]


def test_limits_and_disruption_are_read() -> None:
    budgets = [{"nodes": "20%", "reasons": ["Empty"]}, {"nodes": 5}]
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s", "budgets": budgets}
    pool = read(
        make_pool(minimum=1, maximum=3, limits={"cpu": 5}, disruption=disruption, expireAfter="24h")
    ).pools[0]

    assert (pool.minimum, pool.maximum, pool.expire_after_s) == (1, 3, 86400)
    assert (pool.consolidation_policy, pool.consolidate_after_s) == ("WhenEmpty", 30)
    assert pool.budgets == (NodeBudget("20%", ("Empty",)), NodeBudget("5"))
    assert [budget.allowed(11) for budget in pool.budgets] == [3, 5]
    assert pool.fits_limits({"cpu": 3000}, pool.types[0])
    assert not pool.fits_limits({"cpu": 3001}, pool.types[0])


def test_types_of_the_table_are_named_by_patterns() -> None:
    reading = read(make_pool(nodeTypes=[], instanceTypes=["m5.*"], spot=False), table=True)

    assert names(reading) == ["m5.large", "m5.xlarge"]
    large = reading.pools[0].types[0]
    assert (large.price, large.zones, large.is_spot) == (0.096, ("a", "b"), False)


def test_spot_pools_take_the_spot_price() -> None:
    pool = read(make_pool(nodeTypes=[], instanceTypes=["m5.large"], spot=True), table=True).pools[0]

    assert (pool.types[0].price, pool.types[0].is_spot) == (0.04, True)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            make_pool(maximun=3),
            "spec.maximun: expected maximum; got an unknown field",
            id="a misspelt field is named with a suggestion",
        ),
        pytest.param(
            make_pool(
                nodeTypes=[{"name": "x", "capacity": {"cpu": 2, "memory": "1Gi"}, "price": 0}]
            ),
            "spec.nodeTypes[0].price: expected a price per hour above 0; got 0",
            id="a price of 0",
        ),
        pytest.param(
            make_pool(nodeTypes=[{"name": "x", "capacity": {"cpu": "two", "memory": "1Gi"}}]),
            'spec.nodeTypes[0].capacity.cpu: expected an amount such as 4, 500m or 16Gi; got "two"',
            id="an amount that is no quantity",
        ),
        pytest.param(
            make_pool(minimum=4, maximum=2),
            "spec.maximum: expected at least the minimum, 4; got 2",
            id="a maximum below the minimum",
        ),
        pytest.param(
            make_pool(taints=[{"key": "a", "effect": "NoSchedul"}]),
            'spec.taints[0].effect: expected NoSchedule, PreferNoSchedule or NoExecute; got "NoSchedul"',
            id="a taint with an unknown effect",
        ),
        pytest.param(
            make_pool(instanceTypes=["m7.large"]),
            'spec.instanceTypes[0]: expected a name in types.csv; got "m7.large"',
            id="an instance type that the table does not have",
        ),
        pytest.param(
            make_pool(disruption={"budgets": [{"nodes": "150%"}]}),
            'spec.disruption.budgets[0].nodes: expected a number of nodes, or a share such as 10%; got "150%"',
            id="a budget above all nodes",
        ),
        pytest.param(
            make_pool(nodeTypes=[]),
            "spec.nodeTypes: expected at least one node type; got none",
            id="no types",
        ),
        pytest.param(
            make_karpenter(("a", "Inside", ["b"])),
            "spec.template.spec.requirements[0].operator: expected In, NotIn, Exists, DoesNotExist, "
            'Gt, Lt, Gte or Lte; got "Inside"',
            id="an operator that Karpenter does not have",
        ),
        pytest.param(
            make_karpenter(("kubernetes.io/arch", "In", ["s390x"])),
            "spec.template.spec.requirements: expected an instance type that meets them; got none in "
            "types.csv that meets all; none meets kubernetes.io/arch In s390x",
            id="requirements that no type of the table meets",
        ),
        pytest.param(
            {"apiVersion": "karpenter.sh/v1alpha9", "kind": "NodePool"},
            'apiVersion: expected bayplan.dev/v1 or karpenter.sh/v1; got "karpenter.sh/v1alpha9"',
            id="a version of Karpenter that is not read",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod"},
            "kind: expected a NodePool of bayplan.dev/v1 or karpenter.sh/v1, a Node, or the ConfigMap "
            'cluster-autoscaler-status; got "Pod"',
            id="another kind",
        ),
    ],
)
def test_a_fault_is_named_with_file_and_path(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(document, table=True)

    assert f"pools.yaml: document 1: {message}" in str(caught.value).splitlines()


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        read(make_pool(minimum=-1, weight=200), make_pool(color="red"))

    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1:3] for line in lines] == [
        ["document 1", "spec.minimum"],
        ["document 1", "spec.weight"],
        ["document 2", "spec.color"],
        ["document 2", "metadata.name"],
    ]


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        pytest.param([], ["m5.large", "m5.xlarge", "m6g.large", "g4dn.xlarge"], id="none"),
        pytest.param(
            [("kubernetes.io/arch", "NotIn", ["arm64"])],
            ["m5.large", "m5.xlarge", "g4dn.xlarge"],
            id="NotIn",
        ),
        pytest.param(
            [("karpenter.k8s.aws/instance-cpu", "Gt", ["2"])], ["m5.xlarge", "g4dn.xlarge"], id="Gt"
        ),
        pytest.param(
            [("karpenter.k8s.aws/instance-cpu", "Gte", ["4"])],
            ["m5.xlarge", "g4dn.xlarge"],
            id="Gte",
        ),
        pytest.param(
            [("karpenter.k8s.aws/instance-cpu", "Lt", ["4"])], ["m5.large", "m6g.large"], id="Lt"
        ),
        pytest.param(
            [("karpenter.k8s.aws/instance-memory", "Lte", ["8192"])],
            ["m5.large", "m6g.large"],
            id="Lte",
        ),
        pytest.param(
            [("karpenter.k8s.aws/instance-gpu-count", "Exists", [])], ["g4dn.xlarge"], id="Exists"
        ),
        pytest.param(
            [("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist", [])],
            ["m5.large", "m5.xlarge", "m6g.large"],
            id="DoesNotExist",
        ),
        pytest.param(
            [("karpenter.k8s.aws/instance-family", "In", ["m6g"])],
            ["m6g.large"],
            id="family from the name",
        ),
        pytest.param([("topology.kubernetes.io/zone", "In", ["c"])], ["g4dn.xlarge"], id="zone"),
        pytest.param(
            [("karpenter.sh/capacity-type", "In", ["spot"])], ["m5.large", "m6g.large"], id="spot"
        ),
    ],
)
def test_karpenter_requirements(
    requirements: list[tuple[str, str, list[str]]], expected: list[str]
) -> None:
    reading = read(make_karpenter(*requirements), table=True)

    assert list(dict.fromkeys(names(reading))) == expected


def test_karpenter_pool_as_a_whole() -> None:
    limits = {"cpu": 10, "nodes": 4}
    document = make_karpenter(("zone-group", "In", ["x", "z"]), limits=limits, weight=7)

    node_class = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass"}
    named = {"metadata": {"name": "default"}, "spec": {"kubelet": {"maxPods": 20}}}

    reading = read(document, {**node_class, **named}, table=True)

    (pool,) = reading.pools
    assert (pool.maximum, pool.limits, pool.weight) == (4, {"cpu": 10000}, 7)
    assert (pool.expire_after_s, pool.budgets) == (720 * 3600, (NodeBudget("10%"),))
    labels = pool.types[0].labels
    assert (labels["team"], labels["karpenter.sh/nodepool"], labels["zone-group"]) == (
        "shop",
        "kp",
        "x",
    )
    assert [taint.key for taint in pool.types[0].startup_taints] == ["cni"]
    spec = "pools.yaml: document 1: kp: spec.template.spec"
    assert reading.notes == [
        f"{spec}.nodeClassRef: not read; kubelet settings and disks are not modelled",
        "pools.yaml: document 2: EC2NodeClass default: spec.kubelet.maxPods: not modelled; "
        "the table of instance types has pods and overhead",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "name,cpu\nx,1\n",
            "line 1: expected columns name, cpu, memory, price; got name, cpu",
            id="columns",
        ),
        pytest.param(
            f"[{'1' * 1000}]\n",
            f"line 1: expected columns name, cpu, memory, price; got [{'1' * 99}",
            id="another file, whose line is cut",
        ),
        pytest.param(
            "name,cpu,memory,price\nx,1,1Gi\n", "line 2: expected 4 cells; got 3 cells", id="cells"
        ),
        pytest.param(
            "name,cpu,memory,price,disk\nx,1,1Gi,1,9\n",
            'line 1: column "disk": expected a resource such as ephemeral-storage or example.com/gpu, overhead_ and '
            "one that is a column, or a label such as kubernetes.io/arch or label:tier; got another column",
            id="a column that is no resource",
        ),
        pytest.param(
            "name,cpu,memory,price,example.com/gpu\nx,1,1Gi,1,many\n",
            'line 2: example.com/gpu: expected an amount such as 4, 500m or 16Gi; got "many"',
            id="a resource that is no amount",
        ),
        pytest.param(
            "name,cpu,memory,price,ephemeral-storage\nx,1,1Gi,1,100\n",
            'line 2: ephemeral-storage: expected an amount with a unit, such as 16Gi; got "100"',
            id="storage without a unit",
        ),
        pytest.param(
            "name,cpu,memory,price,gpu,nvidia.com/gpu\nx,1,1Gi,1,1,1\n",
            'line 1: column "gpu": expected each column once; got "gpu"',
            id="a resource twice",
        ),
        pytest.param(
            "name,cpu,memory,price\nx,1,8,1\n",
            'line 2: memory: expected an amount with a unit, such as 16Gi; got "8"',
            id="memory without a unit",
        ),
        pytest.param(
            "# c\nname,cpu,memory,price\nx,1,1Gi,0\n",
            'line 3: price: expected a price per hour above 0; got "0"',
            id="price 0",
        ),
        pytest.param(
            "name,cpu,memory,price\n",
            "expected a line for each instance type; got none",
            id="empty",
        ),
    ],
)
def test_a_faulty_table_is_named_with_its_line(text: str, message: str) -> None:
    Path("bad.csv").write_text(text)

    with pytest.raises(InputError) as caught:
        read_instance_table("bad.csv")

    assert str(caught.value) == f"bad.csv: {message}"


NEW_STATUS = """\
time: 2024-01-01
nodeGroups:
- name: eks-web-1234
  health: {status: Healthy, cloudProviderTarget: 2, minSize: 1, maxSize: 5}
- name: eks-gone-99
  health: {status: Healthy, cloudProviderTarget: 0, minSize: 0, maxSize: 3}
"""
OLD_STATUS = """\
Cluster-autoscaler status at 2023-01-01
Cluster-wide:
  Health:      Healthy (ready=2 unready=0)

NodeGroups:
  Name:        eks-web-1234
  Health:      Healthy (ready=2 unready=0 cloudProviderTarget=2 (minSize=1, maxSize=5))

  Name:        eks-gone-99
  Health:      Healthy (ready=0 unready=0 cloudProviderTarget=0 (minSize=0, maxSize=3))
"""


def make_member(name: str, zone: str, memory: str = "8Gi") -> dict[str, Any]:
    labels = {
        "eks.amazonaws.com/nodegroup": "web",
        "node.kubernetes.io/instance-type": "m5.large",
        "kubernetes.io/hostname": name,
        ZONE: zone,
    }
    status = {"capacity": {"cpu": 2, "memory": memory, "pods": 29}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


@pytest.mark.parametrize("text", [NEW_STATUS, OLD_STATUS], ids=["since 1.30", "before 1.30"])
def test_groups_of_cluster_autoscaler_from_nodes_and_status(text: str) -> None:
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"status": text},
    }

    reading = read(make_member("n1", "a"), make_member("n2", "b", "7Gi"), status, table=True)

    (pool,) = reading.pools
    assert (pool.name, pool.minimum, pool.maximum, pool.current_nodes) == ("web", 1, 5, 2)
    (one,) = pool.types
    assert (one.name, one.price, one.zones) == ("m5.large", 0.096, ("a", "b"))
    assert one.allocatable["memory"] == 7 << 30
    assert "kubernetes.io/hostname" not in one.labels
    assert reading.notes == [
        "pools.yaml: no node belongs to the group eks-gone-99, so its shape is unknown"
    ]


def test_groups_without_a_table_take_the_cost_annotation() -> None:
    def make(name: str, cost: str) -> Node:
        labels = {"cloud.google.com/gke-nodepool": "p"}
        capacity = {"cpu": 1000, "memory": 1 << 30}
        return Node(name, labels=labels, capacity=capacity, annotations={"bayplan.dev/cost": cost})

    (pool,) = find_groups([make("a", "0.5"), make("b", "0.5"), Node("alone")], NO_TABLE)

    assert (pool.types[0].price, pool.types[0].name, pool.maximum) == (0.5, "p", None)


def test_a_status_without_groups_is_named() -> None:
    problems = Problems()

    assert read_status({"data": {"status": "time: now"}}, problems) == list[GroupSize]()
    assert (
        str(problems[0]) == "data.status: expected node groups with minSize and maxSize; got none"
    )


def test_examples_are_good() -> None:
    table = read_instance_table(EXAMPLES / "instance-types.csv")

    reading = read_pools([EXAMPLES / "pools.yaml", EXAMPLES / "karpenter.yaml"], table)

    assert [pool.name for pool in reading.pools] == ["system", "general", "spot", "default"]
    assert all(one.price for _, one in reading.types)


def test_a_table_has_any_resource_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "types.csv"
    path.write_text(
        "name,cpu,memory,price,ephemeral-storage,overhead_ephemeral-storage,example.com/fpga,hugepages-2Mi,"
        "kubernetes.io/arch,label:tier\nx,4,8Gi,1,100Gi,10Gi,2,64Mi,arm64,web\ny,4,8Gi,1,,,,,,\n"
    )

    types = read_instance_table(path).types

    assert types["x"].capacity["ephemeral-storage"] == 100 << 30
    assert types["x"].allocatable["ephemeral-storage"] == 90 << 30
    assert types["x"].capacity["example.com/fpga"] == 2
    assert types["x"].capacity["hugepages-2Mi"] == 64 << 20
    assert dict(types["x"].labels) == {"kubernetes.io/arch": "arm64", "tier": "web"}
    assert set(types["y"].capacity) == {"cpu", "memory", "pods"}
