"""Status: the result of a plugin for a pod, or for a pod on a node.

Mirrors staging/src/k8s.io/kube-scheduler/framework/interface.go (Code, Status).
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Outcome of one call of a plugin; the numbers are kube-scheduler's."""

    Success = 0
    Error = 1
    Unschedulable = 2
    UnschedulableAndUnresolvable = 3
    Wait = 4
    Skip = 5
    Pending = 6


CODE_NAMES = tuple(code.name for code in Code)
"""By number: `Code.name` takes long to read in Python 3.11."""
REJECTED = frozenset({Code.Unschedulable, Code.UnschedulableAndUnresolvable, Code.Pending})


class Status:
    """A code with reasons and the plugin that returned it. Immutable."""

    __slots__ = ("code", "error", "plugin", "reasons")

    def __init__(
        self,
        code: Code = Code.Success,
        reasons: tuple[str, ...] = (),
        plugin: str = "",
        error: BaseException | None = None,
    ) -> None:
        self.code = code
        self.reasons = reasons
        self.plugin = plugin
        self.error = error

    @property
    def is_success(self) -> bool:
        return not self.code  # Success is 0; this is read for every step of a pod

    @property
    def is_rejected(self) -> bool:
        """The pod does not fit; neither success nor an error."""
        return self.code in REJECTED

    @property
    def message(self) -> str:
        """The reasons as people read them; an error's own text comes first."""
        return ", ".join((str(self.error), *self.reasons) if self.error else self.reasons)

    def by(self, plugin: str) -> Status:
        """The same status with `plugin` as its origin."""
        return Status(self.code, self.reasons, plugin, self.error)

    def merged(self, other: Status) -> Status:
        """Both rejections in one: the graver code, all reasons, the first plugin."""
        if self.is_success:
            return other
        code = max(self.code, other.code)
        return Status(code, (*self.reasons, *other.reasons), self.plugin, self.error or other.error)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        if self.is_success and other.is_success:
            return True
        mine = (self.code, self.reasons, self.plugin, self.error)
        return mine == (other.code, other.reasons, other.plugin, other.error)

    def __hash__(self) -> int:
        return hash((self.code, self.reasons, self.plugin))

    def __repr__(self) -> str:
        origin = f" by {self.plugin}" if self.plugin else ""
        return (
            f"<{self.code.name}{origin}: {self.message}>"
            if self.message
            else f"<{self.code.name}{origin}>"
        )


SUCCESS = Status()
SKIP = Status(Code.Skip)


def unschedulable(*reasons: str) -> Status:
    """The pod does not fit; preemption may help."""
    return Status(Code.Unschedulable, reasons)


def unresolvable(*reasons: str) -> Status:
    """The pod does not fit, and removing other pods would not change that."""
    return Status(Code.UnschedulableAndUnresolvable, reasons)


def pending(*reasons: str) -> Status:
    """The pod has to wait, but the attempt was not wasted: it is retried without backoff."""
    return Status(Code.Pending, reasons)


def wait(*reasons: str) -> Status:
    """Permit only: hold the pod."""
    return Status(Code.Wait, reasons)


def failure(error: BaseException | str) -> Status:
    """An error; whether the pod fits is unknown."""
    if isinstance(error, str):
        return Status(Code.Error, (error,))
    return Status(Code.Error, error=error)
