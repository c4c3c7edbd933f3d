"""Scheduler options: options of every command that asks a question about a cluster.

A command that is wrapped in `takes_question` gets these options, and is called with the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from ...errors import InputError
from ..render.consoles import note
from ..render.progress_bar import progress_bar
from .cluster_options import (
    CLUSTER_DEFAULTS,
    LIVE_CONTEXT,
    LIVE_KUBECONFIG,
    NAMESPACE,
    chosen_cluster,
    read_measured,
)
from .config_options import (
    CONFIG,
    FEATURE_GATES,
    KUBERNETES_VERSION,
    PLUGIN_FILES,
    PROVIDER,
    SEED,
    read_settings,
)
from .input_options import takes_input_limit
from .option_groups import option, option_group, parameters_of, show_options

if TYPE_CHECKING:
    from ...api.pod import Pod
    from ...kube.live_cluster import LiveObjects
    from ...manifests.measured_use import MeasuredUse
    from ...sim import Manifests
    from ...sim.settings import Settings

PENDING = 1
"""The exit status when pods wait."""

FILENAME = option(
    "-f, --filename FILE",
    "File or folder with manifests, YAML or JSON, also gzipped; - is standard input. "
    "May be given several times.",
    allow_dash=True,
)
KUSTOMIZE = option("-k, --kustomize FOLDER", "Read what kubectl kustomize builds of this folder.")
RECURSIVE = option("-R, --recursive", "Read the folders below a folder, too.")
STRICT = option(
    "--strict/--lenient",
    "Refuse fields that do not exist and objects that kube-apiserver refuses, or warn about them.",
    default=True,
)
WORKLOAD_KINDS = option(
    "--workload-kinds FILE",
    "Custom kinds that make pods, and where they have templates and counts. May be given several times.",
)
SHOW_ALL = option("--all", "Show all pods and nodes, however many.")


@dataclass(frozen=True, slots=True)
class Question:
    """A cluster and a scheduler, read from the options of the command line."""

    options: QuestionOptions
    manifests: Manifests
    settings: Settings
    sources: Sequence[str] = ()
    """Origin of the cluster."""
    namespace: str | None = None
    """Namespace of names that are given without one; None for any."""
    remarks: Sequence[str] = ()
    """Problems of the files."""

    @contextmanager
    def reading_more(self) -> Iterator[None]:
        """Read files of further options like those of -f within the block: with the same namespace and depth."""
        with reading_files(None, None, self.options.recursive, self.namespace):
            yield

    def read_measured(self, usage: Sequence[str] | None) -> MeasuredUse | None:
        """The measured use that an option names; None without any."""
        return read_measured(usage, self.options.kubeconfig, self.options.context)


Own = ParamSpec("Own")


def takes_question(command: Callable[Concatenate[Question, Own], None]) -> Callable[..., None]:
    """The command with the options of a question in front of its own; its errors become a line and a status."""
    return _taking(command, SHARED)


def takes_cluster(command: Callable[Concatenate[Question, Own], None]) -> Callable[..., None]:
    """Like `takes_question`, for a command that places the waiting pods itself, and so has no earlier moment."""
    return _taking(command, {name: one for name, one in SHARED.items() if name != "as_is"})


def _taking(
    command: Callable[Concatenate[Question, Own], None], shared: Mapping[str, Any]
) -> Callable[..., None]:
    @functools.wraps(command)
    def run(**options: Any) -> None:
        given = {name: options.pop(name) for name in shared}
        with knowing_workloads(given["workload_kinds"]):
            command(QuestionOptions(**given).read(), **options)  # type: ignore[call-arg]  # parameters of the decorated command

    show_options(run, [*shared.values(), *parameters_of(command)[1:]])
    return takes_input_limit(run)


@option_group
class QuestionOptions:
    """The options of every question about a cluster."""

    filename: list[Path] | None = FILENAME
    kustomize: Path | None = KUSTOMIZE
    recursive: bool = RECURSIVE
    kubeconfig: Path | None = LIVE_KUBECONFIG
    context: str | None = LIVE_CONTEXT
    namespace: str | None = NAMESPACE
    all_namespaces: bool = option(
        "-A, --all-namespaces", "Find what is named without a namespace in any. The default."
    )
    strict: bool = STRICT
    workload_kinds: list[Path] | None = WORKLOAD_KINDS
    as_is: bool = option(
        "--as-is",
        "Ask about the cluster as it was read. Default: after the waiting pods were placed, as simulate does.",
    )
    config: Path | None = CONFIG
    algorithm_provider: str | None = PROVIDER
    kubernetes_version: str = KUBERNETES_VERSION
    feature_gates: str = FEATURE_GATES
    plugins: list[Path] | None = PLUGIN_FILES
    seed: int | None = SEED

    def read(self) -> Question:
        """Read everything that the options name."""
        if self.namespace and self.all_namespaces:
            raise InputError(f"expected -n or -A; got both, -n {self.namespace} and it")
        with reading_files(self.filename, self.kustomize, self.recursive, self.namespace) as paths:
            scheduler = self.config, self.algorithm_provider, self.feature_gates, self.plugins
            settings, reading = read_scheduler_and_cluster(
                functools.partial(read_settings, *scheduler, self.seed),
                self.kubernetes_version,
                lambda: read_cluster(paths, self.kubeconfig, self.context, self.strict),
            )
        note_groups(reading.manifests, settings)
        namespace = None if self.all_namespaces else self.namespace or reading.namespace
        files = reading.manifests
        return Question(self, files, settings, reading.sources, namespace, reading.remarks)


@contextmanager
def reading_files(
    filename: Sequence[Path] | None,
    kustomize: Path | None = None,
    recursive: bool = False,
    namespace: str | None = None,
) -> Iterator[list[Path] | None]:
    """The files of the options with kubectl's meaning, while they are read; None without any.

    `recursive` includes folders below folders, `kustomize` adds the objects that a folder builds, and `namespace` is
    that of objects without one.
    """
    from ...api.meta import reading_into
    from ...manifests.sources import searching_below

    chosen = namespace or CLUSTER_DEFAULTS.get().namespace
    with kustomized(kustomize) as built, searching_below(recursive), reading_into(chosen):
        yield [*(filename or ()), *built] or None


@contextmanager
def kustomized(folder: Path | None) -> Iterator[list[Path]]:
    """A file with the output of `kubectl kustomize`, while it is needed; none without a folder."""
    if folder is None:
        yield []
        return
    import subprocess
    import tempfile

    try:
        done = subprocess.run(
            ["kubectl", "kustomize", str(folder)], capture_output=True, check=False
        )
    except FileNotFoundError:
        raise InputError("-k: expected kubectl on the path, which builds it; got none") from None
    if done.returncode:
        raise InputError(f"-k {folder}: {done.stderr.decode(errors='replace').strip()}")
    with tempfile.TemporaryDirectory() as made:
        built = Path(made) / f"{folder.resolve().name}.yaml"
        built.write_bytes(done.stdout)
        yield [built]


def read_scheduler_and_cluster(
    read: Callable[[str], Settings], version: str, read_objects: Callable[[], ClusterReading]
) -> tuple[Settings, ClusterReading]:
    """The scheduler of a version, and the cluster; of the cluster's version if none is given.

    `read` reads the scheduler of a version. The part of the objects that it reads does not depend on that.
    """
    from ...config.releases import choose_release
    from ...errors import ConfigError
    from ...sim.settings import Settings, reading_for

    settings: Settings | None
    try:
        settings = read(version)
    except ConfigError:
        if version:
            raise
        settings = None  # another release may accept it
    with reading_for(settings or Settings()):
        reading = read_objects()
    if settings is None or (
        not version and choose_release(reading.version) is not settings.release
    ):
        settings = read(reading.version)
        note_recorded(reading, settings)
    if reading.is_live:
        from ...doctor.checks import short_note

        if text := short_note(reading.manifests.objects, settings):
            note(text)
    return settings, reading


def note_recorded(reading: ClusterReading, settings: Settings) -> None:
    """Print to standard error that files name a release, unless it is the default one; that of a live cluster is
    printed already.
    """
    from ...releases.release import DEFAULT_RELEASE

    is_told = reading.is_live or not reading.version
    if not is_told and settings.release is not DEFAULT_RELEASE:
        note(f"decisions are those of {settings.release.patch}: the files are of {reading.version}")


@contextmanager
def knowing_workloads(paths: Sequence[Path] | None) -> Iterator[None]:
    """Read objects of the custom kinds in these files as workloads within the block; InputError for an invalid file."""
    from ...api.workload_kinds import reading_workloads
    from ...manifests.workload_documents import read_workload_kinds

    with reading_workloads(read_workload_kinds(paths) if paths else ()):
        yield


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """The objects of a cluster, and the names of their sources."""

    manifests: Manifests
    sources: Sequence[str]
    namespace: str | None = None
    """Namespace of names that are given without one; None for any."""
    version: str = ""
    """The version of Kubernetes that the cluster has, or that files record; empty if unknown."""
    is_live: bool = False

    @property
    def remarks(self) -> list[str]:
        """Problems of the files."""
        return self.manifests.remarks


def read_cluster(
    paths: Sequence[Path] | None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    strict: bool = False,
) -> ClusterReading:
    """The objects in files, of a live cluster, or of one to which the files are applied.

    Without files and options the cluster is the one that kubectl would talk to. Shows a bar while objects are read;
    notes on standard error name the cluster, and the objects that are not used. Fields that do not exist are
    warnings there; with `strict` they are an InputError, with a line for each.
    """
    from ...api.wire.sourced import keeping_documents
    from ...api.workloads import Namespace
    from ...config.releases import recorded_version
    from ...sim import Manifests, lay_over, manifests_of

    kubeconfig, context = chosen_cluster(kubeconfig, context)
    is_live = kubeconfig is not None or context is not None or not paths
    with keeping_documents() if is_live else nullcontext() as documents:
        files = read_files(paths, strict) if paths else Manifests()
    sources = [str(path) for path in paths or ()]
    if not is_live:
        version = recorded_version(files.of_type(Namespace))
        return ClusterReading(files, sources, CLUSTER_DEFAULTS.get().namespace, version)
    live = _read_live(kubeconfig, context)
    manifests, present = lay_over(manifests_of(live.objects, live.server), files, documents)
    _note_present(present)
    names, defaults = [live.server, *sources], CLUSTER_DEFAULTS.get()
    namespace = defaults.namespace or (live.namespace if defaults.is_kubectl_plugin else None)
    return ClusterReading(manifests, names, namespace, live.version, is_live=True)


def _read_live(kubeconfig: Path | None, context: str | None) -> LiveObjects:
    from ...kube.credentials import is_cluster_configured
    from ...kube.live_cluster import read_live

    if kubeconfig is None and not is_cluster_configured():
        known = "--kubeconfig FILE, KUBECONFIG or ~/.kube/config"
        raise InputError(f"expected manifests (-f FILE) or a cluster ({known}); got neither")
    with progress_bar("reading the cluster") as on_kind:
        live = read_live(kubeconfig, context, on_kind=on_kind)
    name = f"context {live.context}" if live.context else "service account"
    version = f", Kubernetes {live.version}" if live.version else ""
    note(f"asked the cluster at {live.server} ({name}){version}")
    return live


def read_files(paths: Sequence[Path], strict: bool) -> Manifests:
    """The objects in files; their faults are printed, or an InputError with `strict`."""
    from ...sim import read_manifests

    with progress_bar("reading") as on_bytes:
        manifests = read_manifests(paths, on_bytes)
    warn(manifests.remarks, strict)
    _note_unused(manifests.unused)
    for text in manifests.notes:
        note(text)
    return manifests


def warn(remarks: Sequence[str], strict: bool) -> None:
    """Print the faults of files on standard error; with `strict` they are an InputError, a line for each."""
    if remarks and strict:
        raise InputError("\n".join(remarks))
    for line in remarks:
        note(line, "warning", "yellow")


SHARED = {parameter.name: parameter for parameter in parameters_of(QuestionOptions)}


_TAKEN_ELSEWHERE = {
    "KubeSchedulerConfiguration.kubescheduler.config.k8s.io": "--config takes it",
    "NodePool.karpenter.sh": "--pools of plan and simulate takes it",
    "Template.template.openshift.io": "oc process -f FILE prints its objects",
}


def _note_unused(unused: Mapping[str, int]) -> None:
    """Print the unused objects to standard error."""
    from ...api.custom_workloads import is_custom_group

    for kind in _TAKEN_ELSEWHERE.keys() & unused:
        note(f"{kind.partition('.')[0]} is not used among manifests: {_TAKEN_ELSEWHERE[kind]}")
    unused = {kind: n for kind, n in unused.items() if kind not in _TAKEN_ELSEWHERE}
    custom = {kind: n for kind, n in unused.items() if is_custom_group(kind.partition(".")[2])}
    others = {kind: n for kind, n in unused.items() if kind not in custom}
    if others:
        total = sum(others.values())
        objects = "1 object has" if total == 1 else f"{total:,} objects have"
        note(f"{objects} no bearing on scheduling: {_counted(others)}")
    if custom:
        total = sum(custom.values())
        objects = f"{total:,} objects of custom kinds are not simulated, nor pods of their"
        if total == 1:
            objects = "1 object of a custom kind is not simulated, nor pods of its"
        note(f"{objects} controller{'' if total == 1 else 's'}: {_counted(custom)}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def note_groups(manifests: Manifests, *schedulers: Settings) -> None:
    """Print to standard error the PodGroups, or their fields, that have no effect with these feature gates."""
    from ...api.pod_groups import PodGroup
    from ...sim.settings import ignored_groups

    groups = manifests.of_type(PodGroup)
    for text in dict.fromkeys(ignored_groups(groups, each) for each in schedulers):
        if text:
            note(text)


def _note_present(pods: Sequence[Pod]) -> None:
    """Print to standard error the pods that were not added."""
    if len(pods) == 1:
        note(f"pod {pods[0].key} is in the cluster already and stays as it is there")
    elif pods:
        note(
            f"{len(pods):,} pods, such as {pods[0].key}, are in the cluster already and stay as they are there"
        )
