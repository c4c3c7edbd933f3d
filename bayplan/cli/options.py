"""Options: what every command takes that asks a scheduler about manifests.

A command that is wrapped in `takes_question` gets these options, and is called with what they come to.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from ..answers.settings import Settings
from ..api.pod import Pod
from ..cluster.live import read_live
from ..config import parse_feature_gates
from ..errors import InputError
from ..sim import Manifests, lay_over, manifests_of, read_manifests
from .clusters import LiveContextOption, LiveKubeconfigOption
from .config import FeatureGatesOption, PluginFilesOption, ProviderOption, read_configuration
from .consoles import stderr_console
from .failures import reports_failures
from .progress import progress_bar

PENDING = 1
"""The exit status when pods wait."""

FilenameOption = Annotated[
    list[Path] | None,
    typer.Option(
        "-f",
        "--filename",
        help="File or folder with manifests, YAML or JSON, also gzipped; - is standard input. "
        "May be given several times.",
        allow_dash=True,
        metavar="PATH",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A KubeSchedulerConfiguration or Policy file of any generation.",
        show_default=False,
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER", help="Draws lots between equally good nodes.", show_default=False
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show all pods and nodes, however many.")]


class AnswerForm(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


AnswerOption = Annotated[
    AnswerForm,
    typer.Option(
        "-o", "--output", metavar="FORM", help=f"How to print it: {', '.join(AnswerForm)}."
    ),
]


@dataclass(frozen=True, slots=True)
class Question:
    """A cluster and a scheduler, read from what was given on the command line."""

    manifests: Manifests
    settings: Settings
    sources: Sequence[str] = ()
    """Where the cluster was read."""


Own = ParamSpec("Own")


def takes_question(command: Callable[Concatenate[Question, Own], None]) -> Callable[..., None]:
    """The command with the options of a question in front of its own; its errors become a line and a status."""

    @functools.wraps(command)
    @reports_failures
    def run(**options: Any) -> None:
        shared = {name: options.pop(name) for name in SHARED}
        command(read_question(**shared), **options)  # type: ignore[call-arg]

    _show_options(run, [*SHARED.values(), *_parameters(command)[1:]])
    return run


def read_question(
    filename: FilenameOption = None,
    kubeconfig: LiveKubeconfigOption = None,
    context: LiveContextOption = None,
    config: ConfigOption = None,
    algorithm_provider: ProviderOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginFilesOption = None,
    seed: SeedOption = None,
) -> Question:
    """Read everything that the options name."""
    settings = read_settings(config, algorithm_provider, feature_gates, plugins, seed)
    reading = read_cluster(filename, kubeconfig, context)
    return Question(reading.manifests, settings, reading.sources)


def read_settings(
    config: Path | None,
    algorithm_provider: str | None,
    feature_gates: str,
    plugins: Sequence[Path] | None,
    seed: int | None,
) -> Settings:
    """The scheduler that the options describe."""
    gates = parse_feature_gates(feature_gates)
    reading = read_configuration(config, algorithm_provider, gates)
    return Settings(reading.config, gates, tuple(str(path) for path in plugins or ()), seed)


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """The objects of a cluster, and the names of what they were read from."""

    manifests: Manifests
    sources: Sequence[str]


def read_cluster(
    paths: Sequence[Path] | None, kubeconfig: Path | None = None, context: str | None = None
) -> ClusterReading:
    """The objects in files, of a live cluster, or of one to which the files are applied.

    Shows a bar while they are read, and a note about those that are of no use.
    """
    is_live = kubeconfig is not None or context is not None
    if not paths and not is_live:
        wanted = "manifests (-f PATH) or a live cluster (--kubeconfig FILE or --context NAME)"
        raise InputError(f"expected {wanted}; got neither")
    files = _read_files(paths) if paths else Manifests()
    sources = [str(path) for path in paths or ()]
    if not is_live:
        return ClusterReading(files, sources)
    with progress_bar("reading the cluster") as on_kind:
        live = read_live(kubeconfig, context, on_kind=on_kind)
    manifests, present = lay_over(manifests_of(live.objects, live.server), files)
    _note_present(present)
    return ClusterReading(manifests, [live.server, *sources])


def _read_files(paths: Sequence[Path]) -> Manifests:
    with progress_bar("reading") as on_bytes:
        manifests = read_manifests(paths, on_bytes)
    _note_unused(manifests.unused)
    return manifests


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]


SHARED = {parameter.name: parameter for parameter in _parameters(read_question)}


def _show_options(command: Callable[..., None], parameters: list[inspect.Parameter]) -> None:
    """Let `command` look as if it had these parameters, for whoever makes options of them."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}


def _note_unused(unused: Counter[str]) -> None:
    """Say on standard error which objects were of no use."""
    if unused:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(unused.items()))
        total = unused.total()
        objects = "1 object has" if total == 1 else f"{total:,} objects have"
        _note(f"{objects} no bearing on scheduling: {kinds}")


def _note_present(pods: Sequence[Pod]) -> None:
    """Say on standard error which pods were not added."""
    if len(pods) == 1:
        _note(f"pod {pods[0].key} is in the cluster already and stays as it is there")
    elif pods:
        _note(
            f"{len(pods):,} pods, such as {pods[0].key}, are in the cluster already and stay as they are there"
        )


def _note(text: str) -> None:
    stderr_console().print(f"note: {text}", style="dim", markup=False, soft_wrap=True)
