"""Probe rules: faults of the probes and hooks of containers.

Mirrors validateProbe, validateLifecycle and validateHandler of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .field_causes import Cause, forbidden_field, invalid_value, required, unsupported_value
from .label_rules import text_causes

Tree = Mapping[str, Any]

PORT_RULE = "must be between 1 and 65535, inclusive"
_NAME = re.compile(r"[-a-z0-9]+")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_RULE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
_ONE = "may not specify more than 1 handler type"
_SECONDS = (
    *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold"),
    "failureThreshold",
)


def port_name_faults(name: str) -> tuple[str, ...]:
    """The faults of the name of a port."""
    faults = ["must be no more than 15 characters"] if len(name.encode()) > 15 else []
    if not _NAME.fullmatch(name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return tuple(faults)


def port_causes(port: Any, path: str) -> Iterator[Cause]:
    """Yield the faults of a port that may be a number or a name."""
    if isinstance(port, str):
        yield from text_causes(port, port_name_faults, path)
    elif not 0 < (port or 0) < 65536:
        yield invalid_value(path, port or 0, PORT_RULE)


def lifecycle_causes(container: Tree, path: str, grace_s: int | None) -> Iterator[Cause]:
    """Yield the faults of the hooks and probes of a container that runs for long.

    Stop signals are behind a gate that is off, and dropped.
    """
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        for name in ("postStart", "preStop"):
            if lifecycle.get(name) is not None:
                where = f"{path}.lifecycle.{name}"
                yield from _action_causes(lifecycle[name], where, grace_s, "sleep")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            yield from _probe_causes(container[name], f"{path}.{name}", name)


def _probe_causes(probe: Tree, path: str, name: str) -> Iterator[Cause]:
    yield from _action_causes(probe, path, None, "grpc")
    for field in _SECONDS:
        if (probe.get(field) or 0) < 0:
            yield invalid_value(
                f"{path}.{field}", probe[field], "must be greater than or equal to 0"
            )
    grace_s = probe.get("terminationGracePeriodSeconds")
    where = f"{path}.terminationGracePeriodSeconds"
    if grace_s is not None and grace_s <= 0:
        yield invalid_value(where, grace_s, "must be greater than 0")
    if name == "readinessProbe":
        if grace_s is not None:
            yield invalid_value(where, grace_s, "must not be set for readinessProbes")
    elif probe.get("successThreshold") != 1:
        found = probe.get("successThreshold") or 0
        yield invalid_value(f"{path}.successThreshold", found, "must be 1")


def _action_causes(tree: Tree, path: str, grace_s: int | None, last: str) -> Iterator[Cause]:
    """Yield the faults of the one action of a probe or hook; `last` is the action that the other lacks."""
    named = [name for name in ("exec", "httpGet", "tcpSocket", last) if tree.get(name) is not None]
    if not named:
        yield required(path, "must specify a handler type")
        return
    name, action, where = named[0], tree[named[0]], f"{path}.{named[0]}"
    if name == "exec" and not action.get("command"):
        yield required(f"{where}.command")
    if name == "httpGet":
        yield from _request_causes(action, where)
    if name in ("tcpSocket", "grpc"):
        yield from port_causes(action.get("port"), f"{where}.port")
    seconds = action.get("seconds") or 0
    if name == "sleep" and grace_s is not None and not 0 <= seconds <= grace_s:
        problem = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        yield invalid_value(where, seconds, problem)
    for other in named[1:]:
        yield forbidden_field(f"{path}.{other}", _ONE)


def _request_causes(request: Tree, path: str) -> Iterator[Cause]:
    if not request.get("path"):
        yield required(f"{path}.path")
    yield from port_causes(request.get("port"), f"{path}.port")
    scheme = str(request.get("scheme") or "")
    if scheme not in ("HTTP", "HTTPS"):
        yield unsupported_value(f"{path}.scheme", scheme, ("HTTP", "HTTPS"))
    for header in request.get("httpHeaders") or ():
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            yield invalid_value(f"{path}.httpHeaders", name, _HEADER_RULE)
