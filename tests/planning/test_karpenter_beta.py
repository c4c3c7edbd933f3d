"""Karpenter before v1: NodePools of v1beta1, the kinds of v1alpha5, and NodeClaims beside pools."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.errors import InputError
from bayplan.planning.instance_types import read_instance_table
from bayplan.planning.pool_files import PoolReading, read_pools

CSV = "name,cpu,memory,price,kubernetes.io/arch\nsmall,2,8Gi,0.1,amd64\narm,2,8Gi,0.08,arm64\n"
KUBELET_NOTE = "spec.template.spec.kubelet.maxPods: not modelled; the table of instance types has pods and overhead"


def make_beta(disruption: dict[str, Any] | None = None, **node: Any) -> dict[str, Any]:
    node_class = {"apiVersion": "karpenter.k8s.aws/v1beta1", "name": "default"}
    template = {"spec": {"requirements": [], "nodeClassRef": node_class} | node}
    return {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "kp"},
        "spec": {"template": template, "disruption": disruption or {}},
    }


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("types.csv").write_text(CSV)


def read(*documents: Any) -> PoolReading:
    Path("pools.yaml").write_text(yaml.safe_dump_all(documents))
    return read_pools(["pools.yaml"], read_instance_table("types.csv"))


def test_a_pool_of_v1beta1_is_read_like_one_of_v1() -> None:
    disruption = {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "240h"}
    arm = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}

    (pool,) = read(make_beta(disruption, requirements=[arm], kubelet={"maxPods": 20})).pools

    assert pool.expire_after_s == 240 * 3600
    assert pool.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert [one.name for one in pool.types] == ["arm"]
    assert pool.notes[-1] == KUBELET_NOTE


@pytest.mark.parametrize(
    ("disruption", "expected"),
    [
        pytest.param({}, 720 * 3600, id="the default"),
        pytest.param({"expireAfter": "Never"}, None, id="never"),
    ],
)
def test_expiry_of_v1beta1(disruption: dict[str, Any], expected: float | None) -> None:
    assert [pool.expire_after_s for pool in read(make_beta(disruption)).pools] == [expected]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner"},
            "kind: expected a NodePool of karpenter.sh/v1; got Provisioner of karpenter.sh/v1alpha5, which "
            "Karpenter replaced in v0.32; convert it with karpenter-convert",
            id="a kind that Karpenter had before",
        ),
        pytest.param(
            make_beta({"expireAfter": "soon"}),
            'spec.disruption.expireAfter: expected a duration such as 30s, 720h or Never; got "soon"',
            id="a field where v1beta1 has it",
        ),
    ],
)
def test_a_fault_is_named(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(document)

    assert str(caught.value) == f"pools.yaml: document 1: {message}"


def test_node_claims_beside_pools_are_counted() -> None:
    claims = [
        {"apiVersion": f"karpenter.sh/{version}", "kind": "NodeClaim", "metadata": {"name": "c"}}
        for version in ("v1", "v1beta1")
    ]

    assert read(make_beta(), *claims).notes[-1] == (
        "pools.yaml: 2 NodeClaims: not read; nodes that run are those of the cluster"
    )
