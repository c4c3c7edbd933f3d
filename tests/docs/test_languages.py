"""Pages in two languages are equal in headings (level, in order) and code blocks."""

import re
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIRST_DAY = ["tutorial", "explain", "what-if", "capacity", "plan", "run", "up", "plugins"]
"""Pages that a user needs on the first day; README has the installation."""
QUESTIONS = [
    "autoscaling",
    "change-request",
    "compare",
    "devices",
    "doctor",
    "gangs",
    "live",
    "measures",
    "nodes-needed",
    "notebook",
    "page",
    "pools",
    "rebalance",
    "record",
    "shadow",
    "simulation",
    "snapshots",
    "storage",
    "upgrade",
    "usage",
]
"""Pages of further questions."""
PAIRS = [
    ("README.md", "README.zh-CN.md"),
    *((f"docs/{name}.md", f"docs/zh/{name}.md") for name in (*FIRST_DAY, *QUESTIONS)),
]
FENCE = r"^(```[^\n]*)\n(.*?)^```"


def levels(text: str) -> list[int]:
    """The level of each heading, in order."""
    return [
        len(marks)
        for marks in re.findall(r"^(#+) ", re.sub(FENCE, "", text, flags=re.M | re.S), re.M)
    ]


def code(text: str) -> list[str]:
    """The code blocks, with their language and title; comments may be translated."""
    blocks = re.findall(FENCE, text, re.M | re.S)
    return [re.sub(r"[ \t]+# .*$", "", f"{head}\n{body}", flags=re.M) for head, body in blocks]


def cells(text: str) -> list[int]:
    """The number of rows of each table, in order."""
    return [len(table.splitlines()) for table in re.findall(r"(?:^\|.*\n)+", text, re.M)]


def in_words(text: str) -> set[str]:
    """Code in the text: commands, options, names."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(FENCE, "", text, flags=re.M | re.S)))


@pytest.fixture(params=PAIRS, ids=lambda pair: pair[1])
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    english, chinese = request.param
    return (ROOT / english).read_text(), (ROOT / chinese).read_text()


def test_both_languages_have_the_same_headings(pair: tuple[str, str]) -> None:
    assert levels(pair[0]) == levels(pair[1])


def test_both_languages_have_the_same_code(pair: tuple[str, str]) -> None:
    for english, chinese in zip_longest(code(pair[0]), code(pair[1])):
        assert chinese == english


def test_both_languages_have_the_same_tables(pair: tuple[str, str]) -> None:
    assert cells(pair[0]) == cells(pair[1])


def test_both_languages_name_the_same_commands_and_fields(pair: tuple[str, str]) -> None:
    assert in_words(pair[1]) == in_words(pair[0])


def test_a_block_that_differs_is_found() -> None:
    assert code("```\na  # one\n```\n") == code("```\na  # 一\n```\n")
    assert code("```\na\n```\n") != code("```\nb\n```\n")
    assert levels("# a\n## b\n```\n# c\n```\n") == [1, 2]
