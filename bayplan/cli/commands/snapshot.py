"""Snapshot: `bayplan snapshot`, a live cluster as a file for the other commands."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...errors import InputError
from ..options.cluster_options import ContextOption, KubeconfigOption, chosen_cluster
from ..options.output_files import write_whole
from ..render.consoles import stderr_console
from ..render.plain_data import json_pieces, yaml_pieces
from ..render.progress_bar import progress_bar


class SnapshotOutput(StrEnum):
    """Output formats of objects."""

    YAML = "yaml"
    JSON = "json"


FORMS = ", ".join(SnapshotOutput)

AnnotationsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--annotation",
        metavar="NAME",
        help="An annotation to keep, for plugins of your own. May be given several times.",
        show_default=False,
    ),
]


def snapshot(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAME",
            help="Only objects in this namespace, and objects without one.",
            show_default=False,
        ),
    ] = "",
    all_namespaces: Annotated[
        bool,
        typer.Option("-A", "--all-namespaces", help="Objects of all namespaces. The default."),
    ] = False,
    output: Annotated[
        SnapshotOutput,
        typer.Option("-o", "--output", metavar="FORM", help=f"How to write it: {FORMS}."),
    ] = SnapshotOutput.YAML,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Where to write it, all or nothing; gzipped if the name ends with .gz. "
            "Default: standard output.",
            show_default=False,
        ),
    ] = None,
    annotation: AnnotationsOption = None,
) -> None:
    """Write the objects of a live cluster that matter for scheduling to a file, for the other commands.

    Reads only. The file has no environment variables, commands or arguments, no secrets or config maps, no managed
    fields, and only the annotations that Kubernetes' own scheduling reads. Its namespaces have the version of the
    cluster in an annotation, so that other commands decide as that release does.

    Example: bayplan snapshot > cluster.yaml && bayplan simulate -f cluster.yaml
    """
    from ...api.wire.placement_fields import KEPT_ANNOTATIONS, clipped_tree, note_version
    from ...kube.live_cluster import read_live

    if namespace and all_namespaces:
        raise InputError(f"expected -n or -A; got both, -n {namespace} and it")
    kubeconfig, context = chosen_cluster(kubeconfig, context)
    with progress_bar("reading the cluster") as on_kind:
        live = read_live(kubeconfig, context, namespace, on_kind)
    kept = KEPT_ANNOTATIONS | frozenset(annotation or ())
    trees = (note_version(clipped_tree(obj, kept), live.version) for obj in live.objects)
    pieces = json_pieces(trees) if output is SnapshotOutput.JSON else yaml_pieces(trees)
    if to is not None:
        write_whole("--to", to, pieces)
    else:
        sys.stdout.writelines(pieces)
    if namespace:
        note = "note: pods of other namespaces are left out, so nodes look emptier than they are"
        stderr_console().print(note, style="dim", markup=False, soft_wrap=True)
