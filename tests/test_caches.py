"""Caches: one class, counted by name, and a table in docs/engine.md that names each."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.observe.scheduler_metrics import SchedulerMetrics
from bayplan.stamped_cache import Budget, BudgetedCache, StampedCache, counts_of

ROOT = Path(__file__).resolve().parent.parent
CLASSES = {"StampedCache", "BudgetedCache"}


def made_in_source() -> Iterator[tuple[str, str]]:
    """The name of each cache, and the file that makes it."""
    for path in sorted((ROOT / "bayplan").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "Cache(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLASSES:
                name = node.args[0]
                assert isinstance(name, ast.Constant), f"{path}: a cache without a literal name"
                yield str(name.value), path.relative_to(ROOT).as_posix()


def test_the_table_of_caches_is_that_of_the_source() -> None:
    made = list(made_in_source())
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    table = text[text.index("## The caches") : text.index("| by row |")]
    listed = re.findall(r"^\| ([a-z ]+), `([^`]+)` \|", table, re.MULTILINE)

    assert sorted(name for name, _ in made) == sorted(name for name, _ in listed)
    files = dict(made)
    assert all(files[name].endswith(file) for name, file in listed)
    for test in re.findall(r"`(tests/[^`]+\.py)`", text[text.index("## The caches") :]):
        assert (ROOT / test).exists(), test


DECIDING = ("amounts", "cache", "engine", "framework", "plugins", "queue", "runtime", "table")
"""Folders of code that is called for a decision."""


def memoized(source: str) -> Iterator[tuple[str, list[str]]]:
    """The functions whose answers `functools` keeps, and the types of their parameters."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and any(
            re.match(r"(functools\.)?(lru_)?cache\b", ast.unparse(each))
            for each in node.decorator_list
        ):
            kinds = [each.annotation for each in node.args.args]
            yield node.name, [ast.unparse(kind) if kind else "" for kind in kinds]


def test_functools_keeps_only_what_is_read_from_one_value() -> None:
    sources = [path for folder in DECIDING for path in (ROOT / "bayplan" / folder).rglob("*.py")]
    found = [each for path in sources for each in memoized(path.read_text(encoding="utf-8"))]

    assert found, "some texts are parsed once"
    others = [(name, kinds) for name, kinds in found if kinds not in (["str"], ["datetime"])]
    assert not others, "answers that may become stale belong in a StampedCache"


def test_an_answer_is_valid_for_its_stamp() -> None:
    cache: StampedCache[str, int] = StampedCache("test stamp")
    assert cache.get("a", 1) is None
    assert cache.put("a", 7) == 7
    assert cache.get("a", 1) == 7
    assert cache.get("a", 2) is None, "the stamp changed"
    assert cache.get("a", 1) is None, "nothing of a former stamp comes back"


def test_a_full_cache_drops_its_answers() -> None:
    cache: StampedCache[int, int] = StampedCache("test limit", 2)
    for key in range(3):
        cache.put(key, key)

    assert [cache.get(key) for key in range(3)] == [None, None, 2]
    assert len(cache) == 1


def test_caches_of_one_budget_share_its_room() -> None:
    budget = Budget(10)
    first: BudgetedCache[str, int] = BudgetedCache("test first", budget)
    second: BudgetedCache[str, int] = BudgetedCache("test second", budget)
    first.put("a", 1, 4)
    second.put("a", 2, 4)
    assert (first.get("a"), second.get("a")) == (1, 2)
    first.put("b", 3, 4)

    assert first.get("b") == 3
    assert sorted((first.get("a") or 0, second.get("a") or 0)) in ([0, 1], [0, 2])
    first.put("c", 4, 11)
    assert (first.get("b"), first.get("c")) == (None, 4), "too large for the room, but needed now"
    budget.drop()
    assert first.get("c") is None


def test_answers_in_turn_that_are_a_few_too_many_are_found_mostly() -> None:
    counts = counts_of("test turns")
    cache: BudgetedCache[int, int] = BudgetedCache("test turns", Budget(100))
    for key in (key for _ in range(20) for key in range(110)):
        if cache.get(key) is None:
            cache.put(key, key, 1)

    assert counts.hits > 0.6 * (counts.hits + counts.misses)


def test_hits_misses_and_drops_are_counted_by_name() -> None:
    metrics = SchedulerMetrics()
    for _ in range(2):  # two caches of one name are counted together
        cache: StampedCache[str, int] = StampedCache("test counts")
        cache.get("a")
        cache.put("a", 1)
        cache.get("a")
        cache.get("a")
        cache.get("a", 1)

    counts = counts_of("test counts")
    assert (counts.hits, counts.misses, counts.drops) == (4, 4, 2)
    text = metrics.render()
    assert 'bayplan_cache_events_total{cache="test counts",event="hit"} 4' in text
    assert 'bayplan_cache_events_total{cache="test counts",event="drop"} 2' in text
    assert 'cache="test counts",event="hit"} 4' not in SchedulerMetrics().render()


@pytest.mark.parametrize("name", ["lru_cache", "cache"])
def test_the_engine_remembers_nothing_elsewhere(name: str) -> None:
    for path in (ROOT / "bayplan" / "engine").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert name not in names, path
