"""Compare: `bayplan compare`, one workload under several configurations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...choices import AUTOSCALERS
from ...errors import InputError
from ..options.autoscaler_options import INSTANCE_TYPES, read_autoscalers
from ..options.cluster_options import LIVE_CONTEXT, LIVE_KUBECONFIG, NAMESPACE
from ..options.config_options import (
    PLUGIN_FILES,
    SEED,
    read_settings,
)
from ..options.input_options import seconds_if_given, takes_input_limit
from ..options.option_groups import completing, option, option_group, takes_options
from ..options.scheduler_options import (
    FILENAME,
    KUSTOMIZE,
    RECURSIVE,
    SHOW_ALL,
    STRICT,
    WORKLOAD_KINDS,
    knowing_workloads,
    note_groups,
    note_recorded,
    read_cluster,
    reading_files,
)
from ..render.html import html_to
from ..render.plain_data import ANSWER_FORM, AnswerForm, is_whole, print_answer
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from ...answers.compare import Comparison, MakeSimulation
    from ...sim.settings import Settings

DEFAULT = "default"
T = TypeVar("T")


@option_group
class CompareOptions:
    """The options of `bayplan compare`."""

    filename: list[Path] | None = FILENAME
    kustomize: Path | None = KUSTOMIZE
    recursive: bool = RECURSIVE
    kubeconfig: Path | None = LIVE_KUBECONFIG
    context: str | None = LIVE_CONTEXT
    namespace: str | None = NAMESPACE
    strict: bool = STRICT
    workload_kinds: list[Path] | None = WORKLOAD_KINDS
    config: list[Path] | None = option(
        "--config FILE",
        "A KubeSchedulerConfiguration or Policy file. May be given several times; a single one is "
        "compared with the default configuration.",
    )
    kubernetes_version: list[str] | None = option(
        "--kubernetes-version 1.36",
        "A release, 1.33 to 1.37. Several are compared: with one --config for all, or one for each. "
        "Default: that of the cluster, else 1.36.",
    )
    feature_gates: list[str] | None = option(
        "--feature-gates A=true,B=false",
        "Feature gates to switch on or off: once for all, or once per --kubernetes-version.",
    )
    plugins: list[Path] | None = PLUGIN_FILES
    seed: int | None = SEED
    seeds: int = option(
        "--seeds NUMBER",
        "Run each configuration with this number of seeds, and show means with confidence intervals.",
        default=1,
        min=1,
    )
    html: Path | None = option(
        "--html FILE",
        "Write a page with the runs side by side to a file, which opens in a browser without a network.",
    )
    pools: list[Path] | None = option(
        "--pools FILE", "Node pools for an autoscaler. Each file is compared with the others."
    )
    instance_types: Path | None = INSTANCE_TYPES
    autoscaler: list[str] | None = option(
        "--autoscaler NAME",
        "With --pools: karpenter or cluster-autoscaler, or both. Default: karpenter.",
        autocompletion=completing(AUTOSCALERS),
    )
    until: str | None = option(
        "--until DURATION", "Stop each run after this time in the cluster, such as 24h."
    )
    output: AnswerForm = ANSWER_FORM
    everything: bool = SHOW_ALL


@takes_input_limit
@takes_options(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Place the same pods under several configurations, or as several releases do, and show what is better where.

    Spread is the standard deviation of the nodes' utilisation; fragmentation is the share of free capacity that a
    typical pod cannot use because no single node has enough of it. Without -f the cluster is the one that kubectl
    talks to. With --pools, every configuration is run with every file of pools and every autoscaler, and costs are
    compared, too.

    With --kubernetes-version 1.35 --kubernetes-version 1.37 the answer also has the changes by an upgrade: each pod is
    judged by both releases in the same cluster, and the rule that makes a difference is named.

    Exit status: 0, or 2 when the input is wrong.

    Example: bayplan compare -f cluster.yaml --config a.yaml --config b.yaml
    """
    from ...answers.compare import compare as compare_schedulers
    from ...sim.settings import reading_for
    from ..render.compare_table import render_comparison

    until_s = seconds_if_given("--until", options.until)
    schedulers = _schedulers(options)
    needs = reading_for(*(settings for _, settings in schedulers))
    files = (options.filename, options.kustomize, options.recursive, options.namespace)
    with needs, knowing_workloads(options.workload_kinds), reading_files(*files) as paths:
        reading = read_cluster(paths, options.kubeconfig, options.context, options.strict)
    if reading.version and not options.kubernetes_version:
        schedulers = _schedulers(options, reading.version)
        note_recorded(reading, schedulers[0][1])
    manifests = reading.manifests
    note_groups(manifests, *(settings for _, settings in schedulers))
    autoscalers = read_autoscalers(
        options.pools, options.instance_types, options.autoscaler, manifests.objects
    )
    schedulers, makers = _with_autoscalers(schedulers, autoscalers)
    with html_to(options.html) as page:
        with progress_bar("scheduling") as on_runs:
            answer = compare_schedulers(
                manifests.objects,
                schedulers,
                seeds=options.seeds,
                place_of=manifests.place_of,
                on_progress=on_runs,
                on_run=page.follow,
                makers=makers,
                until_s=until_s,
            )
        page.write_comparison(answer, [str(path) for path in options.filename or ()])
    print_answer(
        answer,
        "Comparison",
        options.output,
        lambda: _name_lines(answer),
        lambda console: render_comparison(
            console,
            answer,
            is_whole(options.everything, options.output, console),
            options.everything or options.output is AnswerForm.WIDE,
        ),
        reading.remarks,
    )


def _name_lines(answer: Comparison) -> list[str]:
    """`pod/<namespace>/<name>` and a node of each run, for the pods whose nodes differ; `-` stands for no node."""
    return [
        " ".join([f"pod/{each.pod}", *(f"node/{node}" if node else "-" for node in each.nodes)])
        for each in answer.differences()
    ]


def _schedulers(options: CompareOptions, version: str = "") -> list[tuple[str, Settings]]:
    """The schedulers to compare, each with a name of its own; of `version` unless the options name releases."""
    configs: list[Path | None] = [*(options.config or ())]
    versions = options.kubernetes_version or [version]
    if Path("-") in configs:
        raise InputError("--config: expected files; got standard input")
    if len(versions) > 1:
        names = [version.removeprefix("v") for version in versions]
        configs = _one_each(configs or [None], len(versions), "--config")
    else:
        if not configs and not options.pools:
            wanted = "at least one configuration, or two --kubernetes-version, to compare"
            raise InputError(f"--config: expected {wanted}; got none")
        if not configs or (len(configs) == 1 and not options.pools):
            configs = [None, *configs]
        names = [DEFAULT if path is None else str(path) for path in configs]
    gates = _one_each(
        options.feature_gates or [""], len(versions), "--feature-gates", by_times=True
    )
    if len(versions) == 1:
        versions, gates = versions * len(configs), gates * len(configs)
    seen: Counter[str] = Counter()
    schedulers = []
    for name, config, release, own in zip(names, configs, versions, gates, strict=True):
        seen[name] += 1
        shown = name if seen[name] == 1 else f"{name} ({seen[name]})"
        given = (config, None, own, options.plugins, options.seed, release)
        schedulers.append((shown, read_settings(*given)))
    return schedulers


def _one_each(given: list[T], releases: int, option: str, *, by_times: bool = False) -> list[T]:
    """The values of an option for each of the releases: one for all, or one for each."""
    if len(given) == 1:
        return given * releases
    if len(given) != releases:
        once, times, got = ("it once", " times", "it ") if by_times else ("one", "", "")
        wanted = once if releases == 1 else f"{once} for all releases, or {releases}{times}"
        raise InputError(f"{option}: expected {wanted}; got {got}{len(given)}{times}")
    return given


def _with_autoscalers(
    schedulers: list[tuple[str, Settings]], autoscalers: list[tuple[str, MakeSimulation]]
) -> tuple[list[tuple[str, Settings]], dict[str, MakeSimulation]]:
    """Every scheduler with every autoscaler, by a distinct name, and the makers of their simulations."""
    if not autoscalers:
        return schedulers, {}
    found, makers = [], {}
    for scheduler, settings in schedulers:
        for autoscaler, make in autoscalers:
            name = autoscaler if len(schedulers) == 1 else f"{scheduler} {autoscaler}"
            found.append((name, settings))
            makers[name] = make
    return found, makers
