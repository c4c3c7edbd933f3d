"""Courses of drains: one line for a reason that several budgets share."""

import io

from rich.console import Console

from bayplan.answers.courses import DrainCourse, DrainStall
from bayplan.cli.render.consequences import render_course

NO_ROOM = "0/3 nodes are available: 3 Insufficient cpu"


def stall(name: str, node: str, no_node: str = NO_ROOM) -> DrainStall:
    cause = f"{name} allows 1 disruption; its evicted pod {name}-1 has no node: {no_node}"
    return DrainStall(
        cause,
        (f"{name}-2",),
        (f"{node}.example.org",),
        name,
        f"{name} allows 1 disruption",
        no_node,
    )


def printed(*stalls: DrainStall) -> list[str]:
    nodes = [name for one in stalls for name in one.nodes]
    file = io.StringIO()
    render_course(Console(file=file, width=100), DrainCourse(nodes, 4, stalls=list(stalls)))
    return file.getvalue().splitlines()[1:]


def test_the_reason_of_one_budget_is_in_its_line() -> None:
    cause = f"web allows 1 disruption; its evicted pod web-1 has no node: {NO_ROOM}"
    assert printed(stall("web", "a")) == [f"  a (1 pod): {cause}"]


def test_a_reason_of_several_budgets_is_written_once() -> None:
    assert printed(stall("web", "a"), stall("db", "b")) == [
        f"  evicted pods of 2 budgets have no node: {NO_ROOM}",
        "    a (1 pod): web allows 1 disruption",
        "    b (1 pod): db allows 1 disruption",
    ]
