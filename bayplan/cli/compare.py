"""Compare: `bayplan compare`, one workload under several configurations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .answering import print_answer
from .clusters import LiveContextOption, LiveKubeconfigOption
from .config_options import FeatureGatesOption, PluginFilesOption, SeedOption, read_settings
from .failures import reports_failures
from .html import comparison_to
from .options import (
    AllOption,
    AnswerForm,
    AnswerOption,
    FilenameOption,
    StrictOption,
    note_groups,
    read_cluster,
)
from .progress import progress_bar

if TYPE_CHECKING:
    from ..answers.compare import Comparison
    from ..sim.settings import Settings

DEFAULT = "default"


@reports_failures
def compare(
    filename: FilenameOption = None,
    kubeconfig: LiveKubeconfigOption = None,
    context: LiveContextOption = None,
    strict: StrictOption = False,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A KubeSchedulerConfiguration or Policy file. May be given several times; a single one is "
            "compared with the default configuration.",
            show_default=False,
        ),
    ] = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginFilesOption = None,
    seed: SeedOption = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Run each configuration with this number of seeds, and show means with confidence intervals.",
        ),
    ] = 1,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page with the runs side by side to a file, which opens in a browser without a network.",
            show_default=False,
        ),
    ] = None,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Place the same pods under several configurations, and show what is better where.

    Spread is the standard deviation of the nodes' utilisation; fragmentation is the share of free capacity that a
    typical pod cannot use because no single node has enough of it. Without -f the cluster is the one that kubectl
    talks to.

    Exit status: 0, or 2 when the input is wrong.

    Example: bayplan compare -f cluster.yaml --config a.yaml --config b.yaml
    """
    from ..answers.compare import compare as compare_schedulers
    from ..sim.settings import reading_for
    from .render.compare import render_comparison

    schedulers = _schedulers(config or [], feature_gates, plugins, seed)
    with reading_for(*(settings for _, settings in schedulers)):
        reading = read_cluster(filename, kubeconfig, context, strict)
    manifests = reading.manifests
    note_groups(manifests, schedulers[0][1])
    with comparison_to(html) as page:
        with progress_bar("scheduling") as on_runs:
            answer = compare_schedulers(
                manifests.objects,
                schedulers,
                seeds=seeds,
                place_of=manifests.place_of,
                on_progress=on_runs,
                on_run=page.follow,
            )
        page.write(answer, [str(path) for path in filename or ()])
    print_answer(
        answer,
        "Comparison",
        output,
        lambda: _names(answer),
        lambda console: render_comparison(console, answer, everything or not console.is_terminal),
        reading.remarks,
    )


def _schedulers(
    configs: Sequence[Path], feature_gates: str, plugins: list[Path] | None, seed: int | None
) -> list[tuple[str, Settings]]:
    """The schedulers to compare, each with a name of its own."""
    if not configs:
        raise InputError("--config: expected at least one configuration to compare; got none")
    if sum(str(path) == "-" for path in configs):
        raise InputError("--config: expected files; got standard input")
    files: list[Path | None] = [None, *configs] if len(configs) == 1 else list(configs)
    seen: Counter[str] = Counter()
    schedulers = []
    for path in files:
        name = DEFAULT if path is None else str(path)
        seen[name] += 1
        shown = name if seen[name] == 1 else f"{name} ({seen[name]})"
        schedulers.append((shown, read_settings(path, None, feature_gates, plugins, seed)))
    return schedulers


def _names(answer: Comparison) -> list[str]:
    """`pod/<namespace>/<name>` and its node under each configuration, for pods that land elsewhere."""
    return [
        " ".join([f"pod/{each.pod}", *(f"node/{node}" if node else "-" for node in each.nodes)])
        for each in answer.differences()
    ]
