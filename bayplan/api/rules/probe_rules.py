"""Probe rules: faults of the probes and hooks of containers.

Mirrors validateProbe, validateLifecycle and validateHandler of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Any

from .field_causes import Part

PORT_RULE = "must be between 1 and 65535, inclusive"
_NAME = re.compile(r"[-a-z0-9]+")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_RULE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
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


def check_port(part: Part, name: str) -> None:
    """Check a port that may be a number or a name."""
    port = part.get(name) or 0
    if isinstance(part.get(name), str):
        part.check(name, port_name_faults)
    elif not 0 < port < 65536:
        part.invalid(name, PORT_RULE, port)


def check_lifecycle(container: Part, grace_s: int | None) -> None:
    """Check the hooks and probes of a container that runs for long.

    Stop signals are behind a gate that is off, and dropped.
    """
    lifecycle = container.below("lifecycle")
    for name in lifecycle.set_of(("postStart", "preStop")):
        _check_action(lifecycle.below(name), grace_s, "sleep")
    for name in container.set_of(("livenessProbe", "readinessProbe", "startupProbe")):
        _check_probe(container.below(name), name)


def _check_probe(probe: Part, name: str) -> None:
    _check_action(probe, None, "grpc")
    probe.not_negative(*_SECONDS)
    grace_s = probe.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s <= 0:
        probe.invalid("terminationGracePeriodSeconds", "must be greater than 0")
    if name != "readinessProbe":
        if probe.get("successThreshold") != 1:
            probe.invalid("successThreshold", "must be 1", probe.get("successThreshold") or 0)
    elif grace_s is not None:
        problem = "must not be set for readinessProbes"
        probe.invalid("terminationGracePeriodSeconds", problem)


def _check_action(part: Part, grace_s: int | None, last: str) -> None:
    """Check the one action of a probe or hook; `last` is the action that the other lacks."""
    named = part.set_of(("exec", "httpGet", "tcpSocket", last))
    if not named:
        part.required("", "must specify a handler type")
        return
    name, action = named[0], part.below(named[0])
    if name == "exec":
        action.needs("command")
    if name == "httpGet":
        _check_request(action)
    if name in ("tcpSocket", "grpc"):
        check_port(action, "port")
    seconds: Any = action.get("seconds") or 0
    if name == "sleep" and grace_s is not None and not 0 <= seconds <= grace_s:
        problem = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        action.invalid("", problem, seconds)
    for other in named[1:]:
        part.forbidden(other, "may not specify more than 1 handler type")


def _check_request(request: Part) -> None:
    request.needs("path")
    check_port(request, "port")
    request.needs_choice("scheme", "HTTP", "HTTPS")
    for header in request.get("httpHeaders") or ():
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            request.invalid("httpHeaders", _HEADER_RULE, name)
