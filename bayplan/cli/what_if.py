"""What if: `bayplan what-if`, what would follow from a change to a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..answers.what_if import (
    AddNodes,
    AddTaint,
    ClusterChange,
    Cordon,
    Delete,
    Drain,
    RemoveTaint,
    Resize,
    Scale,
    State,
    Uncordon,
    WhatIf,
    ask_what_if,
    fit_with_nodes,
    parse_resources,
    read_change_file,
)
from ..errors import InputError
from .answering import print_answer
from .options import PENDING, AllOption, AnswerForm, AnswerOption, Question, takes_question
from .progress import progress_bar
from .render_what_if import render_what_if

app = typer.Typer(
    name="what-if",
    no_args_is_help=True,
    help="Say what would follow from a change: who moves where, who waits, who is pushed out. Nothing is changed.",
    epilog="Example: bayplan what-if drain node-3 node-4 -f cluster.yaml",
)

NodesArgument = Annotated[
    list[str], typer.Argument(metavar="NODE...", help="Names of nodes.", show_default=False)
]
NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Name of a node.")]


@app.command(short_help="Evict the pods of nodes, as kubectl drain does.")
@takes_question
def drain(
    question: Question,
    nodes: NodesArgument,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Evict pods without an owner, too, as if somebody made them anew."
        ),
    ] = False,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Cordon nodes and evict their pods, as kubectl drain does; daemons and static pods stay.

    Ends with 0, with 1 when pods wait that did not before, or are lost, with 2 when the input is wrong.

    Example: bayplan what-if drain node-3 node-4 -f cluster.yaml
    """
    _answer(question, [Drain(tuple(nodes), force)], output, everything)


@app.command("add-nodes", short_help="Add nodes like one that is there.")
@takes_question
def add_nodes(
    question: Question,
    number: Annotated[
        int | None, typer.Argument(metavar="NUMBER", min=0, help="How many nodes; 1 if not said.")
    ] = None,
    like: Annotated[
        str,
        typer.Option(metavar="NODE", help="The node that they are to be like.", show_default=False),
    ] = "",
    until_fits: Annotated[
        bool,
        typer.Option("--until-fits", help="Find out how many it takes until all pods fit."),
    ] = False,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Add nodes like one that is there: its size, labels and taints.

    Ends with 0, with 1 when pods wait that did not before (with --until-fits: when some fit on no such node), with 2
    when the input is wrong.

    Example: bayplan what-if add-nodes --like node-1 --until-fits -f cluster.yaml
    """
    if not like:
        raise InputError("add-nodes: expected --like with the name of a node; got none")
    if not until_fits:
        _answer(question, [AddNodes(1 if number is None else number, like)], output, everything)
        return
    if number is not None:
        raise InputError(f"add-nodes: expected a number or --until-fits; got both, {number} and it")
    objects, place_of = question.manifests.objects, question.manifests.place_of
    with progress_bar("scheduling") as on_pods:
        answer = fit_with_nodes(
            objects, like, question.settings, place_of=place_of, on_progress=on_pods
        )
    _print(answer, output, everything)
    assert answer.search is not None
    if answer.search.hopeless:
        raise typer.Exit(PENDING)


@app.command()
@takes_question
def cordon(
    question: Question,
    nodes: NodesArgument,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Let nodes take no more pods; those that run there stay.

    Example: bayplan what-if cordon node-3 -f cluster.yaml
    """
    _answer(question, [Cordon(tuple(nodes))], output, everything)


@app.command()
@takes_question
def uncordon(
    question: Question,
    nodes: NodesArgument,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Let nodes take pods again.

    Example: bayplan what-if uncordon node-3 -f cluster.yaml
    """
    _answer(question, [Uncordon(tuple(nodes))], output, everything)


@app.command("add-taint", short_help="Put taints on a node.")
@takes_question
def add_taint(
    question: Question,
    node: NodeArgument,
    taints: Annotated[
        list[str],
        typer.Argument(
            metavar="TAINT...", help="key=value:Effect or key:Effect.", show_default=False
        ),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Put taints on a node; NoExecute drives away the pods that do not tolerate it.

    Example: bayplan what-if add-taint node-1 maintenance=soon:NoExecute -f cluster.yaml
    """
    _answer(question, [AddTaint(node, tuple(taints))], output, everything)


@app.command("remove-taint")
@takes_question
def remove_taint(
    question: Question,
    node: NodeArgument,
    taints: Annotated[
        list[str],
        typer.Argument(
            metavar="TAINT...", help="key, key:Effect or key=value:Effect.", show_default=False
        ),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Take taints off a node.

    Example: bayplan what-if remove-taint node-1 example.com/gpu -f cluster.yaml
    """
    _answer(question, [RemoveTaint(node, tuple(taints))], output, everything)


@app.command(short_help="Change what a node offers, or what pods ask for.")
@takes_question
def resize(
    question: Question,
    target: Annotated[
        str,
        typer.Argument(metavar="NODE|KIND/NAME", help="A node, a pod or a workload."),
    ],
    resources: Annotated[
        list[str],
        typer.Argument(metavar="RESOURCE=AMOUNT...", help="Such as cpu=8.", show_default=False),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Let a node offer, or a pod or the pods of a workload ask for, other amounts.

    Pods on a node that becomes too small stay; pods that are resized are made anew.

    Example: bayplan what-if resize node-1 cpu=8 memory=32Gi -f cluster.yaml
    """
    _answer(question, [Resize(target, parse_resources(resources))], output, everything)


@app.command()
@takes_question
def scale(
    question: Question,
    workload: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="A workload, such as deployment/web.")
    ],
    replicas: Annotated[int, typer.Argument(metavar="NUMBER", min=0, help="How many pods.")],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Let a workload want another number of pods.

    Example: bayplan what-if scale deployment/shop/web 10 -f cluster.yaml
    """
    _answer(question, [Scale(workload, replicas)], output, everything)


@app.command()
@takes_question
def delete(
    question: Question,
    objects: Annotated[
        list[str],
        typer.Argument(metavar="KIND/NAME...", help="Objects of any kind.", show_default=False),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Delete objects; the pods of a node go with it.

    Example: bayplan what-if delete pod/shop/web-1 node/node-3 -f cluster.yaml
    """
    _answer(question, [Delete(tuple(objects))], output, everything)


@app.command(short_help="Make the changes in a file, in order.")
@takes_question
def apply(
    question: Question,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Changes, as docs/answers.md describes them.", allow_dash=True
        ),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Make the changes in a file, in order: all of the above, objects to add, and patches.

    Example: bayplan what-if apply changes.yaml -f cluster.yaml
    """
    _answer(question, read_change_file(file), output, everything)


def _answer(
    question: Question, changes: Sequence[ClusterChange], form: AnswerForm, everything: bool
) -> None:
    """Ask, print, and end with 1 when somebody is worse off."""
    manifests = question.manifests
    with progress_bar("scheduling") as on_pods:
        answer = ask_what_if(
            manifests.objects,
            changes,
            question.settings,
            place_of=manifests.place_of,
            on_progress=on_pods,
        )
    _print(answer, form, everything)
    if answer.is_worse:
        raise typer.Exit(PENDING)


def _print(answer: WhatIf, form: AnswerForm, everything: bool) -> None:
    print_answer(
        answer,
        "WhatIf",
        form,
        lambda: _names(answer),
        lambda console: render_what_if(console, answer, everything or not console.is_terminal),
    )


def _names(answer: WhatIf) -> list[str]:
    """`pod/<namespace>/<name> node/<node>` per pod that is not as it was; `-` stands for no node."""
    lines = []
    for change in answer.pods:
        is_running = change.now.state is State.RUNNING
        node = f"node/{change.now.node}" if is_running else "-"
        lines.append(f"pod/{change.key} {node}")
    return lines
