"""Workload documents: files that describe custom kinds which make pods, kind `WorkloadKinds` of bayplan.dev/v1."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ..api.own_documents import API_VERSION
from ..api.workload_kinds import PodSet, WorkloadKind, WorkloadKinds, count_paths, path_fault
from ..errors import InputError
from .sources import find_files, read_documents

KIND = "WorkloadKinds"


def read_workload_kinds(paths: Iterable[str | Path]) -> list[WorkloadKind]:
    """The kinds in files and folders; InputError, with file, document and path, if they cannot be read."""
    found: list[WorkloadKind] = []
    for file in find_files(paths):
        for place, tree in read_documents(file):
            found += _kinds(tree, place)
    return found


def _kinds(tree: object, place: str) -> list[WorkloadKind]:
    head = (tree.get("apiVersion"), tree.get("kind")) if isinstance(tree, dict) else (None, None)
    if head != (API_VERSION, KIND):
        got = " ".join(str(part) for part in head if part) or "none"
        raise InputError(f"{place}: expected {API_VERSION} {KIND}; got {got}")
    try:
        kinds = msgspec.convert(tree, WorkloadKinds).kinds
    except msgspec.ValidationError as error:
        fault, _, path = str(error).partition(" - at `$.")
        where = f"{place}: {path.rstrip('`')}" if path else place
        raise InputError(f"{where}: {fault[:1].lower()}{fault[1:]}") from None
    if not kinds:
        raise InputError(f"{place}: kinds: expected at least one; got none")
    for i, kind in enumerate(kinds):
        _check(kind, f"{place}: kinds[{i}]")
    return kinds


def _check(kind: WorkloadKind, where: str) -> None:
    if "." not in kind.group:
        raise InputError(
            f"{where}.group: expected the API group of a custom kind; got {kind.group!r}"
        )
    if not kind.pods:
        raise InputError(f"{where}.pods: expected at least one template; got none")
    for name, path in (
        ("minCount", kind.min_count),
        ("gangs", kind.gangs),
        ("suspended", kind.suspended),
        ("reference", kind.reference),
    ):
        _check_path(path, f"{where}.{name}", is_needed=False)
    for i, pods in enumerate(kind.pods):
        _check_pods(pods, f"{where}.pods[{i}]")


def _check_pods(pods: PodSet, where: str) -> None:
    if bool(pods.template) == bool(pods.fields):
        got = "both" if pods.fields else "neither"
        raise InputError(f"{where}: expected template or fields; got {got}")
    paths = pods.template if isinstance(pods.template, list) else [pods.template]
    for path in [pods.fields] if pods.fields else paths:
        _check_path(path, f"{where}.{'fields' if pods.fields else 'template'}")
    for factor in count_paths(pods.count):
        if isinstance(factor, str):
            _check_path(factor.rpartition(" - ")[0] or factor, f"{where}.count")
        elif isinstance(factor, list):
            for path in factor or [""]:
                _check_path(path, f"{where}.count")
        elif factor < 0:
            raise InputError(f"{where}.count: expected zero or more; got {factor}")


def _check_path(path: str, where: str, is_needed: bool = True) -> None:
    if (path or is_needed) and path_fault(path):
        raise InputError(f"{where}: expected a path such as spec.workers[].template; got {path!r}")
