"""Report: a run in one file that opens in any browser, with no server and no network."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..api.pod import Pod
from ..errors import MooringError
from ..scheduler.judge import judge_pod
from .accounts import account_of_attempt, account_of_judged
from .assembly import assemble
from .history import FORMAT, History, State
from .numbering import Tree

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

JUDGED_STATES = (State.ACTIVE, State.BACKOFF, State.UNSCHEDULABLE)
END = "end"


def write_report(
    stream: SupportsWrite[str],
    history: History,
    *,
    sources: Iterable[Path | str] = (),
    preempted: Iterable[tuple[Pod, Pod]] = (),
) -> None:
    """Write the page of a run that has ended; `preempted` are pods that made room, and for whom."""
    stream.write(assemble(report_data(history, sources, preempted), is_live=False))


def report_data(
    history: History,
    sources: Iterable[Path | str] = (),
    preempted: Iterable[tuple[Pod, Pod]] = (),
) -> Tree:
    """What the page of a run is made of: the first state, all changes, and accounts of the pods that wait."""
    history.sync()
    accounts, account_of = _accounts(history)
    victims = {
        str(history.number_of(victim.uid)): f"{preemptor.namespace}/{preemptor.name}"
        for victim, preemptor in preempted
    }
    return {
        "format": FORMAT,
        "isLive": False,
        "sources": [str(source) for source in sources],
        "started": history.started.isoformat(),
        **history.first_state(),
        **history.told({}),
        "attempts": attempts_of(history),
        "accounts": accounts,
        "accountOf": {str(number): account for number, account in account_of.items()},
        "preemptedFor": victims,
    }


def attempts_of(history: History) -> Tree:
    """What is known of the last attempt at each pod, in columns."""
    listed = [
        (n, a.number, a.score, a.feasible_nodes, a.evaluated_nodes)
        for n, a in history.attempts.items()
    ]
    names = ("pod", "number", "score", "feasible", "evaluated")
    columns = zip(*listed, strict=True) if listed else ((),) * len(names)
    return dict(zip(names, columns, strict=True))


def _accounts(history: History) -> tuple[list[Tree], dict[int, int]]:
    """The accounts there are, and which of them is that of a pod. Pods that wait and are alike share one."""
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
        alike: object = number if pod.nominated_node_name else pod.pod_class
        if alike not in judged:
            account = _judge(history, pod)
            if account is None:
                continue
            judged[alike] = len(accounts)
            accounts.append(account)
        account_of[number] = judged[alike]
    return accounts, account_of


def _judge(history: History, pod: Pod) -> Tree | None:
    scheduler = history.scheduler
    if scheduler is None or pod.scheduler_name not in scheduler.profiles:
        return None
    try:
        return account_of_judged(judge_pod(scheduler, pod), history.numbering.nodes.known, END)
    except MooringError as error:
        return {"when": END, "error": str(error)}
