"""The pages of the documentation: the navigation names every page, and no link between files is dead."""

import posixpath
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FROM_ROOT = {
    "index.md": "README.md",
    "zh/index.md": "README.zh-CN.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages of the site that are files in the root of the repository (docs/_site/hooks.py)."""


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, in which a tag calls a function."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def pages_in(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_in(item)


def markdown_files() -> list[Path]:
    """The Markdown that git tracks, or everything in an unpacked sdist."""
    found = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = found.stdout.split() if found.returncode == 0 else []
    files = [ROOT / name for name in names] or list(ROOT.rglob("*.md"))
    return [path for path in files if path.is_file() and ".venv" not in path.parts]


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def anchors_of(path: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def problem_of(link: str, path: Path) -> str | None:
    """Fault of a link of the file at `path`; None if it leads somewhere."""
    if re.match(r"[a-z]+:", link):
        return None
    file, _, anchor = link.partition("#")
    if posixpath.isabs(file):
        return f"{link}: expected a relative path; got an absolute one"
    there = (path.parent / file).resolve() if file else path
    if not there.exists() or not there.is_relative_to(ROOT):
        return f"{link}: expected a file of the repository; got none"
    if anchor and there.suffix == ".md" and anchor not in anchors_of(there):
        return f"{link}: expected a heading; got one of {sorted(anchors_of(there))}"
    return None


def dead_links(path: Path) -> list[str]:
    links = re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text()))
    return [problem for link in links if (problem := problem_of(link, path))]


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in markdown_files()]
)
def test_no_link_is_dead(path: Path) -> None:
    assert dead_links(path) == []


def test_the_navigation_names_every_page_once() -> None:
    config = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)
    named = sorted(pages_in(config["nav"]))
    there = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]

    assert named == sorted([*there, *FROM_ROOT])
    assert all((ROOT / source).is_file() for source in FROM_ROOT.values())


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("[a](docs/tutorial.md#what-if)", 0, id="a file and its heading"),
        pytest.param("[a](docs/nowhere.md)", 1, id="a file that does not exist"),
        pytest.param("[a](docs/tutorial.md#nowhere)", 1, id="a heading that does not exist"),
        pytest.param("[a](/docs/tutorial.md)", 1, id="an absolute path"),
        pytest.param("[a](../outside.md)", 1, id="a file outside the repository"),
        pytest.param("`[a](nowhere.md)`", 0, id="code is not a link"),
    ],
)
def test_what_counts_as_a_dead_link(text: str, problems: int) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", without_code(text))

    assert len([1 for link in links if problem_of(link, ROOT / "x.md")]) == problems


def test_pages_that_the_code_names_exist() -> None:
    named = {
        (str(path.relative_to(ROOT)), page)
        for path in (ROOT / "bayplan").rglob("*.py")
        for page in re.findall(r"\bdocs/[\w./-]+\.(?:md|json)", path.read_text())
    }

    assert len(named) > 5
    assert [each for each in sorted(named) if not (ROOT / each[1]).is_file()] == []
