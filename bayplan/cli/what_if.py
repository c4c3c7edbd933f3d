"""What if: `bayplan what-if`, what would follow from a change to a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .answering import print_answer
from .clusters import NamespaceOption, with_namespace
from .commands import CommandApp
from .options import PENDING, AllOption, AnswerForm, AnswerOption, Question, takes_question, warn
from .progress import progress_bar

if TYPE_CHECKING:
    from ..answers.what_if import ClusterChange, WhatIfAnswer

app = CommandApp(
    name="what-if",
    no_args_is_help=True,
    help="Say what a change would lead to: which pods move, wait or are preempted. Nothing is changed.",
    epilog="Example: bayplan what-if drain node-3 node-4 -f cluster.yaml",
)

NodesArgument = Annotated[
    list[str], typer.Argument(metavar="NODE", help="Names of nodes.", show_default=False)
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
            "--force",
            help="Also evict pods without an owner, and assume that they are created again.",
        ),
    ] = False,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Cordon nodes and evict their pods, as kubectl drain does; pods of DaemonSets and static pods stay.

    Exit status: 0, 1 when pods are pending that were not before, or are lost, 2 when the input is wrong.

    Example: bayplan what-if drain node-3 node-4 -f cluster.yaml
    """
    from ..answers.what_if import Drain

    _answer(question, [Drain(tuple(nodes), force)], output, everything)


@app.command("add-nodes", short_help="Add copies of an existing node.")
@takes_question
def add_nodes(
    question: Question,
    number: Annotated[
        int | None, typer.Argument(metavar="NUMBER", min=0, help="How many nodes. Default: 1.")
    ] = None,
    like: Annotated[
        str,
        typer.Option(metavar="NODE", help="Existing node to copy.", show_default=False),
    ] = "",
    until_fits: Annotated[
        bool,
        typer.Option(
            "--until-fits", help="Find the smallest number of nodes with which all pods fit."
        ),
    ] = False,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Add copies of an existing node: its size, labels and taints.

    Exit status: 0, 1 when pods are pending that were not before (with --until-fits: when some fit on no such node), 2
    when the input is wrong.

    Example: bayplan what-if add-nodes 2 --like node-1 -f cluster.yaml
    """
    from ..answers.what_if import AddNodes, fit_with_nodes

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
            objects,
            like,
            question.settings,
            as_is=question.as_is,
            place_of=place_of,
            on_progress=on_pods,
        )
    _print(question, answer, output, everything)
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
    """Mark nodes as unschedulable; the pods that run there stay.

    Example: bayplan what-if cordon node-3 -f cluster.yaml
    """
    from ..answers.what_if import Cordon

    _answer(question, [Cordon(tuple(nodes))], output, everything)


@app.command()
@takes_question
def uncordon(
    question: Question,
    nodes: NodesArgument,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Mark nodes as schedulable again.

    Example: bayplan what-if uncordon node-3 -f cluster.yaml
    """
    from ..answers.what_if import Uncordon

    _answer(question, [Uncordon(tuple(nodes))], output, everything)


@app.command("add-taint", short_help="Put taints on a node.")
@takes_question
def add_taint(
    question: Question,
    node: NodeArgument,
    taints: Annotated[
        list[str],
        typer.Argument(metavar="TAINT", help="key=value:Effect or key:Effect.", show_default=False),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Put taints on a node; NoExecute evicts the pods that do not tolerate it.

    Example: bayplan what-if add-taint node-1 gpu=yes:NoExecute -f cluster.yaml
    """
    from ..answers.what_if import AddTaint

    _answer(question, [AddTaint(node, tuple(taints))], output, everything)


@app.command("remove-taint")
@takes_question
def remove_taint(
    question: Question,
    node: NodeArgument,
    taints: Annotated[
        list[str],
        typer.Argument(
            metavar="TAINT", help="key, key:Effect or key=value:Effect.", show_default=False
        ),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Remove taints from a node.

    Example: bayplan what-if remove-taint node-1 example.com/gpu -f cluster.yaml
    """
    from ..answers.what_if import RemoveTaint

    _answer(question, [RemoveTaint(node, tuple(taints))], output, everything)


@app.command(short_help="Change the allocatable amounts of a node, or the requests of pods.")
@takes_question
def resize(
    question: Question,
    target: Annotated[
        str,
        typer.Argument(metavar="NODE|KIND/NAME", help="A node, a pod or a workload."),
    ],
    resources: Annotated[
        list[str],
        typer.Argument(
            metavar="RESOURCE=AMOUNT", help="New amount, such as cpu=8.", show_default=False
        ),
    ],
    namespace: NamespaceOption = None,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Change the allocatable amounts of a node, or the requests of a pod or of a workload's pods.

    Pods on a node that becomes too small stay; pods whose requests change are created again.

    Example: bayplan what-if resize node-1 cpu=8 memory=32Gi -f cluster.yaml
    """
    from ..answers.what_if import Resize, parse_resources

    _answer(
        question,
        [Resize(_found(question, namespace, target), parse_resources(resources))],
        output,
        everything,
    )


@app.command()
@takes_question
def scale(
    question: Question,
    workload: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="A workload, such as deployment/web.")
    ],
    replicas: Annotated[int, typer.Argument(metavar="NUMBER", min=0, help="How many pods.")],
    namespace: NamespaceOption = None,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Change the number of a workload's pods.

    Example: bayplan what-if scale deployment/web 10 -n shop -f cluster.yaml
    """
    from ..answers.what_if import Scale

    _answer(question, [Scale(_found(question, namespace, workload), replicas)], output, everything)


@app.command()
@takes_question
def delete(
    question: Question,
    objects: Annotated[
        list[str],
        typer.Argument(metavar="KIND/NAME", help="Objects of any kind.", show_default=False),
    ],
    namespace: NamespaceOption = None,
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Delete objects; the pods of a node are deleted with it.

    Example: bayplan what-if delete pod/shop/web-1 node/node-3 -f cluster.yaml
    """
    from ..answers.what_if import Delete

    _answer(
        question,
        [Delete(tuple(_found(question, namespace, each) for each in objects))],
        output,
        everything,
    )


@app.command(short_help="Make the changes in a file, in order.")
@takes_question
def apply(
    question: Question,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Changes, as docs/what-if.md describes them.", allow_dash=True
        ),
    ],
    output: AnswerOption = AnswerForm.TABLE,
    everything: AllOption = False,
) -> None:
    """Make the changes in a file, in order: those of the other commands, new objects, and patches.

    Example: bayplan what-if apply changes.yaml -f cluster.yaml
    """
    from ..answers.what_if import read_change_file
    from ..sim.settings import reading_for

    remarks: list[str] = []
    with reading_for(question.settings):
        changes = read_change_file(file, remarks)
    warn(remarks, question.is_strict)
    question = replace(question, remarks=[*question.remarks, *remarks])
    _answer(question, changes, output, everything)


def _answer(
    question: Question, changes: Sequence[ClusterChange], form: AnswerForm, everything: bool
) -> None:
    """Ask, print, and end with 1 when pods are worse off."""
    from ..answers.what_if import ask_what_if

    manifests = question.manifests
    with progress_bar("scheduling") as on_pods:
        answer = ask_what_if(
            manifests.objects,
            changes,
            question.settings,
            as_is=question.as_is,
            place_of=manifests.place_of,
            on_progress=on_pods,
        )
    _print(question, answer, form, everything)
    if answer.is_worse:
        raise typer.Exit(PENDING)


def _found(question: Question, namespace: str | None, target: str) -> str:
    """The target, in the namespace that was given for it."""
    return with_namespace(target, namespace or question.namespace)


def _print(question: Question, answer: WhatIfAnswer, form: AnswerForm, everything: bool) -> None:
    from .render.what_if import render_what_if

    print_answer(
        answer,
        "WhatIf",
        form,
        lambda: _names(answer),
        lambda console: render_what_if(console, answer, everything or not console.is_terminal),
        question.remarks,
    )


def _names(answer: WhatIfAnswer) -> list[str]:
    """`pod/<namespace>/<name> node/<node>` per pod that is not as it was; `-` stands for no node."""
    from ..answers.what_if import WhatIfState

    lines = []
    for change in answer.pods:
        is_running = change.now.state is WhatIfState.RUNNING
        node = f"node/{change.now.node}" if is_running else "-"
        lines.append(f"pod/{change.key} {node}")
    return lines
