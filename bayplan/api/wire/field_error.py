"""Field error: a fault at a path within an object."""

from collections.abc import Iterable

from ..selectors import Problem


class FieldError(Exception):
    """A fault at a path within one object; decoding adds which object it is."""

    def __init__(self, path: str, fault: str) -> None:
        super().__init__(f"{path}: {fault}" if path else fault)
        self.path = path
        self.fault = fault


def refuse(problems: Iterable[Problem]) -> None:
    """Raise the first of `problems`, if there is one."""
    for path, fault in problems:
        raise FieldError(path, fault)
