"""Clusters: the clusters that `bayplan up` runs on this machine, with `bayplan up list` and `bayplan up down`.

They are known by name, in files of the user: an entry is a folder below the state folder, with the process that serves
the cluster. A process is identified by its number and the time at which it started, so an entry that a killed process
left behind is recognised, also when its number was given to another.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from ...cluster.private_files import make_private_folder, open_private, write_private
from ...errors import InputError, os_errors_named
from ..options.option_groups import argument, option
from ..render.consoles import say, stderr_console
from ..render.plain_data import ANSWER_FORM, AnswerForm, print_in_form

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_NAME = "bayplan"
MAX_NAME = 63
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ENTRY = "cluster.json"
_EXPECTED = "a folder to write, which XDG_STATE_HOME can set"
LOG = "log"
PATIENCE_S = 30.0
PAUSE_S = 0.05


class StateFolderError(InputError):
    """The state folder cannot be written."""


@dataclass(frozen=True)
class ClusterEntry:
    """A cluster; `server` is empty until it serves."""

    name: str
    pid: int
    process_started: str
    server: str = ""
    page: str = ""
    kubeconfig: str = ""
    nodes: int = 0
    started: str = ""
    release: str = ""
    """The Kubernetes whose API it serves."""

    def is_running(self) -> bool:
        """Whether its process still runs."""
        return self.process_started != "" and process_start(self.pid) == self.process_started


def state_folder() -> Path:
    """Folder of the entries: below XDG_STATE_HOME if that is set."""
    home = os.environ.get("XDG_STATE_HOME") or ""
    base = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    return base / "bayplan" / "clusters"


def folder_of(name: str) -> Path:
    """The folder of an entry."""
    return state_folder() / name


def check_name(name: str, option: str = "--name") -> None:
    """Raise InputError unless `name` can be the name of a cluster."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        expected = f"at most {MAX_NAME} lower case letters, digits and -, with no - at either end"
        raise InputError(f'{option}: expected {expected}; got "{name}"')


def running_clusters() -> list[ClusterEntry]:
    """The clusters that run, by name. Entries of processes that are gone are left where they are."""
    return [entry for entry in all_entries() if entry.is_running()]


def all_entries() -> list[ClusterEntry]:
    """All entries by name, those of ended processes included."""
    try:
        names = sorted(path.name for path in state_folder().iterdir() if path.is_dir())
    except OSError:
        return []
    return [entry for name in names if (entry := find_entry(name)) is not None]


def find_entry(name: str) -> ClusterEntry | None:
    """The entry of that name; None if there is none that can be read."""
    try:
        found = json.loads((folder_of(name) / _ENTRY).read_text())
        known = {field.name for field in fields(ClusterEntry)}
        return ClusterEntry(**{key: value for key, value in found.items() if key in known})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def claim(name: str, *, next_free: bool) -> ClusterEntry:
    """Make an entry of this process. Raises InputError when the name is taken, or the folder cannot be written;
    with `next_free`, a number is added to a name that is taken."""
    with _locked():
        tried, number = name, 1
        while (other := find_entry(tried)) is not None and other.is_running():
            if not next_free:
                expected = "expected a name that no running cluster has"
                ending = f"bayplan up down {tried} ends it"
                raise InputError(
                    f'--name: {expected}; got "{tried}" (process {other.pid}); {ending}'
                )
            number += 1
            tried = f"{name}-{number}"
        pid = os.getpid()
        entry = ClusterEntry(tried, pid, process_start(pid))
        write_entry(entry)
        return entry


def write_entry(entry: ClusterEntry) -> None:
    """Write an entry, whole or not at all."""
    path = folder_of(entry.name) / _ENTRY
    with os_errors_named(state_folder(), _EXPECTED, StateFolderError):
        make_private_folder(path.parent)
        # for its owner only: the page's address has its token
        write_private(path, json.dumps(asdict(entry)).encode())


def remove_entry(entry: ClusterEntry) -> None:
    """Remove an entry, unless it is that of another process by now."""
    with _locked():
        found = find_entry(entry.name)
        if found is not None and (found.pid, found.process_started) != (
            entry.pid,
            entry.process_started,
        ):
            return
        shutil.rmtree(folder_of(entry.name), ignore_errors=True)


def process_start(pid: int) -> str:
    """Time when a process started, in some form that stays the same; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _process_start_of_ps(pid)
    state, *others = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else others[18]


def _process_start_of_ps(pid: int) -> str:
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


@contextmanager
def _locked() -> Iterator[None]:
    """Let no other process change entries meanwhile."""
    folder = state_folder()
    with os_errors_named(folder, _EXPECTED, StateFolderError):
        make_private_folder(folder)
        file = os.fdopen(open_private(folder / ".lock"), "w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def clusters(output: AnswerForm = ANSWER_FORM) -> None:
    """List the clusters of bayplan up that run on this machine.

    Example: bayplan up list -o json
    """
    found = running_clusters()
    if not found and output in (AnswerForm.TABLE, AnswerForm.WIDE):
        stderr_console().print("No clusters run here; bayplan up starts one.", highlight=False)
        return

    def render(console: Console) -> None:
        from ..render.table_layout import Listing, show_listing

        heads = ("NAME", "SERVER", "NODES", "PID", "STARTED", "KUBECONFIG")
        rows = [[str(getattr(entry, head.lower())) for head in heads] for entry in found]
        show_listing(console, Listing(heads, rows))

    items = [asdict(entry) for entry in found]
    for item in items:
        del item["process_started"]
    names = [entry.name for entry in found]
    print_in_form(output, lambda: {"items": items}, render, lambda: names, "ClusterList")


def complete_cluster(incomplete: str) -> list[str]:
    """Names of running clusters for shell completion."""
    return [entry.name for entry in running_clusters() if entry.name.startswith(incomplete)]


def down(
    name: str = argument(
        "NAME",
        "The cluster to end.",
        default=DEFAULT_NAME,
        autocompletion=complete_cluster,
    ),
    every: bool = option("--all", "End all clusters."),
) -> None:
    """End a cluster of bayplan up, and wait until it has ended.

    Data in a folder of --data-dir stays.

    Exit status: 0, or 2 when there is no such cluster.

    Example: bayplan up down
    """
    if every:
        for entry in all_entries():
            _end(entry)
        return
    check_name(name, "NAME")
    found = find_entry(name)
    if found is None:
        known = ", ".join(entry.name for entry in running_clusters()) or "none"
        raise InputError(f'NAME: expected a running cluster ({known}); got "{name}"')
    _end(found)


def _end(entry: ClusterEntry) -> None:
    """Stop the cluster's process, and wait; one that was killed leaves its entry, which is removed."""
    if not entry.is_running():
        remove_entry(entry)
        say(stderr_console(), f"{entry.name}: its process has ended before; removed what it left")
        return
    os.kill(entry.pid, signal.SIGTERM)
    end = time.monotonic() + PATIENCE_S
    while entry.is_running():
        if time.monotonic() > end:
            expected = f"expected process {entry.pid} to end within {PATIENCE_S:g} s"
            raise InputError(f"{entry.name}: {expected}; got one that still runs")
        time.sleep(PAUSE_S)
    remove_entry(entry)
    say(stderr_console(), f"{entry.name}: ended")
