"""The check of the built site finds dead links and resources from outside."""

import importlib.util
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "docs" / "_site" / "check_site.py"
spec = importlib.util.spec_from_file_location("check_site", CHECK)
assert spec is not None
assert spec.loader is not None
check_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_site)


@pytest.mark.parametrize(
    ("html", "problems"),
    [
        pytest.param('<a href="b.html#here">', [], id="a page and its anchor"),
        pytest.param('<a href="https://example.com">', [], id="a link to another site"),
        pytest.param(
            '<a href="c.html">', ["a.html: links to c.html: no such file"], id="no such page"
        ),
        pytest.param(
            '<a href="b.html#there">',
            ["a.html: links to b.html#there: no such anchor"],
            id="no such anchor",
        ),
        pytest.param(
            '<script src="https://example.com/x.js">',
            ["a.html: loads https://example.com/x.js"],
            id="a script from outside",
        ),
        pytest.param(
            '<link rel="stylesheet" href="//example.com/x.css">',
            ["a.html: loads //example.com/x.css"],
            id="a style sheet from outside",
        ),
        pytest.param(
            '<img src="x.png">', ["a.html: links to x.png: no such file"], id="no picture"
        ),
    ],
)
def test_problems_of_a_page_are_found(html: str, problems: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(html)
    (tmp_path / "b.html").write_text('<h2 id="here">')

    assert check_site.find_problems(tmp_path) == problems


def test_an_empty_site_is_a_problem(tmp_path: Path) -> None:
    assert check_site.find_problems(tmp_path) == [f"{tmp_path}: expected HTML pages; got none"]
