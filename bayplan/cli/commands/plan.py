"""Plan: `bayplan plan`, the cheapest nodes on which the scheduler places every pod, and a check of node pools."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...choices import PLAN_SEEDS, PLAN_TIME_LIMIT_S, SURVIVE, expect_choice
from ...errors import InputError, counted, os_errors_named
from .. import command_time
from ..command_table import CommandApp
from ..options.autoscaler_options import INSTANCE_TYPES, read_table
from ..options.cluster_options import USAGE
from ..options.input_options import takes_input_limit
from ..options.option_groups import argument, completing, option, option_group, takes_options
from ..options.scheduler_options import PENDING, Question, takes_cluster
from ..render.consoles import print_notes
from ..render.plain_data import (
    ANSWER_FORM,
    AnswerForm,
    print_answer,
    print_in_form,
    with_remarks,
    yaml_pieces,
)
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from ...answers.measured import UseAgainstRequests
    from ...manifests.measured_use import MeasuredUse
    from ...planning import PoolReading
    from ...planning.node_plan import NodePlan
    from ...planning.planner import PlanRequest
    from ...planning.pools import NodePool
    from ...planning.search_state import SearchState

EXISTING = "existing"
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


@option_group
class PlanOptions:
    """The options of `bayplan plan` besides the cluster's."""

    pools: list[Path] = option(
        "--pools FILE",
        "The node pools: NodePools of bayplan.dev/v1 or karpenter.sh/v1, or the status of Cluster Autoscaler. "
        "May be given several times.",
        default=...,
        allow_dash=True,
    )
    instance_types: Path | None = INSTANCE_TYPES
    keep: str = option(
        "--keep existing", "Keep the nodes of the input, and plan further ones.", default=""
    )
    existing: bool = option(
        "--existing", "Say which nodes of the input to remove and which to add, in order."
    )
    survive: str = option(
        "--survive WHAT",
        "What may be gone: node or zone; every pod must fit on the rest.",
        default="",
        autocompletion=completing(SURVIVE),
    )
    survive_priority: int | None = option(
        "--survive-priority NUMBER", "With --survive, pods of a lower priority may wait."
    )
    headroom: str = option(
        "--headroom SHARE", "The share of every node that stays free, such as 20%.", default="0%"
    )
    seeds: int = option(
        "--seeds NUMBER",
        "With how many seeds every pod must be placed: the scheduler draws among nodes with equal scores.",
        default=PLAN_SEEDS,
    )
    time_limit: str = option(
        "--time-limit DURATION",
        "How much processor time to search for.",
        default=f"{PLAN_TIME_LIMIT_S:g}s",
    )
    to: Path | None = option("--to FILE", "Write the nodes as manifests.")
    usage: list[str] | None = USAGE
    output: AnswerForm = ANSWER_FORM

    def request(self) -> PlanRequest:
        """The request of the options; raises InputError for values that are wrong."""
        from ...api.text.durations import EXPECTED, parse_duration
        from ...planning.fleet_check import Demands
        from ...planning.planner import PlanRequest

        if self.keep not in ("", EXISTING):
            raise InputError(f'--keep: expected {EXISTING}; got "{self.keep}"')
        if self.keep and self.existing:
            raise InputError("expected --keep existing or --existing; got both")
        if self.seeds < 1:
            raise InputError(f"--seeds: expected a number from 1; got {self.seeds}")
        if self.survive:
            expect_choice("--survive", self.survive, SURVIVE)
        elif self.survive_priority is not None:
            raise InputError("--survive-priority: expected --survive with it; got none")
        match = _SHARE.fullmatch(self.headroom.strip())
        if match is None or float(match[1]) >= 100:
            raise InputError(f'--headroom: expected a share such as 20%; got "{self.headroom}"')
        headroom, seconds = float(match[1]) / 100, parse_duration(self.time_limit)
        if not seconds:
            raise InputError(f'--time-limit: {EXPECTED}; got "{self.time_limit}"')
        demands = Demands(self.survive, self.survive_priority, headroom, self.seeds)
        return PlanRequest(demands, bool(self.keep), seconds)


@takes_cluster
@takes_options(PlanOptions)
def plan(question: Question, options: PlanOptions) -> None:
    """Find the cheapest nodes from some pools on which the scheduler places every pod.

    Every plan is verified by a simulation with all filters, daemons and plugins; the bound is a lower bound for the
    price of every plan. Ctrl-C ends the search with the best plan so far.

    Exit status: 0, 1 when pods fit in no pool or wait after the last step, 2 when the input is wrong.

    Example: bayplan plan -f workload.yaml --pools pools.yaml --survive zone
    """
    from ...planning import read_pools
    from ..render.plan_tables import render_node_plan

    request = options.request()
    table = read_table(options.instance_types)
    reading = read_pools(options.pools, table, question.manifests.objects)
    print_notes(reading.notes)
    use = question.read_measured(options.usage)
    counted = replace(request, spent_s=command_time.spent_s())
    found = _search(question, reading.pools, counted, options.existing)
    usage = None if use is None else _by_use(question, use, reading.pools, request, found)
    if options.to is not None:
        _write(found, options.to)
    print_answer(
        found,
        "NodePlan",
        options.output,
        lambda: [f"node/{name}" for name in found.node_names()],
        lambda console: render_node_plan(console, found),
        [*question.remarks, *reading.notes],
        usage,
    )
    if not found.is_complete:
        raise typer.Exit(PENDING)


def _by_use(
    question: Question,
    use: MeasuredUse,
    pools: Sequence[NodePool],
    request: PlanRequest,
    by_requests: NodePlan,
) -> UseAgainstRequests:
    """The totals by use, and the plan for pods whose requests equal their use."""
    import msgspec

    from ...answers.workload_use import as_planned, planned_use
    from ...api.node import Node
    from ...planning.fleet import fleet_objects

    objects = question.manifests.objects
    manifests = msgspec.structs.replace(question.manifests, objects=as_planned(objects, use))
    found = _search(replace(question, manifests=manifests), pools, request, is_exchange=False)
    offered = fleet_objects(by_requests.fleet, by_requests.options)
    nodes = [*(objects if request.keep_existing else ()), *offered]
    usage = planned_use(objects, use, [obj for obj in nodes if isinstance(obj, Node)])
    count = len(found.node_names())
    usage.by_use = {"nodes": count, "price": round(found.price, 6), "complete": found.is_complete}
    usage.conclusion = f"by measured use: {counted(count, 'node')}, {found.price:,.2f} per hour"
    if not found.is_complete:
        usage.conclusion += ", and some pods have no place"
    return usage


def _search(
    question: Question, pools: Sequence[NodePool], request: PlanRequest, is_exchange: bool
) -> NodePlan:
    """Search with a bar that shows price and bound."""
    from ...planning.planner import plan_nodes
    from ...planning.rightsizing import rightsize

    search = rightsize if is_exchange else plan_nodes
    tenths = int(request.time_limit_s * 10)
    with progress_bar("planning") as bar:

        def tell(state: SearchState) -> None:
            bar.describe(progress_text(state.price, state.bound))
            bar(min(int(state.elapsed_s * 10), tenths), tenths)

        return search(question.manifests.objects, pools, question.settings, request, tell)


def progress_text(price: float, bound: float) -> str:
    """Price and bound so far."""
    shown = "no plan yet" if math.isinf(price) else f"{price:,.2f} per hour"
    return f"planning: {shown}, bound {bound:,.2f}"


def _write(found: NodePlan, path: Path) -> None:
    with os_errors_named(path, "a file that can be written"):
        path.write_text("".join(yaml_pieces(found.nodes())), encoding="utf-8")


pools_app = CommandApp(
    name="pools",
    no_args_is_help=True,
    help="Check the files that describe node pools.",
    epilog="Example: bayplan plan pools pools.yaml --instance-types types.csv",
)


@pools_app.callback()
def pools() -> None:
    """Check the files that describe node pools."""


@pools_app.command(
    "check", short_help="Name all problems of pools, and list their types and prices."
)
@takes_input_limit
def check_pools(
    files: list[Path] = argument(
        "FILE",
        "NodePools of bayplan.dev/v1 or karpenter.sh/v1, nodes with labels of their group, the status of "
        "Cluster Autoscaler; - is standard input.",
        allow_dash=True,
    ),
    instance_types: Path | None = INSTANCE_TYPES,
    output: AnswerForm = ANSWER_FORM,
) -> None:
    """Name all problems of files with node pools, or list the types of nodes that they describe.

    Exit status: 0 when all files are good, 2 when one is not.

    Example: bayplan plan pools pools.yaml --instance-types types.csv
    """
    from ...planning import read_pools

    reading = read_pools(files, read_table(instance_types))

    def render(console: Console) -> None:
        from ..render.plan_tables import render_pools

        render_pools(console, reading)

    names = [f"pool/{pool.name} type/{one.name}" for pool, one in reading.types]
    print_in_form(output, lambda: pools_document(reading), render, lambda: names, "NodePools")
    if output in (AnswerForm.TABLE, AnswerForm.NAME):
        print_notes(reading.notes)


def pools_document(reading: PoolReading) -> dict[str, Any]:
    """The pools as plain data."""

    document = {"pools": [pool.to_dict() for pool in reading.pools]}
    return with_remarks(document, reading.notes)
