"""Plugin calls: one call to one plugin; its errors are raised with the plugin's name."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import Any, TypeVar

import msgspec
import numpy as np

from ..amounts.domain_rules import DomainRules
from ..amounts.rules import AmountRules
from ..api.pod import Pod
from ..framework import (
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Settled,
    Status,
    Verdict,
)
from ..framework.answer_checks import (
    WrongAnswerError,
    check_each_score,
    check_scores,
    check_status,
    check_verdict,
    wrong,
)
from ..table import Ints, NodeTable, Rows
from .plugin_failures import PluginRunError, failed
from .plugin_times import timed

T = TypeVar("T")

PRE_FILTER_CODES = (
    Code.Success,
    Code.Skip,
    Code.Unschedulable,
    Code.UnschedulableAndUnresolvable,
)
HOOK_TYPES: dict[str, tuple[type, ...]] = {
    "settled": (Settled,),
    "amount_rules": (AmountRules,),
    "row_groups": (list, tuple, DomainRules, type(None)),
    "looks_at": (bool,),
    "normalize": (np.ndarray,),
}
"""Expected return types of the methods by which a plugin declares something."""
PRE_FILTERING = "running PreFilter plugin {}"
FILTERING = "running {} filter plugin"
PRE_SCORING = "running PreScore plugin {}"
SCORING = "running Score plugins: plugin {} failed with"
NORMALIZING = "running Normalize on Score plugins: plugin {} failed with"


def ask_hook(plugin: Plugin, hook: Callable[..., T], *args: Any) -> T:
    """Call a method by which a plugin declares something."""
    try:
        return _checked_hook(hook, hook(*args))
    except Exception as error:  # a plugin may raise anything
        raise _hook_failed(plugin, hook, error) from error


def ask_hooks(hooks: Sequence[tuple[Plugin, Callable[..., T]]], *args: Any) -> list[T]:
    """Call one declaring method of several plugins, given as bound methods. Keys are not checked: see `check_keys`."""
    answers: list[T] = []
    kind = HOOK_TYPES.get(hooks[0][1].__name__, object) if hooks else object
    for plugin, hook in hooks:
        try:
            answer = hook(*args)
            answers.append(answer if isinstance(answer, kind) else _checked_hook(hook, answer))
        except Exception as error:  # a plugin may raise anything
            raise _hook_failed(plugin, hook, error) from error
    return answers


def check_keys(
    hooks: Iterable[tuple[Plugin, Callable[..., Hashable]]], keys: Iterable[Hashable]
) -> None:
    """Raise for the first of some plugins whose key is not hashable."""
    for (plugin, hook), key in zip(hooks, keys, strict=False):
        try:
            _checked_hook(hook, key)
        except WrongAnswerError as error:
            raise _hook_failed(plugin, hook, error) from error


def ask_keys(hooks: Iterable[tuple[Plugin, Callable[..., Hashable]]], table: NodeTable) -> Hashable:
    """Call `cluster_key` of several plugins, given as bound methods."""
    keys: list[Hashable] = []
    for plugin, hook in hooks:
        try:
            key = hook(table)
            # Most are versions, and this is called after every change of an object.
            keys.append(key if type(key) is int else _checked_hook(hook, key))
        except Exception as error:  # a plugin may raise anything
            raise _hook_failed(plugin, hook, error) from error
    return tuple(keys)


def _checked_hook(hook: Callable[..., T], answer: T) -> T:
    """The answer, if it is of the type that belongs to the method; a key must be hashable."""
    kind = HOOK_TYPES.get(hook.__name__)
    if kind is not None:
        if not isinstance(answer, kind):
            names = [each.__name__.replace("NoneType", "None") for each in kind]
            raise wrong(" or ".join(names), answer)
    elif hook.__name__.endswith("_key"):
        try:
            hash(answer)
        except TypeError:
            raise wrong("something hashable", answer) from None
    return answer


def _hook_failed(plugin: Plugin, hook: Callable[..., T], error: Exception) -> PluginRunError:
    failure = failed(f"asking plugin {{}} for {hook.__name__}", plugin, error, hook.__name__)
    failure.is_declaration = True
    return failure


class PodCalls(msgspec.Struct, eq=False):
    """Calls to plugins about one pod."""

    state: CycleState
    pod: Pod
    table: NodeTable

    def pre_filter(self, plugin: PreFilterPlugin) -> Status | PreFilterResult:
        """Run PreFilter of one plugin; a status that is neither success nor refusal is raised."""
        try:
            ask = self._timed("PreFilter", plugin, plugin.pre_filter)
            answer = ask(self.state, self.pod, self.table)
            if isinstance(answer, PreFilterResult):
                _check_names(answer.node_names)
            else:
                check_status(answer, "a Status or a PreFilterResult")
        except Exception as error:  # a plugin may raise anything
            raise failed(PRE_FILTERING, plugin, error, "pre_filter") from error
        if isinstance(answer, Status) and answer.code not in PRE_FILTER_CODES:
            raise failed(PRE_FILTERING, plugin, answer, "pre_filter")
        return answer

    def filter(self, plugin: FilterPlugin, rows: Rows) -> Verdict:
        """Run Filter of one plugin on `rows`."""
        table = self.table
        try:
            ask = self._timed("Filter", plugin, plugin.filter_rows)
            verdict = check_verdict(ask(self.state, self.pod, table, rows), table.count(rows))
        except Exception as error:  # a plugin may raise anything
            raise failed(FILTERING, plugin, error, "filter_rows") from error
        if verdict.error is not None:
            raise failed(FILTERING, plugin, verdict.error, "filter_rows")
        return verdict

    def filter_row(self, plugin: FilterPlugin, row: int) -> Status:
        """Run Filter of one plugin on one node; SUCCESS or a refusal."""
        return ask_filter(plugin, self.state, self.pod, self.table.node_at(row))

    def pre_score(self, plugin: PreScorePlugin, rows: Rows) -> Status:
        """Run PreScore of one plugin: SUCCESS or SKIP."""
        try:
            ask = self._timed("PreScore", plugin, plugin.pre_score)
            status = check_status(ask(self.state, self.pod, self.table, rows))
        except Exception as error:  # a plugin may raise anything
            raise failed(PRE_SCORING, plugin, error, "pre_score") from error
        if status.code is not Code.Success and status.code is not Code.Skip:
            raise failed(PRE_SCORING, plugin, status, "pre_score")
        return status

    def score(self, plugin: ScorePlugin, rows: Rows) -> Ints:
        """Run Score of one plugin on `rows`."""
        table = self.table
        try:
            ask = self._timed("Score", plugin, plugin.score_rows)
            return check_scores(ask(self.state, self.pod, table, rows), table.count(rows))
        except Exception as error:  # a plugin may raise anything
            raise failed(SCORING, plugin, error, "score_rows") from error

    def normalize(self, plugin: ScorePlugin, rows: Rows, raw: Ints) -> Ints:
        """Run NormalizeScore of one plugin; the scores are in range."""
        try:
            ask = self._timed("ScoreExtensionNormalize", plugin, plugin.normalize_rows)
            scores = check_scores(ask(self.state, self.pod, self.table, rows, raw), len(raw))
        except Exception as error:  # a plugin may raise anything
            raise failed(NORMALIZING, plugin, error, "normalize_rows") from error
        check_range(plugin, scores)
        return scores

    def _timed(self, point: str, plugin: Plugin, ask: Callable[..., T]) -> Callable[..., T]:
        """The call, which is timed if it belongs to the sample of pods that are measured."""
        metrics = self.state.sampled_by
        return ask if metrics is None else timed(metrics, point, plugin, ask)


def ask_filter(plugin: FilterPlugin, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
    """Run Filter of one plugin on one node, possibly a what-if; SUCCESS or a refusal."""
    try:
        status = plugin.filter_node(state, pod, node)
        if status is not SUCCESS:
            check_status(status)
    except Exception as error:  # a plugin may raise anything
        raise failed(FILTERING, plugin, error, "filter_node") from error
    if status.code is not Code.Success and not status.is_rejected:
        raise failed(FILTERING, plugin, status, "filter_node")
    return status


def score_nodes(
    plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> Ints:
    """Run Score of one plugin on one node after the other."""
    try:
        return check_each_score(plugin.score_node(state, pod, node) for node in nodes)
    except Exception as error:  # a plugin may raise anything
        raise failed(SCORING, plugin, error, "score_node") from error


def _check_names(names: Any) -> None:
    if not isinstance(names, Set) or not all(isinstance(name, str) for name in names):
        raise wrong("a PreFilterResult with a frozenset of node names", names)


def check_range(plugin: ScorePlugin, scores: Ints) -> None:
    """Raise when a normalised score is below 0 or above 100."""
    # Read as unsigned, a negative number is very large: one comparison finds both.
    if scores.size and scores.view(np.uint64).max() > 100:
        score = int(scores.min() if scores.min() < 0 else scores.max())
        text = f'plugin "{plugin.name}" returns an invalid score {score}, it should in the range of'
        doing = "applying score defaultWeights on Score plugins"
        wrong_score = WrongAnswerError(f"{text} [0, 100] after normalizing")
        method = "normalize_rows" if is_normalized(plugin) else "score_rows"
        raise failed(doing, plugin, wrong_score, method)


def has_own(plugin: Plugin, base: type[Plugin], method: str) -> bool:
    """Whether the plugin brings its own version of `method`."""
    return getattr(type(plugin), method) is not getattr(base, method)


def is_normalized(plugin: ScorePlugin) -> bool:
    """Whether the plugin normalises: raw scores are not the final scores."""
    return has_own(plugin, ScorePlugin, "normalize") or has_own(
        plugin, ScorePlugin, "normalize_rows"
    )


def ignores_repetition(plugin: ScorePlugin) -> bool:
    """Whether `normalize` depends on the set of scores only, not on how often each occurs; tried on samples."""
    if has_own(plugin, ScorePlugin, "normalize_rows"):
        return False  # it depends on the nodes of the scores
    draw = random.Random(0)  # numpy.random takes longer to import than these draws take
    samples = [
        np.zeros(4, np.int64),
        np.array([7, 7]),
        np.array([0, 100, 100]),
        np.arange(101) // 2,
    ]
    for low, high in ((0, 9), (0, 1000), (-50, 51)):
        samples.append(np.array(draw.choices(range(low, high), k=200)))
    return all(_is_the_same_for_each_once(plugin, sample) for sample in samples)


def _is_the_same_for_each_once(plugin: ScorePlugin, scores: Ints) -> bool:
    once, places = np.unique(scores, return_inverse=True)
    try:
        of_all, of_each = plugin.normalize(scores.copy()), plugin.normalize(once.copy())
        return np.array_equal(of_all, of_each[places])
    except Exception:  # `normalize` does not accept the samples: it is called for all nodes
        return False
