"""Plain data: answers and other results in the chosen form, and plain data as JSON and YAML on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from ...api.own_documents import API_VERSION
from ..options.option_groups import option
from .consoles import say, stdout_console, written_to_stdout

if TYPE_CHECKING:
    from rich.console import Console

    from ...answers.measured import UseAgainstRequests
    from ...trials import Settlement


class AnswerForm(StrEnum):
    """Output formats of an answer."""

    TABLE = "table"
    WIDE = "wide"
    """The table with all rows."""
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class ReportForm(StrEnum):
    """Output forms of a report, which has no names to list and no further rows."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


ANSWER_FORM = option(
    "-o, --output FORM", f"How to print it: {', '.join(AnswerForm)}.", default=AnswerForm.TABLE
)
REPORT_FORM = option(
    "-o, --output FORM", f"How to print it: {', '.join(ReportForm)}.", default=ReportForm.TABLE
)


def print_in_form(
    form: AnswerForm | ReportForm,
    document: Callable[[], Any],
    render: Callable[[Console], None],
    names: Callable[[], Iterable[str]] = tuple,
    kind: str = "",
) -> None:
    """Print a result: as a document, as the lines of `names`, or as `render` does for people.

    With a `kind`, the document is one of ours of that kind, and `document` its content.
    """

    def whole() -> Any:
        content = document()
        return {"apiVersion": API_VERSION, "kind": kind, **content} if kind else content

    match form.value:
        case "json":
            print_json_document(whole())
        case "yaml":
            print_yaml_document(whole())
        case "name":
            for line in names():
                print(line)
        case _:
            console = stdout_console()
            with written_to_stdout(console):
                render(console)


def pod_line(pod: str, node: str | None) -> str:
    """`pod/<namespace>/<name> node/<node>`; `-` stands for no node."""
    return f"pod/{pod} {f'node/{node}' if node else '-'}"


def with_remarks(document: dict[str, Any], remarks: Sequence[str]) -> dict[str, Any]:
    """The document with more remarks, if there are any."""
    if not remarks:
        return document
    return {**document, "remarks": [*document.get("remarks", ()), *remarks]}


def print_json_document(document: Any) -> None:
    """Print plain data as JSON."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def print_yaml_document(document: Any) -> None:
    """Print plain data as YAML, in the order it has."""
    sys.stdout.write(format_yaml_document(document))


def format_yaml_document(document: Any) -> str:
    """Plain data as YAML, in the order it has."""
    from ...yaml_tree import format_tree

    return format_tree(document)


def yaml_pieces(trees: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A document per object."""
    for tree in trees:
        yield "---\n"
        yield format_yaml_document(tree)


def json_pieces(trees: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A List with an object per line."""
    import msgspec

    yield '{"apiVersion": "v1", "kind": "List", "items": ['
    joint = "\n"
    for tree in trees:
        yield joint + msgspec.json.encode(tree).decode()
        joint = ",\n"
    yield "\n]}\n"


def cluster_pieces(trees: Iterable[dict[str, Any]], form: str) -> Iterator[str | bytes]:
    """A file with these objects: `yaml`, `json` or `bay`."""
    if form == "bay":
        from ...manifests.bay_objects import bay_pieces

        yield from bay_pieces(trees)
    else:
        yield from json_pieces(trees) if form == "json" else yaml_pieces(trees)


def form_of(file_name: str) -> str:
    """The form of a cluster in a file of this name: `json` or `bay` if it ends with that, or else `yaml`."""
    suffix = file_name.removesuffix(".gz").rpartition(".")[2]
    return suffix if suffix in ("json", "bay") else "yaml"


class PrintableAnswer(Protocol):
    """An answer of the library."""

    def to_dict(self) -> dict[str, object]:
        """Plain data."""


def print_answer(
    answer: PrintableAnswer,
    kind: str,
    form: AnswerForm,
    names: Callable[[], Iterable[str]],
    render: Callable[[Console], None],
    remarks: Sequence[str] = (),
    usage: UseAgainstRequests | None = None,
) -> None:
    """Print the answer: as a document of `kind`, as the lines of `names`, or as `render` does for people.

    Without a `kind`, the answer's plain data have theirs. A document has the `remarks` on the input, too; `usage` is
    the measured use beside requests.
    """

    def document() -> dict[str, object]:
        made = answer.to_dict()
        return with_remarks(made if usage is None else {**made, "usage": usage.to_dict()}, remarks)

    def show(console: Console) -> None:
        print_settlement(console, getattr(answer, "settled", None))
        render(console)
        if usage is not None:
            print_usage(console, usage)
        print_notices(console, getattr(answer, "notices", ()))

    print_in_form(form, document, show, names, kind)


def print_usage(console: Console, usage: UseAgainstRequests) -> None:
    """Print requests and measured use of the cluster, and the answer by use."""
    from .table_layout import Listing
    from .tables import amount, section

    numbers = ("REQUESTED", "USED", "OF")
    table = Listing(("RESOURCE", *numbers), right=numbers)
    for one in usage.totals:
        shown, *values = (
            amount(value, one.resource) for value in (one.allocatable, one.requested, one.used)
        )
        if one.allocatable:
            shares = (value / one.allocatable for value in (one.requested, one.used))
            values = [f"{v} ({100 * s:.0f}%)" for v, s in zip(values, shares, strict=True)]
        table.add(one.resource, *values, shown)
    console.print()
    section(console, table, even_empty=True)
    if usage.measured < usage.pods:
        rest = usage.pods - usage.measured
        text = f"{rest:,} of {usage.pods:,} {usage.noun} were not measured; they count with their requests"
        say(console, text, "dim")
    if usage.conclusion:
        say(console, usage.conclusion)


def is_whole(everything: bool, form: AnswerForm, console: Console) -> bool:
    """Whether all rows of a table are shown: on request, and where it does not go to a terminal."""
    return everything or form is AnswerForm.WIDE or not console.is_terminal


def print_settlement(console: Console, settled: Settlement | None) -> None:
    """Print the results of pods that waited before the question, if there were any."""
    if settled is not None and settled.text:
        console.print(settled.text, style="dim", markup=False, soft_wrap=True)
    print_notices(console, settled.notices if settled is not None else ())


def print_notices(console: Console, notices: Iterable[str]) -> None:
    """Print the notes of an answer, a line for each."""
    for line in notices:
        say(console, line, "yellow")
