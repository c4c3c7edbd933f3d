"""Autoscaler options: options of the commands that simulate an autoscaler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.text.durations import EXPECTED
from ...choices import AUTOSCALERS, EXPANDERS, expect_choice
from ...errors import InputError
from ..render.consoles import print_notes
from .input_options import parse_seconds
from .option_groups import completing, option, option_group

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


INSTANCE_TYPES = option(
    "--instance-types CSV",
    "Table of instance types: name, cpu, memory, price, zones, other resources and labels by their keys.",
)


@option_group
class AutoscalerChoice:
    """The options that describe an autoscaler, for groups of options that have them."""

    pools: list[Path] | None = option(
        "--pools FILE",
        "Node pools from which an autoscaler adds nodes: NodePools of bayplan.dev/v1 or karpenter.sh/v1, or the "
        "status of Cluster Autoscaler. May be given several times.",
        allow_dash=True,
    )
    instance_types: Path | None = INSTANCE_TYPES
    autoscaler: str | None = option(
        "--autoscaler NAME",
        "With --pools: karpenter or cluster-autoscaler. Default: karpenter.",
        autocompletion=completing(AUTOSCALERS),
    )
    expander: str | None = option(
        "--expander NAME",
        "How Cluster Autoscaler chooses a group: least-waste, most-pods, least-nodes, price, priority or random; "
        "or several, separated by commas. Default: least-waste.",
        autocompletion=completing(EXPANDERS),
    )
    autoscaler_config: list[Path] | None = option(
        "--autoscaler-config FILE",
        "Manifests of Cluster Autoscaler as a cluster has them: its Deployment, whose flags are read, and the "
        "ConfigMap of the expander priority. May be given several times.",
        allow_dash=True,
    )
    autoscaler_flag: list[str] | None = option(
        "--autoscaler-flag NAME=VALUE",
        "A flag of Cluster Autoscaler, such as scale-down-unneeded-time=5m. May be given several times.",
    )
    batch_idle_duration: str | None = option(
        "--batch-idle-duration DURATION",
        "Karpenter plans when no further pod came for so long. Default: 1s.",
    )
    batch_max_duration: str | None = option(
        "--batch-max-duration DURATION",
        "Karpenter plans at the latest so long after the first pod. Default: 10s.",
    )
    scan_interval: str | None = option(
        "--scan-interval DURATION",
        "How often Cluster Autoscaler reads the cluster, and Karpenter searches nodes to remove. Default: 10s.",
    )

    def read_autoscaler(self, seed: int | None) -> AutoscalerOptions | None:
        """The autoscaler that the options describe; None without pools. Raises InputError for options that exclude
        each other.
        """
        from ...autoscaling import autoscaler_settings

        given: dict[str, Any] = {
            "autoscaler": self.autoscaler,
            "expander": self.expander,
            "autoscaler_config": self.autoscaler_config,
            "autoscaler_flags": self.autoscaler_flag,
        }
        durations = {
            "batch_idle_s": self.batch_idle_duration,
            "batch_max_s": self.batch_max_duration,
            "scan_interval_s": self.scan_interval,
        }
        for name, text in durations.items():
            given[name] = None if text is None else _seconds(SPELLINGS[name], text)
        options, notes = autoscaler_settings.read_autoscaler(
            given,
            bool(self.pools),
            seed,
            lambda name: SPELLINGS.get(name, f"--{name.replace('_', '-')}"),
        )
        print_notes(notes)
        return options


def read_scaled_pools(
    paths: Sequence[Path], table: Path | None, objects: Sequence[InputObject]
) -> PoolReading:
    """The pools in files; parts that are not modelled are reported on standard error."""
    from ...planning import read_pools

    reading = read_pools(paths, read_table(table), objects)
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


def read_table(path: Path | None) -> InstanceTable:
    """The table of instance types in a file; empty without one."""
    from ...planning import InstanceTable, read_instance_table

    return read_instance_table(path) if path is not None else InstanceTable()
