"""The example TopologyMatch: a guaranteed pod needs one NUMA zone; its manifests go with each other."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.testing.builders import make_custom, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from tests.rig.scenarios import Scenario

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "node-resource-topology"


def load_module() -> Any:
    spec = importlib.util.spec_from_file_location("topology_match", FOLDER / "topology_match.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULE = load_module()


def topology(*cpus: str, policy: str = "single-numa-node", kind: str = "Node") -> Any:
    zones = [
        {"name": f"node-{i}", "type": kind, "resources": [{"name": "cpu", "available": cpu}]}
        for i, cpu in enumerate(cpus)
    ]
    attributes = [{"name": "topologyManagerPolicy", "value": policy}]
    return make_custom(MODULE.TOPOLOGIES, "n", attributes=attributes, zones=zones)


def guaranteed(name: str = "p", cpu: str = "2") -> Any:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    return make_pod(name, spec={"containers": [container]})


def message(pod: Any, *objects: Any) -> str:
    scenario = Scenario(make_node("n", cpu="8"), *objects, plugins=[MODULE.TopologyMatch])
    scenario.add(pod)
    return str(scenario.run()[0].message)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([topology("1", "2")], id="a zone has room"),
        pytest.param([topology("1", "1", policy="best-effort")], id="the kubelet does not insist"),
        pytest.param([], id="there is no topology"),
    ],
)
def test_a_node_is_accepted(objects: list[Any]) -> None:
    assert message(guaranteed(), *objects) == ""


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(topology("1", "1500m"), id="the zones have it only together"),
        pytest.param(topology("8", kind="Socket"), id="what has room is no zone"),
    ],
)
def test_a_node_is_refused(found: Any) -> None:
    assert MODULE.REASON in message(guaranteed(), found)
    assert message(make_pod("burstable", cpu="2"), found) == "", (
        "only guaranteed pods are held to it"
    )


def test_a_topology_that_says_the_same_wakes_no_pod() -> None:
    scenario = Scenario(make_node("n"), topology("1"), plugins=[MODULE.TopologyMatch])
    scenario.add(guaranteed())
    scenario.run()
    scenario.advance(20)

    scenario.cluster.update(topology("1"))
    assert not scenario.run()

    scenario.cluster.update(topology("2"))
    scenario.run()
    assert scenario.part_of("p") == "bound"


def test_conformance() -> None:
    table = make_table(make_node("n"), make_node("m"))
    pods = [guaranteed(), guaranteed(cpu="3"), make_pod("small", cpu="2")]

    check_conformance(MODULE.TopologyMatch, pods, table, objects=[topology("2")])


def test_its_definition_and_its_role_are_for_what_the_plugin_reads() -> None:
    definition = yaml.safe_load((FOLDER / "crd.yaml").read_text())["spec"]
    role, binding = yaml.safe_load_all((FOLDER / "rbac.yaml").read_text())
    account, *_ = yaml.safe_load_all((FOLDER.parents[1] / "deploy/10-rbac.yaml").read_text())
    declared = MODULE.TOPOLOGIES

    (version,) = definition["versions"]
    named = f"{definition['names']['plural']}.{version['name']}.{definition['group']}"
    assert named == declared.name
    assert definition["names"]["kind"] == declared.kind
    assert (definition["scope"] == "Namespaced") is declared.is_namespaced
    (rule,) = role["rules"]
    assert (rule["apiGroups"], rule["resources"]) == ([definition["group"]], [declared.plural])
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert {key: subject[key] for key in ("kind", "name", "namespace")} == {
        "kind": account["kind"],
        "name": account["metadata"]["name"],
        "namespace": account["metadata"]["namespace"],
    }
