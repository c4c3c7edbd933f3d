"""Explain: `bayplan explain`, why a pod is pending or where it is, and what would have to change."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...api.own_documents import API_VERSION
from ...choices import NEAREST
from ...errors import InputError
from ..options.cluster_options import USAGE, with_namespace
from ..options.option_groups import (
    argument,
    option,
    option_group,
    parameters_of,
    show_options,
    takes_options,
)
from ..options.scheduler_options import Question, takes_question
from ..render.plain_data import (
    ANSWER_FORM,
    AnswerForm,
    pod_line,
    print_answer,
    print_in_form,
    print_settlement,
    with_remarks,
)
from ..render.progress_bar import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from ...answers.account import PodExplanation, PodRef
    from ...answers.group_account import PodGroupExplanation
    from ...answers.stage import Stage
    from ...manifests.measured_use import MeasuredUse

NO_NODE = 1
INSUFFICIENT = "Insufficient "
OF_A_LOG = ("decisions", "pod", "output", "namespace")
"""The parameters that go together with a log of decisions."""
OPTION_NAMES = {"everything": "all"}


@option_group
class ExplainOptions:
    """The options of `bayplan explain`."""

    pod: str = argument(
        "POD",
        "NAME, pod/NAME, NAMESPACE/NAME, podgroup/NAME, or a workload: deployment/NAME, rayjob/NAME.",
    )
    node: list[str] | None = option("--node NODE", "Only this node. May be given several times.")
    usage: list[str] | None = USAGE
    output: AnswerForm = ANSWER_FORM
    nearest: int = option(
        "--nearest NUMBER",
        "For how many nodes to search for changes that would let the pod run.",
        default=NEAREST,
        min=0,
    )
    everything: bool = option(
        "--all", "Show all nodes, and explain each pod of a workload by itself."
    )
    decisions: Path | None = option(
        "--decisions FILE",
        "Say why the pod went where it went then, from a file that `bayplan run --decisions` wrote.",
    )


def may_read_log(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which with --decisions answers from that file instead of a cluster."""
    parameters = parameters_of(command)

    @functools.wraps(command)
    def run(**options: Any) -> None:
        if options["decisions"] is None:
            command(**options)
            return
        for each in parameters:
            if each.name not in OF_A_LOG and options[each.name] != each.default:
                name = OPTION_NAMES.get(each.name, each.name.replace("_", "-"))
                raise InputError(f"--decisions: expected no --{name}; got one")
        _explain_then(*(options[name] for name in OF_A_LOG))

    show_options(run, parameters)
    return run


@may_read_log
@takes_question
@takes_options(ExplainOptions)
def explain_command(question: Question, options: ExplainOptions) -> None:
    """Say why a pod is pending, or why it is where it is: the nodes' refusals and their scores.

    For a pod that fits nowhere, the answer names changes that would let it run on the nearest nodes; for a pod with a
    node, changes that would let the second-best node win. Each change is checked by running the plugins again with it.
    A pod with a node is judged as if it were pending. Without -f the cluster is the one that kubectl talks to. Nothing
    is changed.

    For a pod group (podgroup/NAME) the answer has the members that fit, the placements that were tried, and the changes
    that would let it start: nodes to add, pods to remove. Each way is checked by scheduling the group again with it.

    In the table of scores, TOTAL is the sum of the plugins' scores, each multiplied by its weight (×2), and ★ marks the
    node that wins.

    Exit status: 0 when the pod has a node or would get one, 1 when not, 2 when the input is wrong.

    Example: bayplan explain pod/web-7 -f cluster.yaml
    """
    from ...answers import explain, explain_alike, explain_group, find_group, find_pods
    from ...answers.account import PodVerdict
    from ...answers.stage import Stage
    from ...api.custom_workloads import CustomWorkload

    manifests, namespace = question.manifests, question.options.namespace
    with progress_bar("scheduling") as on_pods:
        stage = Stage(
            manifests.objects, question.settings, manifests.place_of, as_is=question.options.as_is
        )
        stage.begin(on_pods)
    view = stage.view()
    nodes = options.node or []
    known = set(view.node_names())
    for name in (name for name in nodes if name not in known):
        raise InputError(f'--node: expected a node of the cluster; got "{name}"')
    target, own = options.pod, question.namespace
    if own and not namespace:
        target = with_namespace(target, own) if "/" in target else f"{own}/{target}"
    group = find_group(view, target, namespace)
    if group is not None:
        _print_group(explain_group(view, *group, options.nearest), options, question.remarks)
        return
    customs = manifests.of_type(CustomWorkload)
    pods = find_pods(view, target, namespace, customs)
    if options.everything:
        accounts = [explain(view, pod, nodes, options.nearest) for pod in pods]
    else:
        accounts = explain_alike(view, pods, nodes, options.nearest)
    use = question.read_measured(options.usage)
    for account in accounts:
        if use is not None:
            _note_unused(stage, account, use)
        if nodes:
            account.keep_nodes(nodes)
    _print(accounts, options.output, options.everything, question.remarks)
    without_node = {PodVerdict.UNSCHEDULABLE, PodVerdict.GATED, PodVerdict.ERROR}
    if any(account.verdict in without_node for account in accounts):
        raise typer.Exit(NO_NODE)


def _note_unused(stage: Stage, account: PodExplanation, use: MeasuredUse) -> None:
    """Add causes to a pod that waits for room that is requested and not used."""
    from ...answers.measured import unused_room

    for refused in account.refused:
        reasons = [reason for refusal in refused.refusals for reason in refusal.reasons]
        short = [text.removeprefix(INSUFFICIENT) for text in reasons]
        objects = [*stage.cluster.list("Node"), *stage.cluster.list("Pod")]
        account.causes += unused_room(objects, use, refused.nodes, short)


def _explain_then(decisions: Path, pod: str, output: AnswerForm, namespace: str | None) -> None:
    """Print the attempts at a pod that a scheduler has logged."""
    from ...drivers.decision_log import read_decisions
    from ..render.explanation import render_attempts

    words = pod.removeprefix("pod/").split("/")
    if len(words) > 2:
        raise InputError(f'expected pod/NAME or pod/NAMESPACE/NAME; got "{pod}"')
    within = words[0] if len(words) == 2 else namespace or ""
    attempts = read_decisions(decisions, within, words[-1])
    if not attempts:
        raise InputError(f"--decisions: {decisions}: expected attempts at pod {pod}; got none")

    import msgspec

    node = attempts[-1].node and f"node/{attempts[-1].node}"
    print_in_form(
        output,
        lambda: {"items": msgspec.to_builtins(attempts)},
        lambda console: render_attempts(console, attempts),
        lambda: [node],
        "DecisionList",
    )
    if not attempts[-1].node:
        raise typer.Exit(NO_NODE)


def _print_group(
    account: PodGroupExplanation, options: ExplainOptions, remarks: Sequence[str]
) -> None:
    """Print the account of a pod group; ends with the status of a pod without a node if it does not start."""
    if options.node:
        raise InputError(f"--node: expected no node for a pod group; got {options.node[0]}")

    def render(console: Console) -> None:
        from ..render.group_explanation import render_group_account

        everything = options.everything or options.output is AnswerForm.WIDE
        render_group_account(console, account, everything=everything)

    members = [pod_line(f"{m.pod.namespace}/{m.pod.name}", m.node) for m in account.members]
    print_answer(account, "", options.output, lambda: members, render, remarks)
    if not account.has_node:
        raise typer.Exit(NO_NODE)


def _print(
    accounts: Sequence[PodExplanation],
    output: AnswerForm,
    everything: bool,
    remarks: Sequence[str],
) -> None:
    def document() -> dict[str, Any]:
        items = [account.to_dict() for account in accounts]
        whole = {"apiVersion": API_VERSION, "kind": "PodExplanationList", "items": items}
        is_one = len(accounts) == 1 and not accounts[0].alike
        return with_remarks(items[0] if is_one else whole, remarks)

    def render(console: Console) -> None:
        from ..render.explanation import render_account, render_numbers

        wide = output is AnswerForm.WIDE
        print_settlement(console, accounts[0].settled)
        render_numbers(console, accounts)
        found = list(_alike(accounts))
        for i, (account, others) in enumerate(found):
            if i:
                console.print()
            render_account(
                console,
                account,
                others,
                wide=wide,
                everything=everything or wide,
                concludes=len(found) == 1,
            )

    def names() -> Iterator[str]:
        for account in accounts:
            yield pod_line(f"{account.pod.namespace}/{account.pod.name}", account.node)
            for one in account.alike:
                yield pod_line(f"{one.namespace}/{one.name}", one.node)

    print_in_form(output, document, render, names)


def _alike(accounts: Sequence[PodExplanation]) -> list[tuple[PodExplanation, list[PodRef]]]:
    """The accounts that differ, each with the other pods that have the same."""
    known: dict[bytes, tuple[PodExplanation, list[PodRef]]] = {}
    for account in accounts:
        key = _gist(account)
        if key in known:
            known[key][1].append(account.pod)
        else:
            known[key] = (account, [])
    return list(known.values())


def _gist(account: PodExplanation) -> bytes:
    """The explanation without the pod's name; changes name the pod, so they are represented by their goals."""
    import msgspec

    from ...answers.account import PodRef

    ways = account.runner_up.ways if account.runner_up is not None else []
    words = [[one.node, [step.goal for step in one.steps]] for one in account.counterfactuals]
    bare = msgspec.structs.replace(
        account, pod=PodRef(namespace="", name=""), counterfactuals=[], runner_up=None
    )
    return msgspec.msgpack.encode([bare, words, [way.goal for way in ways]])
