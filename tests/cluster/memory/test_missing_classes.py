"""Storage classes that claims name and that do not exist."""

from typing import Any

from bayplan.planning import NodePool, NodeType
from bayplan.planning.planner import PlanRequest, plan_nodes
from bayplan.sim.settings import Settings
from bayplan.sim.simulation import Simulation
from bayplan.testing.builders import make_node, make_object

CAUSE = 'StorageClass "gone" does not exist; claim default/data-db-0 names it'


def make_database() -> Any:
    labels = {"app": "db"}
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": template,
        "volumeClaimTemplates": [
            {"metadata": {"name": "data"}, "spec": {**request, "storageClassName": "gone"}}
        ],
    }
    return make_object("StatefulSet", "db", namespace="default", spec=spec)


def test_a_simulation_names_the_class_once() -> None:
    report = Simulation([make_node("a"), make_node("b"), make_database()], seed=0).run()

    assert report.notices == [CAUSE]


def test_a_plan_names_the_class_instead_of_types() -> None:
    amounts = {"cpu": 4000, "memory": 8 << 30, "pods": 20}
    types = tuple(NodeType(f"t{i}", amounts, amounts, price=0.1) for i in range(3))

    found = plan_nodes(
        [make_database()], [NodePool("p", types)], Settings(seed=0), PlanRequest(time_limit_s=9.0)
    )

    (one,) = found.unplaceable
    assert one.reasons == {CAUSE: []}


def test_a_class_that_exists_is_not_named() -> None:
    made = make_object("StorageClass", "gone", provisioner="d")

    report = Simulation([make_node("a"), make_database(), made], seed=0).run()

    assert report.notices == []
