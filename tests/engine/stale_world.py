"""A small cluster for tests of stale answers: nodes in three zones, and decisions about a new pod."""

from typing import Any

from bayplan.testing.builders import make_pod

from .histories import Outcome, World

WEB = {"labels": {"app": "web"}}


def make_world(profile: str = "default", count: int = 12) -> World:
    """Nodes in three zones, every other one with an ssd, with a pod on each third."""
    world = World(profile, nodes=0)
    for number in range(count):
        disk = {"disk": "ssd"} if number % 2 else {}
        world.set_node(number, {"zone": f"z{number % 3}", "cpu": "4", "labels": disk})
    for number in range(0, count, 3):
        world.bind(f"p{number}", number, cpu="1", **WEB)
    for number in range(4):
        world.bind(f"db{number}", 2, cpu="100m")
    return world


def decided(world: World, **wish: Any) -> Outcome:
    """Result of a pod; the engine and the reference agree on it, also from the view that is cached the second time."""
    pod = make_pod("new", **wish)
    world.check(pod)
    return world.check(pod)
