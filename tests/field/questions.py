"""Questions: all that a user can ask about a cluster, as command lines, and a check of each answer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from typer.testing import CliRunner

from bayplan.cli.kubectl import app as kubectl_app
from bayplan.cli.main import app

from .material import Project

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
POD = EXAMPLES / "capacity" / "api.yaml"
PACKED = EXAMPLES / "compare" / "most-allocated.yaml"
POOLS = EXAMPLES / "plan" / "pools.yaml"
TYPES = EXAMPLES / "plan" / "instance-types.csv"
DOCUMENTED = (0, 1)
"""Statuses of an answer; 2 is a complaint about the input, 70 a bug."""


NO_PODS = "expected one that has pods; got no pod of it"
NO_WORK = "expected pods that wait for a node; got none"


@dataclass(frozen=True)
class Question:
    """A command line, and the complaint that it ends with, exit status 2, if its subject is not there."""

    name: str
    words: tuple[str, ...]
    is_plugin: bool = False
    complaint: str = ""

    def ask(self, project: Project, folder: Path) -> str | None:
        """Run it; returns the fault of the answer, None if it has none."""
        files = [word for file in project.files for word in ("-f", str(file))]
        words = [word.replace("{folder}", str(folder)) for word in self.words]
        result = CliRunner().invoke(kubectl_app if self.is_plugin else app, [*words, *files])
        last = (result.stderr.strip().splitlines() or [repr(result.exception)])[-1]
        if self.complaint:
            is_refused = result.exit_code == 2 and last.startswith("error: ")
            is_as_expected = is_refused and self.complaint in last and not result.stdout
            return None if is_as_expected else f"not refused: {result.exit_code}: {last}"
        if result.exit_code not in DOCUMENTED or "Traceback" in result.output:
            return f"exit status {result.exit_code}: {last}"
        return self._fault(result.stdout)

    def _fault(self, printed: str) -> str | None:
        form = self.words[self.words.index("-o") + 1] if "-o" in self.words else "table"
        readers: dict[str, Callable[[str], object]] = {
            "json": json.loads,
            "yaml": lambda text: list(yaml.load_all(text, yaml.CSafeLoader)),
        }
        try:
            readers.get(form, str)(printed)
        except ValueError as error:
            return f"{form} that cannot be read: {error}"
        return None if printed.strip() or form == "name" else "no answer"


def questions_about(project: Project, breadth: int = 3) -> Iterator[Question]:
    """All questions; `explain` and the changes of workloads about at most `breadth` of them."""
    yield from _simulations()
    for name in _sample(project.workloads, breadth):
        complaint = "" if project.has_pods(name) else NO_PODS
        yield Question(f"explain {name}", ("explain", name, "--all"), complaint=complaint)
    for name in _sample(project.workloads, 1):
        complaint = "" if project.has_pods(name) else NO_PODS
        for form in ("json", "yaml"):
            words = ("explain", name, "-o", form)
            yield Question(f"explain {form}", words, complaint=complaint)
        yield Question("explain as is", ("explain", name, "--as-is"), complaint=complaint)
        yield Question("kubectl explain", ("explain", name), is_plugin=True, complaint=complaint)
    if project.nodes:
        yield from _changes(project, breadth)
        yield from _wholes()
    if project.workloads:
        yield from _plans("" if project.has_work else NO_WORK)


def _simulations() -> Iterator[Question]:
    for form in ("table", "wide", "json", "yaml", "name"):
        yield Question(f"simulate {form}", ("simulate", "-o", form))
    yield Question("simulate explain", ("simulate", "--explain", "--all"))
    yield Question("simulate trace", ("simulate", "--trace", "-"))
    yield Question("simulate html", ("simulate", "--html", "{folder}/page.html"))
    yield Question("simulate metrics", ("simulate", "--metrics", "{folder}/metrics.txt"))
    yield Question("simulate to", ("simulate", "--to", "{folder}/after.yaml"))
    yield Question("simulate packed", ("simulate", "--config", str(PACKED)))


def _changes(project: Project, breadth: int) -> Iterator[Question]:
    node = project.nodes[0]
    drain = ("drain", node, "--force", "--delete-emptydir-data")
    changes: list[tuple[str, tuple[str, ...]]] = [
        ("drain", drain),
        ("drain json", (*drain, "-o", "json")),
        ("upgrade", ("upgrade", node)),
        ("add-nodes", ("add-nodes", "2", "--like", node)),
        ("cordon", ("cordon", node)),
        ("uncordon", ("uncordon", node)),
        ("add-taint", ("add-taint", node, "field=yes:NoExecute")),
        ("resize node", ("resize", node, "cpu=64")),
        ("delete node", ("delete", f"node/{node}")),
    ]
    scaled = [
        name for name in project.workloads if name.startswith(("deployment/", "statefulset/"))
    ]
    for name in _sample(scaled, breadth):
        kind, namespace, workload = name.split("/")
        target = (f"{kind}/{workload}", "-n", namespace)
        changes.append((f"scale {name}", ("scale", target[0], "7", *target[1:])))
        container = ("-c", project.container_of(name))
        resize = ("resize", target[0], "cpu=300m", *container, *target[1:])
        changes.append((f"resize {name}", resize))
    for name, words in changes:
        yield Question(f"what-if {name}", ("what-if", *words))


def _wholes() -> Iterator[Question]:
    yield Question("capacity", ("capacity", "--pod", str(POD)))
    yield Question("capacity json", ("capacity", "--pod", str(POD), "-o", "json"))
    yield Question("compare", ("compare", "--config", str(PACKED)))
    yield Question("compare json", ("compare", "--config", str(PACKED), "-o", "json"))
    yield Question(
        "compare html", ("compare", "--config", str(PACKED), "--html", "{folder}/c.html")
    )
    for objective in ("spread", "pack", "constraints"):
        yield Question(f"rebalance {objective}", ("rebalance", "--objective", objective))
    yield Question("rebalance json", ("rebalance", "-o", "json"))


def _plans(complaint: str) -> Iterator[Question]:
    pools = ("--pools", str(POOLS), "--instance-types", str(TYPES))
    limit = ("--time-limit", "1s")
    yield Question("plan", ("plan", *pools, *limit), complaint=complaint)
    yield Question("plan json", ("plan", *pools, *limit, "-o", "json"), complaint=complaint)
    yield Question("plan existing", ("plan", *pools, *limit, "--existing"))
    words = ("plan", *pools, *limit, "--keep", "existing")
    yield Question("plan keep", words, complaint=complaint)
    for autoscaler in ("karpenter", "cluster-autoscaler"):
        words = ("simulate", *pools, "--autoscaler", autoscaler, "--until", "1h")
        yield Question(f"simulate {autoscaler}", words)


def _sample(names: list[str], size: int) -> list[str]:
    """Up to `size` of the names, evenly spread."""
    return names[:: max(len(names) // size, 1)][:size]


def ask_all(project: Project, breadth: int = 3) -> Iterator[tuple[Question, str | None]]:
    """Each question with its fault, None where it has an answer."""
    with tempfile.TemporaryDirectory() as folder:
        for question in questions_about(project, breadth):
            yield question, question.ask(project, Path(folder))
