"""Answer checks: whether the result of a plugin's method has the type and shape that the extension point requires.

Each check returns the answer, or raises WrongAnswerError with the expected and the found value.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import PluginError
from ..table import Ints
from .status import SKIP, SUCCESS, Code, Status
from .verdict import Verdict


class WrongAnswerError(PluginError):
    """A method of a plugin returned something that has no meaning at its extension point."""


def wrong(expected: str, answer: Any) -> WrongAnswerError:
    """The error about an answer that is not as expected."""
    if inspect.iscoroutine(answer):
        answer.close()  # it is not awaited, and Python would warn
    return WrongAnswerError(f"expected {expected}; got {_shown(answer)}")


def check_status(answer: Any, expected: str = "a Status") -> Status:
    """A Status whose reasons are strings."""
    if answer is SUCCESS or answer is SKIP:  # the usual ones
        return answer
    if not isinstance(answer, Status):
        raise wrong(expected, answer)
    code: Any = answer.code
    if not isinstance(code, Code):
        raise wrong("a Status with a Code", code)
    reasons: Any = answer.reasons
    if type(reasons) is tuple and len(reasons) == 1 and type(reasons[0]) is str:  # the usual one
        return answer
    if not isinstance(reasons, tuple) or not all(isinstance(each, str) for each in reasons):
        raise wrong("a Status whose reasons are a tuple of strings", reasons)
    return answer


def check_pair(answer: Any, first: type, second: type | tuple[type, ...], expected: str) -> Any:
    """A tuple of two values of these types; one of them is a Status, which is checked, too."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise wrong(expected, answer)
    one, other = answer
    if not isinstance(one, first) or not isinstance(other, second):
        raise wrong(expected, answer)
    check_status(one if first is Status else other)
    return answer


def check_verdict(answer: Any, count: int) -> Verdict:
    """A Verdict about `count` rows."""
    if not isinstance(answer, Verdict):
        raise wrong(f"a Verdict about {_nodes(count)}", answer)
    if answer.codes.shape != (count,):
        found = f"one about {_nodes(answer.codes.size)}"
        raise WrongAnswerError(f"expected a Verdict about {_nodes(count)}; got {found}")
    reason: Any
    mask: Any
    for reason, mask in answer.reasons.items():
        if not isinstance(reason, str):
            raise wrong("a reason that is a string", reason)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (count,):
            raise wrong(f'a bool for each of {_nodes(count)} with reason "{reason}"', mask)
    if answer.error is not None:
        check_status(answer.error)
    return answer


def check_scores(answer: Any, count: int, of: str = "node") -> Ints:
    """An int64 for each of `count` rows."""
    is_array = isinstance(answer, np.ndarray)
    if not is_array or answer.dtype != np.int64 or answer.shape != (count,):
        raise wrong(f"an array of int64 with {_counted(count, 'score')}, one per {of}", answer)
    return answer  # type: ignore[no-any-return]  # checked at run time


def check_each_score(answers: Iterable[Any]) -> Ints:
    """The array of scores that are given one by one."""
    scores = []
    for answer in answers:
        if not isinstance(answer, int | np.integer) or isinstance(answer, bool):
            raise wrong("an int as score", answer)
        scores.append(answer)
    return np.array(scores, dtype=np.int64)


def check_nothing(answer: Any) -> None:
    """Not a coroutine, which would never run."""
    if inspect.isawaitable(answer):
        raise wrong("None, from a method that is not async", answer)


def check_type(answer: Any, kind: type | tuple[type, ...], expected: str) -> Any:
    """An answer of one of these types."""
    if not isinstance(answer, kind):
        raise wrong(expected, answer)
    return answer


def _shown(answer: Any) -> str:
    """The answer in a few words."""
    if answer is None or isinstance(answer, bool | int | float | str):
        text = repr(answer)
        return text if len(text) <= 60 else f"{text[:56]} ..."
    if inspect.isawaitable(answer):
        return "a coroutine (the method is async)"
    if isinstance(answer, np.ndarray):
        return f"an array of {answer.dtype} with shape {answer.shape}"
    if isinstance(answer, tuple):
        return f"({', '.join([_shown(each) for each in answer[:4]])}{', ...' if len(answer) > 4 else ''})"
    name = type(answer).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}"


def _nodes(count: int) -> str:
    return _counted(count, "node")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
