"""Page file: a run in one file that opens in any browser, with no server and no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..api.pod import Pod
from ..api.pod_groups import GroupPreemptor
from ..errors import BayplanError
from ..scheduler import Inquiry
from .accounts import MakeView, account_of_attempt, account_of_inquiry, remedies_of
from .assembly import assemble
from .history import FORMAT, History, HistoryState, groups_tree
from .value_numbers import Tree, in_columns

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

Steps: TypeAlias = Sequence[tuple[float, float]]
"""Seconds since the start, in order, and the value from each on."""

JUDGED_STATES = (HistoryState.ACTIVE, HistoryState.BACKOFF, HistoryState.UNSCHEDULABLE)
END = "end"
MOST_REMEDIES = 200
"""Number of pod classes with counterfactuals."""


def write_report(
    stream: SupportsWrite[str],
    history: History,
    *,
    sources: Iterable[Path | str] = (),
    preempted: Iterable[tuple[Pod, Pod | GroupPreemptor]] = (),
    make_view: MakeView | None = None,
    groups: Iterable[Any] = (),
    series: Mapping[str, Steps] | None = None,
    use: Mapping[tuple[str, str], Mapping[str, int]] | None = None,
) -> None:
    """Write the page of a finished run; `preempted` are the victims with their preemptors.

    With `make_view`, counterfactuals of pending pods are included. `series` are figures over time that the run
    recorded: `cost` is shown above the slider. `use` is the measured use of pods by namespace and name: cpu in milli,
    memory in bytes.
    """
    data = report_data(history, sources, preempted, make_view, groups)
    data["series"] = {
        name: {"t": [t for t, _ in steps], "value": [value for _, value in steps]}
        for name, steps in (series or {}).items()
    }
    pods = data["pods"]
    names = zip(pods["namespace"], pods["name"], strict=True) if use else ()
    keys = enumerate((data["texts"][namespace], name) for namespace, name in names)
    data["use"] = {str(n): dict((use or {})[key]) for n, key in keys if key in (use or {})}
    stream.write(assemble(data, is_live=False))


def write_comparison(
    stream: SupportsWrite[str],
    runs: Sequence[tuple[str, History]],
    measures: Sequence[Tree],
    sources: Iterable[Path | str] = (),
) -> None:
    """Write the page of runs of the same workload, each with its name; `measures` are rows with a value for each name.

    The page shows the first run, and one of the others beside it.
    """
    (name, history), *others = runs
    data = report_data(history, sources)
    data["comparison"] = {
        "name": name,
        "others": [{"name": other, **report_data(past, sources)} for other, past in others],
        "measures": list(measures),
    }
    stream.write(assemble(data, is_live=False))


def report_data(
    history: History,
    sources: Iterable[Path | str] = (),
    preempted: Iterable[tuple[Pod, Pod | GroupPreemptor]] = (),
    make_view: MakeView | None = None,
    groups: Iterable[Any] = (),
) -> Tree:
    """The data of the page of a run: the first state, all changes, and accounts of the pending pods."""
    history.sync()
    accounts, account_of = _accounts(history)
    if make_view is not None:
        _add_remedies(history, accounts, account_of, make_view)
    victims = {
        str(history.number_of(victim.uid)): f"{preemptor.namespace}/{preemptor.name}"
        for victim, preemptor in preempted
    }
    return {
        "format": FORMAT,
        "isLive": False,
        "sources": [str(source) for source in sources],
        "release": history.release,
        "started": history.started.isoformat(),
        **history.first_state(),
        **history.told({}),
        "attempts": attempts_of(history),
        "accounts": accounts,
        "accountOf": {str(number): account for number, account in account_of.items()},
        "preemptedFor": victims,
        "groups": groups_tree(groups, history),
    }


def attempts_of(history: History) -> Tree:
    """The last attempt at each pod, in columns."""
    listed = [
        (n, a.number, a.score, a.feasible_nodes, a.evaluated_nodes)
        for n, a in history.attempts.items()
    ]
    return in_columns(listed, ("pod", "number", "score", "feasible", "evaluated"))


def _accounts(history: History) -> tuple[list[Tree], dict[int, int]]:
    """The accounts, and the account of each pod. Equal pending pods share one."""
    accounts: list[Tree] = []
    account_of: dict[int, int] = {}
    number_of = history.numbering.nodes.known
    for number, attempt in history.attempts.items():
        account = account_of_attempt(attempt, number_of)
        if account is not None:
            account_of[number] = len(accounts)
            accounts.append(account)
    judged: dict[object, int] = {}
    for number, pod in history.waiting():
        if number in account_of or history.now.state[number] not in JUDGED_STATES:
            continue
        alike = _alike(number, pod)
        if alike not in judged:
            account = _judge(history, pod)
            if account is None:
                continue
            judged[alike] = len(accounts)
            accounts.append(account)
        account_of[number] = judged[alike]
    return accounts, account_of


def _add_remedies(
    history: History, accounts: list[Tree], account_of: dict[int, int], make_view: MakeView
) -> None:
    """Add counterfactuals to infeasible pods; equal pods share them."""
    refused: dict[object, tuple[Pod, list[Tree]]] = {}
    for number, pod in history.waiting():
        account = accounts[account_of[number]] if number in account_of else {}
        if history.now.state[number] in JUDGED_STATES and account.get("feasible") == 0:
            refused.setdefault(_alike(number, pod), (pod, []))[1].append(account)
    view = make_view() if refused else None
    for pod, alike in islice(refused.values(), MOST_REMEDIES):
        assert view is not None, "the view is made when a pod is infeasible"
        remedies = remedies_of(view, pod, history.numbering.nodes.known)
        for account in alike:
            account["remedies"] = remedies


def _alike(number: int, pod: Pod) -> object:
    """Key of pods with equal accounts; a nominated pod is judged differently on its node."""
    return number if pod.nominated_node_name else (pod.pod_class, pod.spec)


def _judge(history: History, pod: Pod) -> Tree | None:
    scheduler = history.scheduler
    if scheduler is None or pod.scheduler_name not in scheduler.profiles:
        return None
    try:
        return account_of_inquiry(Inquiry(scheduler, pod), history.numbering.nodes.known, END)
    except BayplanError as error:
        return {"when": END, "error": str(error)}
