"""Cases: read workload files, and find the bundled ones.

All faults of a file are reported at once, with their paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...config.decode import decode
from ...config.load import load_config, parse_config
from ...config.problems import Literally, Problems, child
from ...config.types import SchedulerConfiguration
from ...errors import InputError, one_of, os_errors_named
from ..traces.table_rows import Row, read_rows
from .expressions import Env
from .ops import (
    OPS,
    AskQuestion,
    CaseFile,
    Churn,
    CreateAny,
    CreatePods,
    CreatePodSets,
    Op,
    PlanNodes,
    Simulate,
    SizeFile,
    StopCollectingMetrics,
)
from .templates import Marked, is_marked, parse_marked, shown

OWN = Path(__file__).parent / "workloads"
"""The bundled workloads."""
NODES_PARAM = "initNodes"
PODS_PARAM = "measurePods"
FIXED_SIZE = "fixed-size"
"""The label of sizes that are excluded from growth."""
SEVERAL_SIZES = "several-sizes"
"""The label of workloads that run only at given numbers of nodes, or when they are named."""
ON_REQUEST = "on-request"
"""The label of cases that run only when they are named."""


@dataclass(frozen=True)
class TemplateSource:
    """Parsed templates used in turn, and their source."""

    trees: list[Any]
    marked: Marked
    source: str


@dataclass(frozen=True)
class WorkloadStep:
    """An op with its path in the file and its templates, by field."""

    op: Op
    place: str
    templates: Mapping[str, TemplateSource]
    rows: Sequence[Env] = ()
    """The rows of its table, by column."""


@dataclass(frozen=True)
class Case:
    """A test case: steps, and sizes to run them at."""

    source: str
    """The source file."""
    file: CaseFile
    steps: tuple[WorkloadStep, ...]
    marked: Marked = field(repr=False)
    config: SchedulerConfiguration | None = None

    @property
    def name(self) -> str:
        """The name of the case."""
        return self.file.name

    @property
    def summary(self) -> str:
        """A short description."""
        return self.file.summary

    @property
    def is_by_release(self) -> bool:
        """Whether the release can be chosen: no command and no plan is run, the configuration is the default."""
        others = Simulate | AskQuestion | PlanNodes
        return self.config is None and not any(isinstance(s.op, others) for s in self.steps)

    def size(self, name: str) -> SizeFile:
        """The size of that name; the first when the name is empty. Raises InputError if there is
        none."""
        for size in self.file.workloads:
            if name in ("", size.name):
                return size
        there = ", ".join(f"{self.name}/{size.name}" for size in self.file.workloads)
        raise InputError(f'--workload: expected one of {there}; got "{self.name}/{name}"')

    def params(self, size: SizeFile, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters at a size; each may be computed from those before it.

        Numbers that are `given` replace those in the file, but not computed ones.
        """
        params: dict[str, Any] = {}
        for name in given:
            if name not in size.params:
                raise InputError(
                    f"{self.source}: {self.name}: expected a parameter {name}; got"
                    f" {', '.join(size.params) or 'none'}"
                )
        for name, value in size.params.items():
            try:
                is_fixed = name in given and not is_marked(value)
                params[name] = given[name] if is_fixed else self.marked.evaluate(value, params)
            except InputError as error:
                place = f"{self.source}: {self.name}/{size.name}: params.{name}"
                raise InputError(f"{place}: {error}") from None
        return params


def own_cases() -> list[Case]:
    """The bundled cases, in the order of their files."""
    files = sorted(OWN.glob("*.yaml"))
    return [case for file in files for case in read_cases(file)]


def read_cases(path: str | Path) -> list[Case]:
    """The cases of a file; raises InputError with a line per fault."""
    source = str(path)
    marked = parse_marked(_read(source), source)
    trees = [tree for document in marked.documents for tree in _as_list(document)]
    problems = Problems()
    reader = _Reader(source, marked, problems)
    if not trees:
        problems.add("", "a list of test cases", None)
    cases = [reader.case(tree, f"[{i}]") for i, tree in enumerate(trees)]
    _refuse_equal_names([case.name for case in cases if case], "", problems)
    if problems:
        raise InputError("\n".join(f"{source}: {problem}" for problem in problems))
    return [case for case in cases if case is not None]


def find_cases(
    cases: Iterable[Case], names: Iterable[str], known: Iterable[str] = ()
) -> Iterator[tuple[Case, SizeFile]]:
    """The cases and sizes selected by `names`: `case` for all its sizes, or `case/size`.

    Raises InputError for an unknown one, with the existing or `known` ones.
    """
    by_name = {case.name: case for case in cases}
    for name in names:
        case_name, _, size_name = name.partition("/")
        case = by_name.get(case_name)
        if case is None:
            there = ", ".join(known or by_name)
            raise InputError(f'--workload: expected one of {there}; got "{name}"')
        sizes = [case.size(size_name)] if size_name else case.file.workloads
        yield from ((case, size) for size in sizes)


class _Reader:
    """Reads the cases of one file."""

    def __init__(self, source: str, marked: Marked, problems: Problems) -> None:
        self._source = source
        self._folder = Path(source).parent
        self._marked = marked
        self._problems = problems

    def case(self, tree: Any, path: str) -> Case | None:
        """A case; None, with the problems recorded, if it is invalid."""
        before = len(self._problems)
        file = decode(CaseFile, tree, path, self._problems)
        if len(self._problems) > before:
            return None
        self._need(file.name, child(path, "name"), "a name")
        self._need(file.workloads, child(path, "workloads"), "at least one workload")
        self._need(file.workload_template, child(path, "workloadTemplate"), "at least one op")
        _refuse_equal_names([size.name for size in file.workloads], path, self._problems)
        steps = tuple(self._steps(file, path))
        if steps and not any(_is_measured(step.op) for step in steps):
            self._problems.add(
                child(path, "workloadTemplate"), "an op with collectMetrics", Literally("none")
            )
        config = self._config(file, path)
        return Case(self._source, file, steps, self._marked, config)

    def _steps(self, file: CaseFile, path: str) -> Iterator[WorkloadStep]:
        default = self._template(
            file.default_pod_template,
            file.default_pod_template_path,
            child(path, "defaultPodTemplate"),
        )
        for i, tree in enumerate(file.workload_template):
            place = f"{child(path, 'workloadTemplate')}[{i}]"
            op = self._op(tree, place)
            if op is None:
                continue
            templates = self._templates(op, place)
            if isinstance(op, CreatePodSets):
                inner = self._op(op.create_pods_op, child(place, "createPodsOp"))
                templates = self._templates(inner, child(place, "createPodsOp")) if inner else {}
            if isinstance(op, CreatePods | CreatePodSets) and default is not None:
                templates.setdefault("pod_template", default)
            yield WorkloadStep(op, f"{self._source}: {place}", templates, self._rows(op, place))
            self._check(op, place, templates)

    def _op(self, tree: Any, place: str) -> Op | None:
        opcode = tree.get("opcode") if isinstance(tree, dict) else None
        kind = OPS.get(opcode) if isinstance(opcode, str) else None
        if kind is None:
            where = child(place, "opcode") if isinstance(tree, dict) else place
            self._problems.add(where, one_of(tuple(OPS)), tree if opcode is None else opcode)
            return None
        rest = {name: value for name, value in tree.items() if name != "opcode"}
        for name, value in rest.items():
            if is_marked(value):  # expressions are allowed in templates and parameters only
                self._problems.add(child(place, name), "a plain value", shown(value))
        before = len(self._problems)
        op = decode(kind, rest, place, self._problems)
        return op if len(self._problems) == before else None

    def _rows(self, op: Op, place: str) -> Sequence[Env]:
        path = getattr(op, "table_path", "")
        if not path:
            return ()
        try:
            rows = [_values(row) for row in read_rows(self._folder / path)]
        except InputError as error:
            self._problems.add(child(place, "tablePath"), "a table", Literally(error))
            return ()
        self._need(rows, child(place, "tablePath"), "at least one row")
        return rows

    def _templates(self, op: Op, place: str) -> dict[str, TemplateSource]:
        found = {}
        for name in op.template_fields:
            inline, path = getattr(op, name), getattr(op, f"{name}_path")
            source = self._template(inline, path, child(place, _camel(name)))
            if source is not None:
                found[name] = source
        if isinstance(op, Churn):
            found |= self._churn_templates(op, place)
        return found

    def _churn_templates(self, op: Churn, place: str) -> dict[str, TemplateSource]:
        found = {}
        for i, tree in enumerate(_as_list(op.templates)):
            where = f"{child(place, 'templates')}[{i}]"
            found[where] = TemplateSource([tree], self._marked, f"{self._source}: {where}")
        for i, path in enumerate(op.template_paths):
            where = f"{child(place, 'templatePaths')}[{i}]"
            source = self._template_file(path, where)
            if source is not None:
                found[where] = source
        return found

    def _template(self, inline: Any, path: str, place: str) -> TemplateSource | None:
        if inline is not None and path:
            self._problems.add(place, "a template or a path", Literally("both"))
        if path:
            return self._template_file(path, f"{place}Path")
        if inline is None:
            return None
        return TemplateSource(_as_list(inline), self._marked, f"{self._source}: {place}")

    def _template_file(self, path: str, place: str) -> TemplateSource | None:
        file = str(self._folder / path)
        try:
            marked = parse_marked(_read(file), file)
        except InputError as error:
            self._problems.add(place, "a file with templates", Literally(error))
            return None
        return TemplateSource([tree for tree in marked.documents if tree is not None], marked, file)

    def _config(self, file: CaseFile, path: str) -> SchedulerConfiguration | None:
        if file.scheduler_config_path:
            return load_config(self._folder / file.scheduler_config_path)
        if file.scheduler_config is None:
            return None
        return parse_config(
            file.scheduler_config, f"{self._source}: {child(path, 'schedulerConfig')}"
        )

    def _check(self, op: Op, place: str, templates: Mapping[str, TemplateSource]) -> None:
        """Record the faults of a decoded op."""
        count_param = getattr(op, "count_param", "")
        if count_param and not count_param.startswith("$"):
            self._problems.add(child(place, "countParam"), "a name after a $", count_param)
        if getattr(op, "count", 0) < 0:
            self._problems.add(child(place, "count"), "0 or more", getattr(op, "count", 0))
        if isinstance(op, Churn):
            self._need(templates, child(place, "templates"), "at least one template")
            if op.mode == "recreate" and op.number < 1:
                self._problems.add(child(place, "number"), "1 or more", op.number)
        elif isinstance(op, CreateAny):
            self._need("template" in templates, child(place, "template"), "a template")
        elif isinstance(op, AskQuestion):
            self._need(op.question, child(place, "question"), "a command, such as [explain, web-7]")

    def _need(self, value: object, place: str, expected: str) -> None:
        if not value:
            self._problems.add(place, expected, Literally("none"))


def _is_measured(op: Op) -> bool:
    if isinstance(op, CreatePodSets):
        return bool(op.create_pods_op.get("collectMetrics"))
    measuring = StopCollectingMetrics | Simulate | AskQuestion | PlanNodes
    return getattr(op, "collect_metrics", False) or isinstance(op, measuring)


def _values(row: Row) -> Env:
    """The cells by column; whole numbers as numbers."""
    cells = {name: row.text(name) for name in row.cells}
    return {name: int(text) if text.isdecimal() else text for name, text in cells.items()}


def _refuse_equal_names(names: list[str], path: str, problems: Problems) -> None:
    for name in sorted({name for name in names if names.count(name) > 1}):
        times = Literally(f"it {names.count(name)} times")
        problems.add(path, f'the name "{name}" once', times)


def _read(file: str) -> str:
    try:
        with os_errors_named(file, "a readable file"):
            return Path(file).read_text("utf-8")
    except UnicodeError as error:
        raise InputError(f"{file}: expected UTF-8 text; {error}") from None


def _as_list(tree: Any) -> list[Any]:
    if tree is None:
        return []
    return tree if isinstance(tree, list) else [tree]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
