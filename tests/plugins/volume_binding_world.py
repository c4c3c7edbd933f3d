"""VolumeBinding over a cluster, with a volume for two claims or a class that makes volumes; and its verdicts."""

from typing import Any

from bayplan.api.pod import Pod
from bayplan.framework import SUCCESS, CycleState, Verdict
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.table import ALL, NodeTable
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.storage import claim_volume, make_claim, make_storage_class, make_volume
from tests.rig.storage_world import StorageWorld

ZONE = "topology.kubernetes.io/zone"
TABLE = make_table(make_node("a", zone="z1"), make_node("b", zone="z2"), make_node("c"))
CSI = "csi.example.com"


class World(StorageWorld):
    """The plugin under test over a cluster."""

    def __init__(self, *objects: Any, timeout_s: int = 10) -> None:
        super().__init__(VolumeBinding(timeout_s), *objects)

    @property
    def assumed(self) -> int:
        """Number of reserved volumes and claims."""
        facts = self.plugin._current_facts()
        return len(facts.claims) + len(facts.volumes)


def static_world(**options: Any) -> World:
    """One volume for two claims."""
    return World(
        make_claim("c"), make_claim("d"), make_volume("v"), make_storage_class(), **options
    )


def dynamic_world(**options: Any) -> World:
    """Volumes are made as requested."""
    return World(make_claim("c"), make_storage_class(provisioner=CSI), **options)


def using(*claims: str, name: str = "p", **fields: Any) -> Pod:
    return make_pod(name, spec={"volumes": [claim_volume(claim) for claim in claims]}, **fields)


def make_plugin(*objects: Any, table: NodeTable = TABLE, **options: Any) -> VolumeBinding:
    return VolumeBinding.from_args(None, make_handle(table, objects, **options))


def judge(pod: Pod, *objects: Any, table: NodeTable = TABLE) -> Verdict:
    plugin, state = make_plugin(*objects, table=table), CycleState()
    assert plugin.pre_filter(state, pod, table) == SUCCESS
    verdict = plugin.filter_rows(state, pod, table, ALL)
    for node in table.nodes_at(ALL):
        assert plugin.filter_node(state, pod, node) == verdict.status(node.row)
    return verdict
