"""Answer output: an answer in the chosen format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from .consoles import say
from .plain_data import AnswerForm, print_in_form, with_remarks

if TYPE_CHECKING:
    from rich.console import Console

    from ...answers.measured import UseAgainstRequests
    from ...trials import Settlement


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
