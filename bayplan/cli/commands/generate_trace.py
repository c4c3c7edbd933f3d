"""Generate trace: `bayplan research trace generate` and `fit`, workloads that are drawn from a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..options.input_options import takes_input_limit
from ..options.output_files import STDOUT, whole_target
from .import_published import ToOption, write_objects

ModelArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file of kind WorkloadModel, YAML or JSON.")
]
FilesOption = Annotated[
    list[str],
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="Manifests of nodes and pods, as an import writes them. May be given several times.",
        show_default=False,
    ),
]


@takes_input_limit
def generate_trace(
    file: ModelArgument,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Seed for drawing the workload.")] = 0,
    to: ToOption = STDOUT,
) -> None:
    """Draw a workload from a model: nodes, jobs that arrive over time, and failures of nodes and zones.

    Exit status: 0, or 2 when the file is wrong.

    Example: bayplan research trace generate model.yaml --seed 1 --to day.jsonl
    """
    from ...sim.synthetic import generate, read_model

    write_objects(to, generate(read_model(file), seed))


@takes_input_limit
def fit_trace(
    files: FilesOption,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="FILE", help="Where to write the model; - is standard output."
        ),
    ] = STDOUT,
) -> None:
    """Fit a model to the pods of a trace: rate, time of day, bursts, requests and durations.

    Exit status: 0, or 2 when the input is wrong.

    Example: bayplan research trace fit -f openb.json --to model.yaml
    """
    from ...sim import read_manifests
    from ...sim.synthetic import fit_model
    from ...yaml_tree import format_tree

    manifests = read_manifests(files)
    manifests.refuse_remarks()
    text = format_tree(fit_model(manifests.objects))
    if to == STDOUT:
        sys.stdout.write(text)
        return
    with whole_target("--to", Path(to)) as file:
        file.write(text)
