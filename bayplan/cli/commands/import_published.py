"""Import published: the commands of `bayplan research trace import` for published traces besides openb."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...api.text.quantity import parse_quantity
from ...errors import InputError
from ..options.input_options import parse_seconds, takes_input_limit
from ..options.option_groups import (
    argument,
    option,
    option_group,
    takes_options,
    with_default,
)
from ..options.output_files import STDOUT, whole_target
from ..render.consoles import print_notes, say, stderr_console

LINES_ENDING = ".jsonl"

TO = option(
    "--to FILE",
    "Where to write the manifests; - is standard output. JSON lines, sorted by time, if the name ends with "
    ".jsonl; gzipped if it ends with .gz.",
    default=STDOUT,
)


def write_objects(to: str, objects: Iterable[dict[str, Any]]) -> None:
    """Write all manifests, or none when one is wrong."""
    from ...sim.traces import write_list
    from ...sim.traces.trace_manifests import write_lines

    if to == STDOUT:
        write_list(sys.stdout, list(objects))
        return
    is_lines = to.removesuffix(".gz").endswith(LINES_ENDING)
    with whole_target("--to", Path(to)) as file:
        count = write_lines(file, objects) if is_lines else write_list(file, objects)
    say(stderr_console(), f"{to}: {count:,} objects", "dim")


if TYPE_CHECKING:
    from ...sim.traces import PublishedTrace, TraceWindow
    from ...sim.traces.shapes import NodeShape

FOLDER = argument("FOLDER", "The folder with the files of the trace.")
CPUS = option(
    "--cpus-per-machine NUMBER",
    "Cores of the machine that the trace calls 1: its amounts are shares.",
    default=64,
)
MEMORY = option(
    "--memory-per-machine QUANTITY", "Memory of the largest machine: the trace has shares of it."
)
INSTANCES = option(
    "--instances",
    "Take the times of pods from the table of instances, which is large, instead of those of their task.",
)
POD_LIMIT = option(
    "--pods-per-node NUMBER",
    "Pods that a node takes, unless its table or --node has a number. Default: 110, the kubelet's.",
    min=1,
    show_default=False,
)
NODE = option(
    "--node SHAPE",
    "Nodes: count=20,cpu=64,memory=256Gi,label:KEY=VALUE. Without count, as many as the pods request at "
    "their peak. May be given several times.",
)


@option_group
class ImportOptions:
    """The options of every import, besides its own."""

    begin: str | None = option(
        "--from DURATION",
        "Begin at this time of the trace, such as 90m or 2d, with the pods that run then. Default: 0.",
    )
    until: str | None = option(
        "--until DURATION", "Leave out pods that are created at this time of the trace or later."
    )
    pods_per_node: int | None = POD_LIMIT
    to: str = TO

    def window(self) -> TraceWindow:
        """The part of the trace to read."""
        from ...sim.traces import TraceWindow

        from_s = 0.0 if self.begin is None else parse_seconds("--from", self.begin)
        until_s = float("inf") if self.until is None else parse_seconds("--until", self.until)
        if until_s <= from_s:
            raise InputError(f'--until: expected a time after --from; got "{self.until}"')
        return TraceWindow(from_s, until_s)


Trace: TypeAlias = "PublishedTrace"


PUBLISHED: list[tuple[str, str, Callable[..., None]]] = []
"""Name, short help and function of each command."""


def imports_trace(name: str, about: str) -> Callable[[Callable[..., Trace]], Callable[..., None]]:
    """A command with `options: ImportOptions` in front of its own, which returns a trace: its objects are written."""

    def decorate(command: Callable[..., Trace]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(options: ImportOptions, **given: Any) -> None:
            from ...sim.traces.trace_manifests import with_pod_limit

            trace = command(options, **given)
            limit = None if "node" in given else options.pods_per_node  # shapes have it
            write_objects(options.to, with_pod_limit(trace.objects(), limit))
            print_notes(dict.fromkeys(trace.notes))

        imports = takes_input_limit(takes_options(ImportOptions)(run))
        PUBLISHED.append((name, about, imports))
        return run

    return decorate


@imports_trace("alibaba-2018", "Convert Alibaba's services and batch jobs of 2018.")
def import_alibaba_2018(
    options: ImportOptions,
    folder: Path = FOLDER,
    instances: bool = INSTANCES,
    memory: str = with_default(MEMORY, "512Gi"),
) -> Trace:
    """Convert Alibaba's trace of 2018 (cluster-trace-v2018), services and batch jobs, to manifests.

    Reads machine_meta, container_meta and batch_task (with --instances also batch_instance), each as .csv, .csv.gz or
    .tar.gz. A batch task becomes as many pods as it has instances.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import alibaba-2018 v2018 --to 2018.jsonl
    """
    from ...sim.traces import Alibaba2018

    return Alibaba2018(
        folder=folder, memory_gib=_gib(memory), instances=instances, window=options.window()
    )


@imports_trace("alibaba-2020", "Convert Alibaba's GPU jobs of 2020 (PAI).")
def import_alibaba_2020(
    options: ImportOptions,
    folder: Path = FOLDER,
    instances: bool = INSTANCES,
    assigned_types: bool = option(
        "--assigned-types",
        "Pods require the type of GPU that they were given, instead of the one that they asked for.",
    ),
) -> Trace:
    """Convert Alibaba's GPU trace of 2020 (cluster-trace-gpu-v2020, PAI) to manifests.

    Reads pai_machine_spec, pai_job_table, pai_task_table, pai_group_tag_table if it is there, and with --instances
    pai_instance_table, each as .csv, .csv.gz or .tar.gz. A GPU is 1,000 of the resource bayplan.dev/gpu-milli.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import alibaba-2020 pai --to pai.jsonl.gz
    """
    from ...sim.traces import Alibaba2020

    return Alibaba2020(
        folder=folder, instances=instances, assigned_types=assigned_types, window=options.window()
    )


@imports_trace("alibaba-2025", "Convert Alibaba's inference instances of 2025.")
def import_alibaba_2025(
    options: ImportOptions,
    file: Path = argument("FILE", "disaggregated_DLRM_trace.csv, gzipped or not."),
    node: list[str] | None = NODE,
) -> Trace:
    """Convert Alibaba's inference trace of 2025 (cluster-trace-gpu-v2025) to manifests.

    Instances of an application per node are limited as in the trace. It has no nodes: give them with --node and the
    label bayplan.dev/role=CN or HN. By default nodes of both roles have 192 cores and 1 TiB, and those of HN 8 GPUs.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import alibaba-2025 dlrm.csv.gz --to dlrm.json
    """
    from ...sim.traces import Alibaba2025
    from ...sim.traces.alibaba_2025 import SHAPES

    shapes = _shapes(node, SHAPES, options.pods_per_node)
    return Alibaba2025(file=file, shapes=shapes, window=options.window())


@imports_trace("alibaba-2026", "Convert Alibaba's nodes and jobs with spot GPUs of 2026.")
def import_alibaba_2026(
    options: ImportOptions,
    place: Path = argument("FOLDER", "The folder with the CSV files, or the file of nodes alone."),
) -> Trace:
    """Convert Alibaba's trace of spot GPUs of 2026 (cluster-trace-v2026-spot-gpu) to manifests.

    Reads node_info_df, and job_info_df if it is there. A GPU is 1,000 of the resource bayplan.dev/gpu-milli; spot jobs
    have the priority 0, others 1.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import alibaba-2026 traces/spot --to spot.json
    """
    from ...sim.traces import find_alibaba_2026

    return find_alibaba_2026(place, options.window())


@imports_trace("azure-packing", "Convert Azure's packing trace of 2020.")
def import_azure_packing(
    options: ImportOptions,
    place: Path = argument("FILE", "The SQLite file, or a folder with vm.csv and vmType.csv."),
    nodes: int | None = option(
        "--nodes NUMBER",
        "Number of machines. Default: as many as the pods request at their peak.",
        min=1,
    ),
    machine: str | None = option(
        "--machine ID",
        "The machineId of all machines. Default: the one that supports most types of VMs.",
    ),
    cpus: float = CPUS,
    memory: str = with_default(MEMORY, "512Gi"),
) -> Trace:
    """Convert Azure's packing trace of 2020 (AzureTracesForPacking2020) to manifests.

    Amounts are shares of a machine. Virtual machines with a high priority have the priority 1, others 0.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import azure-packing a.sqlite --to a.jsonl
    """
    from ...sim.traces import AzurePacking

    return AzurePacking(
        place=place,
        cpus=_positive(cpus),
        memory_gib=_gib(memory),
        node_count=nodes,
        machine=machine,
        window=options.window(),
    )


@imports_trace("azure-vms", "Convert Azure's virtual machines of 2017 or 2019.")
def import_azure_vms(
    options: ImportOptions,
    file: Path = argument("FILE", "vmtable.csv, gzipped or not."),
    node: list[str] | None = NODE,
) -> Trace:
    """Convert the virtual machines of Azure of 2017 or 2019 (AzurePublicDataset V1, V2) to manifests.

    The trace has no nodes: give them with --node. By default they have 64 cores and 512 GiB.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import azure-vms vmtable.csv.gz --to vms.json
    """
    from ...sim.traces import AzureVms
    from ...sim.traces.azure_vms import SHAPES

    shapes = _shapes(node, SHAPES, options.pods_per_node)
    return AzureVms(file=file, shapes=shapes, window=options.window())


@imports_trace("google-2019", "Convert a Borg cell of 2019.")
def import_google_2019(
    options: ImportOptions,
    folder: Path = FOLDER,
    machine_events: bool = option(
        "--machine-events",
        "Machines also go, come back and change during the trace. The pods of one that goes are lost.",
    ),
    cpus: float = CPUS,
    memory: str = with_default(MEMORY, "256Gi"),
) -> Trace:
    """Convert a cell of Google's trace of 2019 (clusterdata-2019) to manifests.

    Reads machine_events and instance_events, and collection_events and machine_attributes if they are there, each in
    any number of files: JSON lines or CSV, gzipped or not. Amounts are shares of the largest machine.

    Exit status: 0, or 2 when a file is wrong.

    Example: bayplan research trace import google-2019 cell-a --to a.jsonl.gz
    """
    from ...sim.traces import Google2019

    return Google2019(
        folder=folder,
        cpus=_positive(cpus),
        memory_gib=_gib(memory),
        machine_events=machine_events,
        window=options.window(),
    )


def _shapes(
    texts: list[str] | None, default: tuple[str, ...], pods_per_node: int | None
) -> tuple[NodeShape, ...]:
    from ...sim.traces import parse_shape

    return tuple(parse_shape(text, pods_per_node=pods_per_node) for text in texts or default)


def _gib(text: str) -> float:
    """A quantity in GiB."""
    try:
        nano = parse_quantity(text)
    except ValueError:
        nano = 0
    if nano <= 0:
        raise InputError(f'--memory-per-machine: expected a quantity such as 256Gi; got "{text}"')
    return nano / 1e9 / 2**30


def _positive(number: float) -> float:
    if not 0 < number < 1e6:
        raise InputError(f"--cpus-per-machine: expected a number above 0; got {number:g}")
    return number
