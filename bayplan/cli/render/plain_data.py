"""Plain data: results in the form that was asked for, and plain data as JSON and YAML on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ...api.own_documents import API_VERSION
from ..options.option_groups import option
from .consoles import stdout_console, written_to_stdout

if TYPE_CHECKING:
    from rich.console import Console


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
