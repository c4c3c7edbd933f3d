"""Documents for developers: a map of limited length, a page per decision, a changelog of short lines."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "decisions").glob("*.md"))
HEADINGS = ["Context", "Decision", "Consequences", "What would change it"]


def files_named(text: str) -> set[str]:
    """Paths of files in `text` that are written as code, with a folder in front."""
    return set(re.findall(r"`((?:\w+/)+\w+\.(?:py|pyx|pxi|txt|md))`", text))


def exists(path: str) -> bool:
    """True if the repository has `path`, from its root or as the end of a path in the package."""
    if (ROOT / path).exists() or (ROOT / "bayplan" / path).exists():
        return True
    return any(ROOT.glob(f"bayplan/*/{path}")) or any(ROOT.glob(f"bayplan/*/*/{path}"))


def test_the_map_is_short_and_lists_every_decision() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()

    assert len(text.split()) <= 2500
    assert re.findall(r"\(docs/decisions/([^)]+)\)", text) == [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_has_its_four_parts(page: Path) -> None:
    text = page.read_text()

    assert re.findall(r"^## (.*)$", text, re.M) == HEADINGS
    assert text.startswith(f"# {page.name[:4]}. ")
    assert len(text.split()) <= 500


@pytest.mark.parametrize(
    "page",
    [*(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/engine.md")), *PAGES],
    ids=lambda p: p.stem,
)
def test_files_that_a_page_names_exist(page: Path) -> None:
    assert [path for path in sorted(files_named(page.read_text())) if not exists(path)] == []


def test_lines_of_the_changelog_are_short() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()

    assert [number for number, line in enumerate(lines, 1) if len(line) >= 200] == []
