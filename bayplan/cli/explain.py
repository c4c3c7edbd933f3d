"""Explain: `bayplan explain`, why a pod is pending or where it is, and what would have to change."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from ..answers import NEAREST, ClusterView, PodExplanation, PodRef, Verdict, explain, find_pods
from ..api.own_documents import API_VERSION
from ..errors import InputError
from .clusters import LiveContextOption, LiveKubeconfigOption
from .config import FeatureGatesOption, PluginFilesOption, ProviderOption
from .consoles import stdout_console, written_to_stdout
from .documents import print_json_document, print_yaml_document
from .failures import reports_failures
from .options import ConfigOption, FilenameOption, read_cluster, read_settings
from .render_account import render_account

NO_NODE = 1


class ExplainOutput(StrEnum):
    """How an explanation is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


FORMS = ", ".join(ExplainOutput)


@reports_failures
def explain_command(
    pod: Annotated[
        str,
        typer.Argument(
            metavar="POD",
            help="NAME, pod/NAME, NAMESPACE/NAME, or a workload such as deployment/NAME.",
            show_default=False,
        ),
    ],
    filename: FilenameOption = None,
    kubeconfig: LiveKubeconfigOption = None,
    context: LiveContextOption = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n", "--namespace", metavar="NAME", help="Namespace of the pod.", show_default=False
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="NAME",
            help="Only this node. May be given several times.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        ExplainOutput,
        typer.Option("-o", "--output", metavar="FORM", help=f"How to print it: {FORMS}."),
    ] = ExplainOutput.TABLE,
    nearest: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="For how many nodes to find out what would have to change.",
        ),
    ] = NEAREST,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all nodes, however many.")
    ] = False,
    config: ConfigOption = None,
    algorithm_provider: ProviderOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginFilesOption = None,
) -> None:
    """Say why a pod is pending, or why it is where it is: who refuses which node, and who scores it how.

    For a pod that fits nowhere it says what would let it run on the nearest nodes, for one that has a
    node what would let the next best one win. All of that is found by judging the pod again with the
    changes made. A pod that waits is judged as the scheduler would judge it now, one that has a node as
    if it waited. Nothing is changed.

    Ends with 0 when the pod has a node or would get one, 1 when not, 2 when the input is wrong.

    Example: bayplan explain pod/web-7 -f cluster.yaml
    """
    settings = read_settings(config, algorithm_provider, feature_gates, plugins, seed=None)
    manifests = read_cluster(filename, kubeconfig, context).manifests
    view = settings.view_of_manifests(manifests.objects, manifests.place_of)
    nodes = _known_nodes(view, node or [])
    accounts = [explain(view, found, nodes, nearest) for found in find_pods(view, pod, namespace)]
    for account in accounts:
        if nodes:
            account.keep_nodes(nodes)
    _print(accounts, output, everything)
    if any(a.verdict in WITHOUT_NODE for a in accounts):
        raise typer.Exit(NO_NODE)


WITHOUT_NODE = frozenset({Verdict.UNSCHEDULABLE, Verdict.GATED, Verdict.ERROR})


def _known_nodes(view: ClusterView, names: Sequence[str]) -> list[str]:
    known = set(view.node_names())
    for name in names:
        if name not in known:
            raise InputError(f'--node: expected a node of the cluster; got "{name}"')
    return list(names)


def _print(accounts: Sequence[PodExplanation], output: ExplainOutput, everything: bool) -> None:
    if output in (ExplainOutput.JSON, ExplainOutput.YAML):
        documents = [account.to_dict() for account in accounts]
        document: Any = {
            "apiVersion": API_VERSION,
            "kind": "PodExplanationList",
            "items": documents,
        }
        is_json = output is ExplainOutput.JSON
        show = print_json_document if is_json else print_yaml_document
        show(documents[0] if len(documents) == 1 else document)
        return
    console = stdout_console()
    wide = output is ExplainOutput.WIDE
    with written_to_stdout(console):
        for i, (account, others) in enumerate(_alike(accounts)):
            if i:
                console.print()
            render_account(console, account, others, wide=wide, everything=everything or wide)


def _alike(accounts: Sequence[PodExplanation]) -> list[tuple[PodExplanation, list[PodRef]]]:
    """The accounts that differ, each with the other pods of which the same holds."""
    known: dict[bytes, tuple[PodExplanation, list[PodRef]]] = {}
    for account in accounts:
        key = _gist(account)
        if key in known:
            known[key][1].append(account.pod)
        else:
            known[key] = (account, [])
    return list(known.values())


def _gist(account: PodExplanation) -> bytes:
    """What is said, whichever pod it is said of; changes name the pod, so their words stand for them."""
    ways = account.runner_up.ways if account.runner_up is not None else []
    words = [[one.node, [step.goal for step in one.steps]] for one in account.counterfactuals]
    bare = msgspec.structs.replace(account, pod=NOBODY, counterfactuals=[], runner_up=None)
    return msgspec.msgpack.encode([bare, words, [way.goal for way in ways]])


NOBODY = PodRef(namespace="", name="")
