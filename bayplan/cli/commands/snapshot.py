"""Snapshot: `bayplan snapshot`, a live cluster as a file for the other commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..options.cluster_options import CONTEXT, KUBECONFIG, chosen_cluster
from ..options.option_groups import option, option_group, takes_options
from ..options.output_files import write_whole
from ..options.scheduler_options import RECURSIVE, reading_files
from ..render.consoles import note
from ..render.plain_data import cluster_pieces, form_of
from ..render.progress_bar import progress_bar


class SnapshotOutput(StrEnum):
    """Output formats of objects."""

    YAML = "yaml"
    JSON = "json"
    BAY = "bay"


FORMS = ", ".join(SnapshotOutput)

ANNOTATIONS = option(
    "--annotation NAME",
    "An annotation to keep, for plugins of your own. May be given several times.",
)


@option_group
class SnapshotOptions:
    """The options of `bayplan snapshot`."""

    kubeconfig: Path | None = KUBECONFIG
    context: str | None = CONTEXT
    namespace: str = option(
        "-n, --namespace NAME",
        "Only objects in this namespace, and objects without one.",
        default="",
    )
    all_namespaces: bool = option("-A, --all-namespaces", "Objects of all namespaces. The default.")
    output: SnapshotOutput | None = option(
        "-o, --output FORM",
        f"How to write it: {FORMS}. Default: by the end of the name of --to, else yaml.",
        show_default=False,
    )
    to: Path | None = option(
        "--to FILE",
        "Where to write it, all or nothing: in YAML, in JSON if the name ends with .json, or as columns, "
        "which open at once, if it ends with .bay; gzipped if .gz follows. Default: standard output.",
    )
    annotation: list[str] | None = ANNOTATIONS
    filename: list[Path] | None = option(
        "-f, --filename FILE",
        "Read a file or folder instead of a live cluster, - for standard input. May be given several times.",
        show_default=False,
    )
    recursive: bool = RECURSIVE


@takes_options(SnapshotOptions)
def snapshot(options: SnapshotOptions) -> None:
    """Write the objects of a live cluster, or of files, that matter for scheduling to a file, for the other commands.

    Reads only. The file has no environment variables, commands or arguments, no secrets or config maps, no managed
    fields, and only the annotations that Kubernetes' own scheduling reads. Its namespaces have the version of the
    cluster in an annotation, so that other commands decide as that release does.

    Example: bayplan snapshot --to cluster.bay && bayplan simulate -f cluster.bay
    """
    from ...api.wire.placement_fields import KEPT_ANNOTATIONS, clipped_tree
    from ...config.releases import as_recorded

    namespace, to = options.namespace, options.to
    if namespace and options.all_namespaces:
        raise InputError(f"expected -n or -A; got both, -n {namespace} and it")
    named = form_of(to.name) if to is not None else "yaml"
    if options.output is not None and named == "bay" and options.output is not SnapshotOutput.BAY:
        raise InputError(f"-o: expected bay, for a file of that name; got {options.output.value}")
    form = options.output.value if options.output is not None else named
    version, objects = _objects(options)
    kept = KEPT_ANNOTATIONS | frozenset(options.annotation or ())
    trees = (as_recorded(clipped_tree(obj, kept), version) for obj in objects)
    pieces = cluster_pieces(trees, form)
    if to is not None:
        write_whole("--to", to, pieces)
    else:
        for piece in pieces:
            sys.stdout.buffer.write(piece.encode() if isinstance(piece, str) else piece)
    if namespace:
        note("pods of other namespaces are left out, so nodes look emptier than they are")


def _objects(options: SnapshotOptions) -> tuple[str, Sequence[Any]]:
    """The version and the objects of a live cluster, or of files."""
    from ...config.releases import recorded_version

    if not options.filename:
        from ...kube.live_cluster import read_live

        chosen = chosen_cluster(options.kubeconfig, options.context)
        with progress_bar("reading the cluster") as on_kind:
            live = read_live(*chosen, options.namespace, on_kind)
        return live.version, live.objects
    if options.kubeconfig or options.context or options.namespace:
        raise InputError("-f: expected no --kubeconfig, --context or -n with it; got one")
    with reading_files(options.filename, recursive=options.recursive) as paths:
        objects = _objects_in(paths or ())
    return recorded_version(objects), objects


def _objects_in(files: Sequence[Path]) -> Sequence[Any]:
    """The objects of files; raises InputError if one is no object of a cluster, or wrong."""
    from ...manifests.loader import read_manifests
    from ...manifests.timeline import Timeline

    with progress_bar("reading") as on_bytes:
        manifests = read_manifests(files, on_bytes)
    manifests.refuse_remarks()
    for obj in manifests.objects:
        if isinstance(obj, Timeline):
            place = manifests.place_of(obj)
            raise InputError(f"{place}: expected an object of a cluster; got a Timeline")
    return manifests.objects
