"""After any history of a cluster, the engine decides as the plugins called one after the other."""

import os

import pytest

from bayplan.stamped_cache import Budget
from bayplan.table import terms
from tests.rig.mixed_cluster import PACKED

from .histories import History, World, make_classes

EXAMPLES = int(os.environ.get("BAYPLAN_LIFE_EXAMPLES", "0"))
SEEDS = {"default": 3, "whole pod": 3, "by spec": 3, "anything": 2, PACKED: 1, "gpus": 2}
"""Number of histories of each profile."""
CASES = [
    (form, profile, seed)
    for profile, count in SEEDS.items()
    for seed in range(max(count, EXAMPLES // 50))
    for form in ("compiled", "NumPy")
    if form == "compiled" or seed == min(1, count - 1) or EXAMPLES
]
"""NumPy has one history of each profile: the kernel's tests compare both forms in detail."""
STEPS = 30
CLASSES = make_classes()


@pytest.mark.parametrize(("kernel_form", "profile", "seed"), CASES, indirect=["kernel_form"])
@pytest.mark.usefixtures("kernel_form")
def test_the_engine_decides_as_the_reference(
    profile: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 3 == 1:
        monkeypatch.setattr(terms, "MAX_CELLS", 64 * 3)  # counts of terms are dropped
    if seed % 3 == 2:
        monkeypatch.setattr(Budget, "MOST_CELLS", 400)  # views are dropped
    world = World(profile, nodes=7 + 11 * seed % 34)
    history = History(world, seed, nominates=seed % 3 > 0)
    world.check_all(CLASSES)

    for _ in range(STEPS):
        history.step()
        world.check_all(history.some(CLASSES))
    world.check_all(CLASSES)

    assert world.decided > 2 * world.declined, "most pods are decided by the engine"
    if seed >= SEEDS[profile]:
        return  # a history of `make life`, which may happen to have fewer of some pods
    if not history.nominates and profile != "anything":
        assert world.refused > 30, "and so are pods that fit nowhere"
    if profile == "default" and not history.nominates:
        assert world.pinned > 20, "and pods that name their node"
