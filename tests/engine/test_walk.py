"""The walk of a pod through the engine is the one that the text of `engine/engine.py` describes, and it is short."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import bayplan
from bayplan.api.pod import Pod
from bayplan.engine import Decision, engine
from bayplan.runtime.plugin_calls import PodCalls
from bayplan.testing.builders import make_pod
from tests.rig.mixed_cluster import even

from .histories import ZONE, World
from .stale_world import make_world

PACKAGE = str(Path(bayplan.__file__).parent)
TOLD = (
    "prepare",
    "_follow_cluster",
    "hold",
    "_view_of",
    "ClassView.refresh",
    "NodePart.refresh",
    "_rank",
    "track_groups",
    "apply_rules",
)
"""The functions that the text names, in its order."""
REPEATED = "repeated"
LONGEST_WALK = 25
"""Limit on the stays in rooms; a stay begins when the walk enters or re-enters a room."""


class Walk:
    """Records the functions of the package that run, and the rooms that have the pod.

    A room is a module, but all plugins are one. Further calls of a function into the same room, as in a loop over
    plugins, are not counted.
    """

    def __init__(self, pod: Pod) -> None:
        self.functions: list[str] = []
        self.stays: list[str] = []
        self._pod = pod
        self._calls: list[tuple[str, str]] = []
        """Room and function of the calls under way; the room is empty for those without the pod."""
        self._known: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or event not in ("call", "return"):
            return
        if event == "call":
            self.functions.append(code.co_qualname)
            self._calls.append((self._room_of(frame), code.co_qualname))
        elif self._calls:
            self._calls.pop()
        here = next((room for room, _ in reversed(self._calls) if room not in ("", REPEATED)), "")
        if here and self.stays[-1:] != [here]:
            self.stays.append(here)

    def _room_of(self, frame: FrameType) -> str:
        code = frame.f_code
        given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
        path = Path(code.co_filename).relative_to(PACKAGE)
        room = "plugins" if path.parts[0] == "plugins" else str(path)
        by_room, by = self._calls[-1] if self._calls else ("", "")
        if by_room == REPEATED or not any(map(self._is_pod, given)):
            return by_room if by_room == REPEATED else ""
        entry = (by, room)
        if entry in self._known and room != by_room:
            return REPEATED
        self._known.add(entry)
        return room

    def _is_pod(self, value: Any) -> bool:
        return value is self._pod or value is self._pod.spec or isinstance(value, PodCalls)


def walked(world: World, pod: Pod) -> Walk:
    walk = Walk(pod)
    sys.setprofile(walk)
    try:
        decision = world.decide(pod)
    finally:
        sys.setprofile(None)
    assert isinstance(decision, Decision)
    return walk


def test_a_pod_to_be_spread_takes_the_described_way_after_a_change_of_one_node() -> None:
    world = make_world()
    wish: dict[str, Any] = {"labels": {"app": "web"}, "spread": [even(ZONE, "DoNotSchedule")]}
    for name in ("first", "second"):
        world.check(make_pod(name, **wish))
    world.change_node(4, labels={"disk": "hdd"})

    walk = walked(world, make_pod("third", **wish))

    found = [
        next((i for i, f in enumerate(walk.functions) if f.endswith(name)), -1) for name in TOLD
    ]
    assert -1 not in found, walk.functions
    assert found == sorted(found), walk.functions
    assert all(name.split(".")[-1] in (engine.__doc__ or "") for name in TOLD)
    assert not any(name.startswith("PodTopologySpread.pre_filter") for name in walk.functions)
    assert len(walk.stays) <= LONGEST_WALK, walk.stays
