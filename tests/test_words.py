"""Words: comments, docstrings, strings, test names and documents avoid the words that the style guide rules out.

Code is described in technical terms, not as a person. Each entry is a pattern for whole words.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SUFFIXES = {".py", ".md", ".js", ".html", ".css", ".yaml", ".toml"}

WORDS = (
    "whoever",
    "whomever",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "who knows",
    "knows",
    "looks",
    "hears of",
    "heard of",
    "draws lots",
    "drawn by lot",
    "(?<!there )is (?-i:none)",  # "a service that is none"; None is a value, and "there is none" is plain
    "in vain",
    "has a say",
    "had a say",
    "makes no sense",
    "pushes out",
    "pushed out",
    "made anew",
    "on its way out",
)
FOUND = re.compile(rf"(?<![\w-])({'|'.join(WORDS)})(?![\w-])", re.IGNORECASE)


HEADLESS = re.compile(
    r"(?:^|[.;:] )(What(?!-if| if)|Who|Whose|How (?:many|much|long|often|far)|None:) [^?]*?(?:[.;:]|$)"
)
"""A sentence of prose that begins with a headless clause, or "None:" where "None if" is meant."""
PROSE = re.compile(r'"""(.*?)"""|#([^\n]*)', re.DOTALL)
"""Docstrings and comments. The tokenizer of Python 3.11 takes seconds for the package."""


def headless(path: Path) -> list[str]:
    """Return where a docstring or comment of `path` has a headless sentence."""
    content = path.read_text(encoding="utf-8")
    found = []
    for prose in PROSE.finditer(content):
        text = " ".join((prose[1] or prose[2] or "").split())
        if hits := HEADLESS.findall(text):
            line = content.count("\n", 0, prose.start()) + 1
            found += [f"{path}:{line}: {hit}" for hit in hits]
    return found


def files_below(place: str) -> list[Path]:
    """Return the text files of a folder, or the file itself; caches and hidden folders are left out."""
    path = ROOT / place
    if path.is_file():
        return [path]
    inside = (file for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES)
    return [
        file
        for file in inside
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(ROOT).parts)
    ]


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text: of Python, the comments, strings and test names; else every line."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(content.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        kind = tokenize.tok_name[token.type]
        if kind in {"COMMENT", "STRING", "FSTRING_MIDDLE"}:
            # a phrase may be wrapped; the line is that of its beginning
            yield token.start[0], " ".join(token.string.split())
        elif kind == "NAME" and token.string.startswith("test_"):
            yield token.start[0], token.string.replace("_", " ")


def findings(path: Path) -> list[str]:
    """Return where `path` has one of the words."""
    if not FOUND.search(" ".join(path.read_text(encoding="utf-8").replace("_", " ").split())):
        return []  # neither in prose nor in code: no need for the tokenizer
    return [
        f"{path.relative_to(ROOT)}:{line}: {match[0]}"
        for line, text in texts_of(path)
        for match in FOUND.finditer(text)
    ]


def is_excluded(path: Path) -> bool:
    """Whether the file is this one, which has the list."""
    return path == Path(__file__)


@pytest.mark.parametrize(
    "place", ["bayplan", "tests", "examples", "deploy", "docs", "pyproject.toml"]
)
def test_folders_stay_clean(place: str) -> None:
    found = [
        finding
        for path in files_below(place)
        if not is_excluded(path)
        for finding in findings(path)
    ]

    assert not found, "\n".join(found)


def test_documents_stay_clean() -> None:
    found = [
        finding
        for path in sorted(ROOT.glob("*.md"))
        if not is_excluded(path)
        for finding in findings(path)
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize("place", ["bayplan", "benchmarks", "tests"])
def test_no_sentence_is_headless(place: str) -> None:
    found = [
        hit
        for path in files_below(place)
        if path.suffix == ".py" and not is_excluded(path)
        for hit in headless(path)
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "is_headless"),
    [
        ("What the plugin waits for.", True),
        ("A status. What it says is shown.", True),
        ("The price. None: unknown.", True),
        ("How many nodes there are.", True),
        ("What if a node goes away?", False),
        ("Events that the plugin waits for. None if it has none.", False),
    ],
)
def test_a_headless_sentence_is_found(text: str, is_headless: bool, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(f'"""{text}"""\n')

    assert bool(headless(tmp_path / "x.py")) is is_headless


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param("x = 1  # nobody reads it\n", 1, id="a comment"),
        pytest.param('"""One.\n\nIt is\nnone.\n"""\n', 1, id="a phrase wrapped in a docstring"),
        pytest.param('\nraise ValueError(f"{x} Knows more")\n', 2, id="a message in another case"),
        pytest.param("def test_whoever_asks(): ...\n", 1, id="the name of a test"),
    ],
)
def test_a_word_is_found(
    source: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "x.py").write_text(source)

    assert [found.rsplit(":", 1)[0] for found in findings(tmp_path / "x.py")] == [f"x.py:{line}"]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("if nobody is None:\n    looks = knows\n", id="code is not prose"),
        pytest.param("x = 'unknowns, overlooks'\n", id="part of a word"),
        pytest.param("# x is None when there is none\n", id="the value None, and an absence"),
    ],
)
def test_other_text_is_not_reported(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "x.py").write_text(source)

    assert findings(tmp_path / "x.py") == []
