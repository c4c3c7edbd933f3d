"""Exec plugin: a token or a client certificate from a command that a kubeconfig names.

Mirrors k8s.io/client-go/plugin/pkg/client/auth/exec.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from ..errors import InputError
from .kubeconfig import Section

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INFO = "KUBERNETES_EXEC_INFO"
PluginCalls: TypeAlias = Counter[tuple[str, str]]
"""Calls by exit status and result, in client-go's words."""


class ExecStatus(msgspec.Struct, rename="camel"):
    """The plugin's result."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""

    @property
    def expires_at(self) -> float | None:
        """Time when it expires, as seconds since the epoch; None if it has no such time."""
        if not self.expiration_timestamp:
            return None
        return datetime.fromisoformat(self.expiration_timestamp).timestamp()


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: ExecStatus


async def run_plugin(settings: Section, calls: PluginCalls) -> ExecStatus:
    """Run the command, which is counted; raises InputError when it fails, or returns neither token nor certificate."""
    command, version = settings.text("command"), settings.text("apiVersion")
    if command is None:
        raise settings.wrong("command", "a command", "none")
    if version not in API_VERSIONS:
        raise settings.wrong("apiVersion", " or ".join(API_VERSIONS), version or "none")
    spec: dict[str, Any] = {"interactive": sys.stdin is not None and sys.stdin.isatty()}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    variables = {str(item.get("name")): str(item.get("value")) for item in settings.trees("env")}
    environment = {**os.environ, **variables, INFO: msgspec.json.encode(info).decode()}
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *settings.texts("args"),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        calls["1", "plugin_not_found_error"] += 1
        hint = settings.text("installHint")
        problem = f"{command}: {error.strerror}" + (f". {hint}" if hint else "")
        raise settings.wrong("command", "a command that can be run", problem) from None
    printed, complaint = await process.communicate()
    outcome = "plugin_execution_error" if process.returncode else "no_error"
    calls[str(process.returncode), outcome] += 1
    if process.returncode:
        problem = f"exit status {process.returncode}. {complaint.decode(errors='replace').strip()}"
        raise settings.wrong("command", "exit status 0", problem)
    return _read(printed, version, settings)


def _read(printed: bytes, version: str, settings: Section) -> ExecStatus:
    expected = f"an ExecCredential of {version}, printed by the command"
    try:
        credential = msgspec.json.decode(printed, type=_ExecCredential)
        _ = credential.status.expires_at
    except (msgspec.MsgspecError, ValueError) as error:
        raise settings.wrong("command", expected, str(error)) from None
    if (credential.api_version, credential.kind) != (version, "ExecCredential"):
        got = f"{credential.kind} of {credential.api_version}"
        raise settings.wrong("command", expected, got)
    status = credential.status
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise settings.wrong("command", expected, "a certificate or a key without the other")
    if not status.token and not status.client_certificate_data:
        raise InputError(
            f"{settings.path}.command: expected a token or a client certificate; got neither"
        )
    return status
