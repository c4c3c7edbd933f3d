"""Autoscaler options: options of the commands that simulate an autoscaler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...api.text.durations import EXPECTED
from ...choices import AUTOSCALERS, EXPANDERS, expect_choice
from ...errors import InputError
from ..render.consoles import stderr_console
from .input_options import parse_seconds
from .option_groups import completing

if TYPE_CHECKING:
    from ...answers.compare import MakeSimulation
    from ...autoscaling import AutoscalerOptions
    from ...manifests.timeline import InputObject
    from ...planning import InstanceTable, PoolReading

SPELLINGS = {
    "batch_idle_s": "--batch-idle-duration",
    "batch_max_s": "--batch-max-duration",
    "scan_interval_s": "--scan-interval",
    "autoscaler_flags": "--autoscaler-flag",
}
"""Names of options that are not those of their settings."""


PoolsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--pools",
        metavar="FILE",
        help="Node pools from which an autoscaler adds nodes: NodePools of bayplan.dev/v1 or karpenter.sh/v1, or the "
        "status of Cluster Autoscaler. May be given several times.",
        allow_dash=True,
    ),
]
AutoscalerOption = Annotated[
    str | None,
    typer.Option(
        "--autoscaler",
        metavar="NAME",
        help="With --pools: karpenter or cluster-autoscaler. Default: karpenter.",
        autocompletion=completing(AUTOSCALERS),
    ),
]
ExpanderOption = Annotated[
    str | None,
    typer.Option(
        "--expander",
        metavar="NAME",
        help="How Cluster Autoscaler chooses a group: least-waste, most-pods, least-nodes, price, priority or random; "
        "or several, separated by commas. Default: least-waste.",
        autocompletion=completing(EXPANDERS),
    ),
]
BatchIdleOption = Annotated[
    str | None,
    typer.Option(
        "--batch-idle-duration",
        metavar="DURATION",
        help="Karpenter plans when no further pod came for so long. Default: 1s.",
    ),
]
BatchMaxOption = Annotated[
    str | None,
    typer.Option(
        "--batch-max-duration",
        metavar="DURATION",
        help="Karpenter plans at the latest so long after the first pod. Default: 10s.",
    ),
]
ScanOption = Annotated[
    str | None,
    typer.Option(
        "--scan-interval",
        metavar="DURATION",
        help="How often Cluster Autoscaler reads the cluster, and Karpenter searches nodes to remove. Default: 10s.",
    ),
]
AutoscalerConfigOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--autoscaler-config",
        metavar="FILE",
        help="Manifests of Cluster Autoscaler as a cluster has them: its Deployment, whose flags are read, and the "
        "ConfigMap of the expander priority. May be given several times.",
        allow_dash=True,
    ),
]
AutoscalerFlagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--autoscaler-flag",
        metavar="NAME=VALUE",
        help="A flag of Cluster Autoscaler, such as scale-down-unneeded-time=5m. May be given several times.",
    ),
]


def read_autoscaler(
    *,
    pools: Sequence[Path] | None,
    autoscaler: str | None,
    expander: str | None,
    config: Sequence[Path] | None = None,
    flags: Sequence[str] | None = None,
    durations: dict[str, str | None],
    seed: int | None,
) -> AutoscalerOptions | None:
    """The autoscaler that the options describe; None without pools. Raises InputError for options that exclude each
    other.
    """
    from ...autoscaling import autoscaler_settings

    given: dict[str, Any] = {
        "autoscaler": autoscaler,
        "expander": expander,
        "autoscaler_config": config,
        "autoscaler_flags": flags,
    }
    for name, text in durations.items():
        given[name] = None if text is None else _seconds(SPELLINGS[name], text)
    options, notes = autoscaler_settings.read_autoscaler(
        given, bool(pools), seed, lambda name: SPELLINGS.get(name, f"--{name.replace('_', '-')}")
    )
    print_notes(notes)
    return options


def read_scaled_pools(
    paths: Sequence[Path], table: Path | None, objects: Sequence[InputObject]
) -> PoolReading:
    """The pools in files; parts that are not modelled are reported on standard error."""
    from ...planning import read_pools

    nodes = [obj for obj in objects if obj.kind == "Node"]
    reading = read_pools(paths, read_table(table), nodes)  # type: ignore[arg-type]  # nodes
    print_notes(reading.notes)
    return reading


def read_autoscalers(
    paths: Sequence[Path] | None,
    table: Path | None,
    names: Sequence[str] | None,
    objects: Sequence[InputObject],
) -> list[tuple[str, MakeSimulation]]:
    """Every file of pools with every autoscaler, named by both; empty without pools."""
    if not paths:
        for flag, value in (("--autoscaler", names), ("--instance-types", table)):
            if value:
                raise InputError(f"{flag}: expected --pools with it; got none")
        return []
    from ...autoscaling import AutoscalerOptions, maker_of

    found = []
    for path in dict.fromkeys(paths):
        reading = read_scaled_pools([path], table, objects)
        for name in dict.fromkeys(names or AUTOSCALERS[:1]):
            expect_choice("--autoscaler", name, AUTOSCALERS)
            label = name if len(paths) == 1 else f"{path} {name}"
            found.append((label, maker_of(reading.pools, AutoscalerOptions(autoscaler=name))))
    return found


def _seconds(flag: str, text: str) -> float:
    seconds = parse_seconds(flag, text)
    if flag == SPELLINGS["scan_interval_s"] and not seconds:
        raise InputError(f'{flag}: {EXPECTED}; got "{text}"')
    return seconds


InstanceTypesOption = Annotated[
    Path | None,
    typer.Option(
        "--instance-types",
        metavar="CSV",
        help="Table of instance types: name, cpu, memory, price, zones, other resources by name, labels.",
    ),
]


def read_table(path: Path | None) -> InstanceTable:
    """The table of instance types in a file; empty without one."""
    from ...planning import InstanceTable, read_instance_table

    return read_instance_table(path) if path is not None else InstanceTable()


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, such as parts of documents that are not modelled."""
    for note in notes:
        stderr_console().print(f"note: {note}", style="dim", markup=False, soft_wrap=True)
