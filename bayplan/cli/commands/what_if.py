"""What if: `bayplan what-if`, the consequences of a change to a cluster."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..command_table import CommandApp
from ..options.change_options import (
    DAEMON_SETS,
    DISABLE_EVICTION,
    EMPTY_DIR,
    FORCE,
    NODE,
    NODES,
    SELECTOR,
    START_TIME,
    AnswerOptions,
    Changes,
    answers_change,
    print_consequences,
    takes_answer_options,
    takes_manifests,
)
from ..options.cluster_options import with_namespace
from ..options.input_options import parse_seconds
from ..options.option_groups import argument, option
from ..options.scheduler_options import Question, takes_question, warn
from ..render.plain_data import ANSWER_FORM, AnswerForm, print_answer
from ..render.progress_bar import progress_bar

app = CommandApp(
    name="what-if",
    no_args_is_help=True,
    help="Say what a change would lead to: which pods move, wait or are preempted. Nothing is changed.",
    epilog="Example: bayplan what-if drain node-3 node-4 -f cluster.yaml",
)


@app.command(short_help="Evict the pods of nodes, as kubectl drain does.")
@answers_change
def drain(
    question: Question,
    nodes: list[str] | None = NODES,
    selector: str = SELECTOR,
    force: bool = FORCE,
    delete_emptydir_data: bool = EMPTY_DIR,
    disable_eviction: bool = DISABLE_EVICTION,
    ignore_daemonsets: bool = DAEMON_SETS,
    start_time: str = START_TIME,
) -> Changes:
    """Cordon nodes and evict their pods in rounds, as their disruption budgets allow; pods of DaemonSets and static
    pods stay. Nodes that kubectl drain refuses are refused with the same messages.

    Exit status: 0, 1 when pods are pending that were not before, or are lost, or the drain stalls or is refused, 2 when
    the input is wrong.

    Example: bayplan what-if drain -l zone=a --start-time 30s -f cluster.yaml
    """
    from ...answers.what_if import Drain

    start_s = parse_seconds("--start-time", start_time)
    rest = (delete_emptydir_data, disable_eviction, ignore_daemonsets)
    return [Drain(tuple(nodes or ()), force, selector, start_s, *rest)]


@app.command(short_help="Replace nodes in turn, as an upgrade of a node pool does.")
@answers_change
def upgrade(
    question: Question,
    nodes: list[str] | None = NODES,
    selector: str = SELECTOR,
    surge: int = option(
        "--surge NUMBER", "New nodes that come before their old ones.", default=1, min=0
    ),
    max_unavailable: int = option(
        "--max-unavailable NUMBER",
        "Old nodes that go before their new ones come.",
        default=0,
        min=0,
    ),
    force: bool = FORCE,
    delete_emptydir_data: bool = EMPTY_DIR,
    disable_eviction: bool = DISABLE_EVICTION,
    ignore_daemonsets: bool = DAEMON_SETS,
    start_time: str = START_TIME,
    node_start_time: str = option(
        "--node-start-time DURATION", "Time until a new node is ready: 90s.", default="0s"
    ),
) -> Changes:
    """Replace each node by a copy: drain it under disruption budgets, delete it, continue with the next.

    Prints the pods at risk, how many wait at most, and the nodes that stall; those are left as they are.

    Exit status: 0, 1 when pods are pending that were not before, or are lost, or a node stalls, 2 when the input is
    wrong.

    Example: bayplan what-if upgrade -l pool=web --surge 2 -f cluster.yaml
    """
    from ...answers.what_if import Upgrade

    start_s = parse_seconds("--start-time", start_time)
    node_start_s = parse_seconds("--node-start-time", node_start_time)
    named = tuple(nodes or ())
    sizes, times = (surge, max_unavailable), (start_s, node_start_s)
    rest = (delete_emptydir_data, disable_eviction, ignore_daemonsets)
    return [Upgrade(named, selector, *sizes, force, *times, *rest)]


@app.command("add-nodes", short_help="Add copies of existing nodes.")
@takes_answer_options
def add_nodes(
    question: Question,
    options: AnswerOptions,
    number: int | None = argument("NUMBER", "How many nodes. Default: 1.", default=None, min=0),
) -> None:
    """Add copies of an existing node: its size, labels and taints; of several nodes in turn.

    Exit status: 0, 1 when pods are pending that were not before (with --until-fits: when some fit on no such node), 2
    when the input is wrong.

    Example: bayplan what-if add-nodes 2 --like node-1 -f cluster.yaml
    """
    from ...answers.what_if import AddNodes

    if not options.like:
        raise InputError("add-nodes: expected --like with the name of a node; got none")
    if options.until_fits:
        if number is not None:
            problem = "add-nodes: expected a number or --until-fits; got both"
            raise InputError(f"{problem}, {number} and it")
        print_consequences(question, [], options)
        return
    if options.fewest:
        raise InputError("add-nodes: expected --fewest with --until-fits; got it alone")
    added = AddNodes(1 if number is None else number, tuple(options.like))
    print_consequences(question, [added], options)


@app.command()
@answers_change
def cordon(
    question: Question,
    nodes: list[str] | None = NODES,
    selector: str = SELECTOR,
) -> Changes:
    """Mark nodes as unschedulable; the pods that run there stay.

    Example: bayplan what-if cordon -l zone=a -f cluster.yaml
    """
    from ...answers.what_if import Cordon

    return [Cordon(tuple(nodes or ()), selector)]


@app.command()
@answers_change
def uncordon(
    question: Question,
    nodes: list[str] | None = NODES,
    selector: str = SELECTOR,
) -> Changes:
    """Mark nodes as schedulable again.

    Example: bayplan what-if uncordon node-3 -f cluster.yaml
    """
    from ...answers.what_if import Uncordon

    return [Uncordon(tuple(nodes or ()), selector)]


@app.command("add-taint", short_help="Put taints on a node.")
@answers_change
def add_taint(
    question: Question,
    node: str = NODE,
    taints: list[str] = argument("TAINT", "key=value:Effect or key:Effect."),
) -> Changes:
    """Put taints on a node; NoExecute evicts the pods that do not tolerate it.

    Example: bayplan what-if add-taint node-1 gpu=yes:NoExecute -f cluster.yaml
    """
    from ...answers.what_if import AddTaint

    return [AddTaint(node, tuple(taints))]


@app.command("remove-taint")
@answers_change
def remove_taint(
    question: Question,
    node: str = NODE,
    taints: list[str] = argument("TAINT", "key, key:Effect or key=value:Effect."),
) -> Changes:
    """Remove taints from a node.

    Example: bayplan what-if remove-taint node-1 example.com/gpu -f cluster.yaml
    """
    from ...answers.what_if import RemoveTaint

    return [RemoveTaint(node, tuple(taints))]


@app.command(short_help="Change the allocatable amounts of a node, or the requests of pods.")
@answers_change
def resize(
    question: Question,
    target: str = argument("NODE|KIND/NAME", "A node, a pod or a workload."),
    resources: list[str] = argument("RESOURCE=AMOUNT", "New amount, such as cpu=8."),
    container: str = option(
        "-c, --container NAME", "The container to resize, of pods that have several.", default=""
    ),
) -> Changes:
    """Change the allocatable amounts of a node, or the requests of a pod or of a workload's pods.

    Pods on a node that becomes too small stay; pods whose requests change are created again.

    Example: bayplan what-if resize node-1 cpu=8 memory=32Gi -f cluster.yaml
    """
    from ...answers.what_if import Resize, parse_resources

    return [Resize(_found(question, target), parse_resources(resources), container)]


@app.command()
@answers_change
def scale(
    question: Question,
    workload: str = argument("KIND/NAME", "A workload, such as deployment/web."),
    replicas: int = argument("NUMBER", "How many pods.", min=0),
) -> Changes:
    """Change the number of a workload's pods.

    Example: bayplan what-if scale deployment/web 10 -n shop -f cluster.yaml
    """
    from ...answers.what_if import Scale

    return [Scale(_found(question, workload), replicas)]


@app.command(short_help="Set the requests of workloads to their measured use.")
@takes_question
def rightsize(
    question: Question,
    usage: list[str] = option(
        "--usage FILE",
        "Measured use of pods: the JSON of a Prometheus query ([cpu=]FILE), a PodMetricsList, CSV, or live "
        "for metrics.k8s.io of the cluster. May be given several times.",
        default=...,
    ),
    margin: str = option(
        "--margin SHARE", "Room above the highest use, such as 15%.", default="15%"
    ),
    output: AnswerForm = ANSWER_FORM,
) -> None:
    """Propose requests that follow the measured use of each workload, and the amounts that they would free.

    The scheduler tries the waiting pods in the cluster with these requests; pods stay on their nodes. Nothing is
    changed.

    Exit status: 0, or 2 when the input is wrong.

    Example: bayplan what-if rightsize --usage use.csv -f cluster.yaml
    """
    from ...answers.rightsizing import find_rightsizing
    from ..render.answer_tables import render_rightsizing

    share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", margin.strip())
    if share is None:
        raise InputError(f'--margin: expected a share such as 15%; got "{margin}"')
    use = question.read_measured(usage)
    assert use is not None, "the option is required"
    with progress_bar("scheduling") as on_progress:
        answer = find_rightsizing(
            question.manifests.objects,
            use,
            question.settings,
            margin=float(share[1]) / 100,
            place_of=question.manifests.place_of,
            on_progress=on_progress,
        )
    print_answer(
        answer,
        "Rightsizing",
        output,
        lambda: [f"{one.workload} {one.container} {one.resource}" for one in answer.proposals],
        lambda console: render_rightsizing(console, answer),
        question.remarks,
    )


@app.command(short_help="Delete objects, such as nodes with their pods.")
@answers_change
def delete(
    question: Question,
    objects: list[str] | None = argument(
        "KIND/NAME",
        "Objects of any kind; names may be patterns. With -l a kind alone will do; default: nodes.",
        default=None,
    ),
    selector: str = option(
        "-l, --selector LABELS",
        "Only objects with these labels, as for kubectl: zone=a,!spot.",
        default="",
    ),
) -> Changes:
    """Delete objects; the pods of a node are deleted with it, without checking disruption budgets.

    Example: bayplan what-if delete pod/shop/web-1 'node/spot-*' -f cluster.yaml
    """
    from ...answers.what_if import Delete

    # A kind alone stands for all of it; so a namespace can be put in front of the names.
    whole = [name if "/" in name or not selector else f"{name}/*" for name in objects or ()]
    return [Delete(tuple(_found(question, each) for each in whole), selector)]


@app.command(short_help="Apply manifests, as kubectl apply does, and follow the roll-outs.")
@takes_manifests
def apply(
    question: Question,
    options: AnswerOptions,
    file: Path | None = argument("FILE", default=None, hidden=True, allow_dash=True),
    manifests: Any = None,
) -> None:
    """Apply manifests to a cluster, and follow the roll-outs of their workloads step by step: which pods are created,
    where they go, which are deleted or preempted, and where it stalls. Nothing is changed.

    As with kubectl apply, fields that were in the last applied manifest and are not in the new one are removed.

    Exit status: 0, 1 when a roll-out stalls, or pods are pending or refused that were not before, 2 when the input is
    wrong.

    Example: bayplan what-if apply -f new.yaml --cluster snapshot.yaml
    """
    from ...answers.what_if import Apply
    from ...manifests.timeline import Timeline

    options.check()
    if file is not None:
        warn([f"apply {file}: what-if changes reads it; apply is for manifests (-f)"], strict=False)
        _make_changes(question, options, file)
        return
    assert manifests is not None, "without a file there are manifests"
    given, documents = manifests
    objects = [obj for obj in given.objects if not isinstance(obj, Timeline)]
    if len(objects) < len(given.objects):
        raise InputError(
            "apply: expected objects of a cluster; got a Timeline, which simulate plays"
        )
    namespace = question.options.namespace
    for other in (obj.namespace for obj in objects if namespace and obj.namespace):
        if other != namespace:  # in kubectl's words
            raise InputError(
                f'the namespace from the provided object "{other}" does not match the namespace "{namespace}". '
                f"You must pass '--namespace={other}' to perform this operation."
            )
    question = replace(question, remarks=[*question.remarks, *given.remarks])
    print_consequences(question, [Apply(tuple(objects), documents)], options)


@app.command(short_help="Make the changes in a file, in order.")
@takes_answer_options
def changes(
    question: Question,
    options: AnswerOptions,
    file: Path = argument("FILE", "Changes, as docs/what-if.md describes them.", allow_dash=True),
) -> None:
    """Make the changes in a file, in order: those of the other commands, new objects, and patches.

    Example: bayplan what-if changes changes.yaml -f cluster.yaml
    """
    options.check()
    _make_changes(question, options, file)


def _make_changes(question: Question, options: AnswerOptions, file: Path) -> None:
    from ...answers.what_if import read_change_file
    from ...sim.settings import reading_for

    remarks: list[str] = []
    with reading_for(question.settings):
        made = read_change_file(file, remarks)
    warn(remarks, question.options.strict)
    question = replace(question, remarks=[*question.remarks, *remarks])
    print_consequences(question, made, options)


def _found(question: Question, target: str) -> str:
    """The target, in the namespace that was given for it."""
    from ...answers.references import find_kind

    kind, *rest = target.split("/")
    namespace = question.options.namespace
    if namespace and len(rest) == 1 and find_kind(kind) is None:
        return f"{kind}/{namespace}/{rest[0]}"  # of a custom workload, such as a Rollout
    return with_namespace(target, question.namespace)
