"""Committing: Reserve, Permit, PreBind, Bind and PostBind of one profile.

Mirrors the corresponding Run*Plugins of pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from ..api.pod import Pod
from ..framework import (
    SKIP,
    SUCCESS,
    BindPlugin,
    Code,
    CycleState,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Status,
)
from .failing import PluginRunError, failed

MAX_PERMIT_WAIT_S = 15 * 60
WAITING = "one or more plugins asked to wait and no plugin rejected pod"


class Committing:
    """What happens to a pod once its node is chosen."""

    def __init__(
        self,
        reserves: Sequence[ReservePlugin],
        permits: Sequence[PermitPlugin],
        pre_binds: Sequence[PreBindPlugin],
        binds: Sequence[BindPlugin],
        post_binds: Sequence[PostBindPlugin],
    ) -> None:
        self.reserves = tuple(reserves)
        self.permits = tuple(permits)
        self.pre_binds = tuple(pre_binds)
        self.binds = tuple(binds)
        self.post_binds = tuple(post_binds)

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Run Reserve in order; the first that does not succeed ends it."""
        for plugin in self.reserves:
            try:
                status = plugin.reserve(state, pod, node_name)
            except Exception as error:
                raise failed("running Reserve plugin {}", plugin, error) from error
            if not status.is_success:
                return _rejection("running Reserve plugin {}", plugin, status)
        return SUCCESS

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> list[PluginRunError]:
        """Run Unreserve of every Reserve plugin in reverse order, also of those that never reserved.

        One that raises does not keep the others from cleaning up; what was raised is returned.
        """
        failures = []
        for plugin in reversed(self.reserves):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception as error:
                failures.append(failed("running Unreserve plugin {}", plugin, error))
        return failures

    def run_permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status, dict[str, float]]:
        """Run Permit in order; with Wait come the seconds each plugin is ready to wait."""
        timeouts: dict[str, float] = {}
        reasons: list[str] = []
        for plugin in self.permits:
            try:
                status, timeout_s = plugin.permit(state, pod, node_name)
            except Exception as error:
                raise failed("running Permit plugin {}", plugin, error) from error
            if status.code is Code.Wait:
                timeouts[plugin.name] = min(timeout_s, MAX_PERMIT_WAIT_S)
                reasons.extend(status.reasons)
            elif not status.is_success:
                return _rejection("running Permit plugin {}", plugin, status), {}
        if timeouts:
            return Status(Code.Wait, (WAITING, *reasons)), timeouts
        return SUCCESS, {}

    def run_pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Run PreBind in order."""
        for plugin in self.pre_binds:
            try:
                answer = plugin.pre_bind(state, pod, node_name)
                status = answer if isinstance(answer, Status) else asyncio.run(_finished(answer))
            except Exception as error:
                raise failed("running PreBind plugin {}", plugin, error) from error
            if not status.is_success:
                return _rejection("running PreBind plugin {}", plugin, status)
        return SUCCESS

    def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Run Bind in order until one does not skip."""
        for plugin in self.binds:
            try:
                status = plugin.bind(state, pod, node_name)
            except Exception as error:
                raise failed("running Bind plugin {}", plugin, error) from error
            if status.code is Code.Skip:
                continue
            return (
                SUCCESS
                if status.is_success
                else _rejection("running Bind plugin {}", plugin, status)
            )
        return SKIP

    def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Tell every PostBind plugin."""
        for plugin in self.post_binds:
            try:
                plugin.post_bind(state, pod, node_name)
            except Exception as error:
                raise failed("running PostBind plugin {}", plugin, error) from error


def _rejection(doing: str, plugin: Plugin, status: Status) -> Status:
    """A rejection as it is; anything else is an error of the plugin."""
    return status.by(plugin.name) if status.is_rejected else failed(doing, plugin, status).status


async def _finished(answer: Awaitable[Status]) -> Status:
    return await answer
