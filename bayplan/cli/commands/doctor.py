"""Doctor: `bayplan doctor`, a look at a cluster before any question."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...errors import InputError
from ..options.cluster_options import CONTEXT, KUBECONFIG, chosen_cluster
from ..options.config_options import (
    CONFIG,
    FEATURE_GATES,
    KUBERNETES_VERSION,
    PLUGIN_FILES,
    read_settings,
)
from ..options.input_options import takes_input_limit
from ..options.option_groups import option
from ..options.scheduler_options import RECURSIVE, read_files, reading_files
from ..render.plain_data import ANSWER_FORM, AnswerForm, print_in_form

if TYPE_CHECKING:
    from ...doctor.checks import ClusterFacts

MAY_DIFFER = 1


@takes_input_limit
def doctor(
    filename: list[Path] | None = option(
        "-f, --filename FILE",
        "A snapshot or manifests instead of a live cluster; - is standard input. May be given several times.",
        allow_dash=True,
    ),
    recursive: bool = RECURSIVE,
    kubeconfig: Path | None = KUBECONFIG,
    context: str | None = CONTEXT,
    config: Path | None = CONFIG,
    kubernetes_version: str = KUBERNETES_VERSION,
    feature_gates: str = FEATURE_GATES,
    plugins: list[Path] | None = PLUGIN_FILES,
    output: AnswerForm = ANSWER_FORM,
) -> None:
    """Check a cluster for reasons why answers may differ from its scheduler.

    Its version and the rules that are used for it; the schedulers that pods name; the scheduler's configuration, in
    config maps of kube-system and in the flags of its pods; webhooks that change pods; controllers that move pods; pods
    with gates; kinds that may not be read. Each finding has its meaning, and a command that helps. Reads only.

    Exit status: 0 when nothing was found that makes answers differ, 1 when something was, 2 when the input is wrong.

    Example: bayplan doctor --context prod
    """
    import msgspec

    from ...api.wire.sourced import keeping_sources
    from ...config.releases import recorded_version
    from ...doctor.checks import ClusterFacts, count_kubelets, find_all
    from ..render.explanation import render_findings

    with keeping_sources(), reading_files(filename, recursive=recursive) as paths:
        if paths:
            objects = list(read_files(paths, strict=False).objects)
            given = kubernetes_version or recorded_version(objects)
            facts = ClusterFacts(objects=objects, version=given)
        else:
            facts = _read_live(kubeconfig, context)
    facts.kubelets = count_kubelets(facts.objects)
    version = kubernetes_version or facts.version
    settings = read_settings(config, None, feature_gates, plugins, None, version)
    findings = find_all(facts, settings, config is not None)
    names = dict.fromkeys(f"finding/{one.subject}" for one in findings if one.differs)
    print_in_form(
        output,
        lambda: {"version": facts.version, "findings": msgspec.to_builtins(findings)},
        lambda console: render_findings(console, findings),
        lambda: names,
        "DoctorReport",
    )
    if any(one.differs for one in findings):
        raise typer.Exit(MAY_DIFFER)


def _read_live(kubeconfig: Path | None, context: str | None) -> ClusterFacts:
    from ...doctor.live_facts import read_facts
    from ...kube.credentials import is_cluster_configured
    from ...kube.live_cluster import connected

    kubeconfig, context = chosen_cluster(kubeconfig, context)
    if kubeconfig is None and not is_cluster_configured():
        known = "--kubeconfig FILE, KUBECONFIG or ~/.kube/config"
        raise InputError(f"expected a snapshot (-f FILE) or a cluster ({known}); got neither")

    async def read() -> ClusterFacts:
        async with connected(kubeconfig, context) as connection:
            return await read_facts(connection)

    return asyncio.run(read())
