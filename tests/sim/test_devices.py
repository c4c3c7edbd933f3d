"""Simulations with devices: claims from templates, and the example."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.sim import Simulation, read_manifests
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import (
    claiming,
    make_claim,
    make_class,
    make_request,
    make_slice,
    make_template,
)
from tests.rig.device_world import devices_of
from tests.rig.objects import stored

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dra"
GPU = "example.com/gpu"


def simulate(*objects: Any) -> Simulation:
    """One node with two devices."""
    simulation = Simulation(
        [
            make_node("n"),
            make_class("gpu", resource=GPU),
            make_slice("s", "d0", "d1", node="n"),
            make_template("one"),
            *objects,
        ]
    )
    simulation.run()
    return simulation


def nodes(simulation: Simulation) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in simulation.cluster.list("Pod")}


def test_pods_get_their_own_claims_until_devices_run_out() -> None:
    done = simulate(*(claiming(template="one", name=f"p{i}") for i in range(3)))

    assert nodes(done) == {"p0": "n", "p1": "n", "p2": ""}
    held = sorted(d for c in done.cluster.list("ResourceClaim") for d in devices_of(c))
    assert held == ["gpu=n/d0", "gpu=n/d1"]


def test_a_device_is_reused_after_its_pod_ended() -> None:
    ends = {"bayplan.dev/duration": "60s"}
    first = [claiming(template="one", name=f"p{i}", annotations=ends) for i in range(2)]

    done = simulate(*first, claiming(template="one", name="p2"))

    assert nodes(done)["p2"] == "n"
    assert done.clock.monotonic() >= 60
    (claim,) = done.cluster.list("ResourceClaim")
    assert devices_of(claim) == ["gpu=n/d0"]


def test_two_pods_share_a_claim() -> None:
    done = simulate(make_claim("c"), claiming("c", name="p0"), claiming("c", name="p1"))

    assert nodes(done) == {"p0": "n", "p1": "n"}
    (claim,) = done.cluster.list("ResourceClaim")
    assert [user.name for user in claim.status.reserved_for] == ["p0", "p1"]


def test_an_extended_resource_comes_from_devices() -> None:
    done = simulate(make_pod("p0", requests={GPU: 2}), make_pod("p1", requests={GPU: 1}))

    assert nodes(done) == {"p0": "n", "p1": ""}
    assert stored(done.cluster, Pod, "p0").status.extended_resource_claim_status


def test_an_expression_that_does_not_compile_is_rejected_with_its_place() -> None:
    with pytest.raises(InputError, match=r"requests\[0\].exactly.selectors\[0\].cel.expression"):
        simulate(make_template("bad", make_request("r", "device.nope")))


def test_the_example_gives_the_documented_result() -> None:
    simulation = Simulation(read_manifests([str(EXAMPLE)]).objects, seed=0)
    simulation.run()

    placed = nodes(simulation)
    assert placed["train"] == "train-1"
    assert placed["notebook"] == placed["viewer"] != ""
    assert placed["new-driver"] == ""
    served = sorted(node for name, node in placed.items() if name.startswith("serve"))
    assert len(served) == 3
    assert "serve-1" in served
    claims = {claim.name: claim for claim in simulation.cluster.list("ResourceClaim")}
    assert len(claims["shared"].status.reserved_for) == 2
