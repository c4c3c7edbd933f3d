"""Change options: options that the commands of `bayplan what-if` share.

A command in `answers_change` returns its changes; one in `takes_answer_options` prints the answer itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from ...errors import InputError
from ..render.plain_data import ANSWER_FORM, AnswerForm, pod_line, print_answer
from ..render.progress_bar import progress_bar
from .input_options import takes_input_limit
from .option_groups import (
    argument,
    option,
    option_group,
    parameters_of,
    show_options,
    takes_options,
)
from .scheduler_options import (
    KUSTOMIZE,
    PENDING,
    RECURSIVE,
    SHOW_ALL,
    Question,
    QuestionOptions,
    knowing_workloads,
    read_files,
    reading_files,
    takes_question,
)
from .scheduler_options import SHARED as QUESTION

if TYPE_CHECKING:
    from ...answers.what_if import ClusterChange

Changes: TypeAlias = "Sequence[ClusterChange]"

NODES = argument("NODE", "Names of nodes, or patterns such as 'gpu-*'.", default=None)
NODE = argument("NODE", "Name of a node.")
SELECTOR = option(
    "-l, --selector LABELS",
    "Only nodes with these labels, as for kubectl: zone=a,!spot.",
    default="",
)
FORCE = option(
    "--force",
    "Go on where pods declare no controller, as kubectl drain does; they count as created again.",
)
EMPTY_DIR = option(
    "--delete-emptydir-data",
    "Go on where pods have emptyDir volumes, whose data is deleted. Without it such nodes are refused.",
)
DISABLE_EVICTION = option(
    "--disable-eviction", "Delete pods instead of evicting them, past disruption budgets."
)
DAEMON_SETS = option(
    "--ignore-daemonsets/--no-ignore-daemonsets",
    "Pods of DaemonSets stay. With --no-ignore-daemonsets nodes that have some are refused, as by kubectl "
    "drain without the flag.",
    default=True,
)
START_TIME = option(
    "--start-time DURATION",
    "Time from a pod's node to its readiness, for the duration of the whole: 30s.",
    default="0s",
)


@option_group
class AnswerOptions:
    """The options of every change."""

    until_fits: bool = option(
        "--until-fits",
        "Find the smallest number of nodes, like those of --like, with which all pods fit after the change.",
    )
    like: list[str] | None = option(
        "--like NODE", "Existing node to copy. Several are used in turn, such as one of each zone."
    )
    fewest: bool = option(
        "--fewest", "With --until-fits: choose how many of each --like, for few nodes in all."
    )
    output: AnswerForm = ANSWER_FORM
    everything: bool = SHOW_ALL

    def check(self) -> None:
        """Raise InputError for options without those that they belong to."""
        if self.until_fits != bool(self.like) or (self.fewest and not self.until_fits):
            likes = [f"--like {name}" for name in self.like or ()]
            given = ["--until-fits"] * self.until_fits + likes + ["--fewest"] * self.fewest
            raise InputError(f"expected --until-fits and --like; got only {' '.join(given)}")


def takes_answer_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command on a question with `options: AnswerOptions` as second parameter: it gets an option for each field."""

    return takes_question(takes_options(AnswerOptions)(command))


def takes_manifests(command: Callable[..., None]) -> Callable[..., None]:
    """A command with `manifests` that are applied to a cluster as fourth parameter, after `options` and `file`.

    `-f` names the manifests, and `--cluster` the files of a cluster that is not live. With a file of changes, which
    was read by this command formerly, `-f` names the cluster, as for the other commands.
    """

    @functools.wraps(command)
    def run(**given: Any) -> None:
        from ...api.wire.sourced import keeping_documents

        options = AnswerOptions(**{each.name: given.pop(each.name) for each in SHARED})
        file, cluster = given.pop("file"), given.pop("cluster")
        files = {name: given.pop(name) for name in FILES}
        asked = {name: given.pop(name) for name in QUESTION if name not in FILES}
        with knowing_workloads(asked["workload_kinds"]):
            if file is not None:
                command(QuestionOptions(**files, **asked).read(), options, file, None)
                return
            question = QuestionOptions(filename=cluster, **asked).read()
            with (
                reading_files(**files, namespace=asked["namespace"]) as paths,
                keeping_documents() as documents,
            ):
                if paths is None:
                    raise InputError("apply: expected manifests, -f FILE or -k FOLDER; got neither")
                manifests = read_files(paths, asked["strict"])
            command(question, options, None, (manifests, documents))

    shared = [one for name, one in QUESTION.items() if name not in FILES]
    own = [each for each in parameters_of(command) if each.name in ("file",)]
    show_options(run, [*own, *parameters_of(_ApplyOptions), *shared, *SHARED])
    return takes_input_limit(run)


@option_group
class _ApplyOptions:
    """The options of a command that applies manifests."""

    filename: list[Path] | None = option(
        "-f, --filename FILE",
        "File or folder with the manifests to apply; - is standard input. May be given several times.",
        allow_dash=True,
    )
    kustomize: Path | None = KUSTOMIZE
    recursive: bool = RECURSIVE
    cluster: list[Path] | None = option(
        "--cluster FILE",
        "A file or folder with the cluster, such as a snapshot. Default: the live cluster.",
    )


def answers_change(command: Callable[..., Changes]) -> Callable[..., None]:
    """Make a command of a function that returns changes: it makes them and prints the answer.

    The exit status is 1 if pods are worse off.
    """

    @functools.wraps(command)
    def run(question: Question, options: AnswerOptions, **given: Any) -> None:
        options.check()
        print_consequences(question, command(question, **given), options)

    return takes_answer_options(run)


SHARED = parameters_of(AnswerOptions)
FILES = ("filename", "kustomize", "recursive")
"""The options that name files."""


def print_consequences(question: Question, changes: Changes, options: AnswerOptions) -> None:
    """Ask, print, and end with 1 when pods are worse off, or when no number of nodes is enough."""
    from ...answers.what_if import ask_what_if, fit_with_nodes
    from ..render.consequences import render_what_if

    objects, settings = question.manifests.objects, question.settings
    with progress_bar("scheduling") as on_progress:
        how: dict[str, Any] = {
            "as_is": question.options.as_is,
            "place_of": question.manifests.place_of,
            "on_progress": on_progress,
        }
        if options.until_fits:
            how |= {"changes": changes, "fewest": options.fewest}
            answer = fit_with_nodes(objects, options.like or (), settings, **how)
        else:
            answer = ask_what_if(objects, changes, settings, **how)
    details = options.everything or options.output is AnswerForm.WIDE
    print_answer(
        answer,
        "WhatIf",
        options.output,
        # a pod that is not running has no node
        lambda: [pod_line(change.key, change.now.node) for change in answer.pods],
        lambda console: render_what_if(
            console, answer, details or not console.is_terminal, details=details
        ),
        question.remarks,
    )
    search = answer.search
    if answer.is_worse if search is None else search.hopeless:
        raise typer.Exit(PENDING)
