"""The questions of the Python API about the corpus."""

import pytest

from bayplan import Cluster, Cordon, Drain, capacity, compare, explain, rebalance, simulate, what_if

from .material import Project, own_projects
from .questions import PACKED, POD


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("project", list(own_projects()), ids=lambda project: project.name)
def test_every_function_answers(project: Project) -> None:
    cluster = Cluster.read(*project.files)
    node = project.nodes[0]

    assert len(simulate(cluster).to_frame())
    assert explain(cluster, "shop/too-big").message.startswith("0/5 nodes are available")
    assert compare(cluster, {"default": None, "packed": str(PACKED)}).to_frame() is not None
    assert what_if(cluster, Cordon(node)).to_dict()  # type: ignore[arg-type]  # a single name will do
    assert what_if(cluster, Drain((node,))).to_dict()
    assert capacity(cluster, str(POD)).to_dict()
    assert rebalance(cluster).to_dict()
