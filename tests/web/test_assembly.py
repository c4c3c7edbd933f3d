"""Assembly: one file, nothing loaded from elsewhere, and data cannot become markup."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.web.assembly import SCRIPTS, assemble, embed

PAGE = files("bayplan.web").joinpath("page")


class Elements(HTMLParser):
    """The elements of a page as a browser parses them, with the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.is_inside = tag in ("script", "style")
        if self.is_inside:
            self.texts.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self.is_inside = False

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            tag, before = self.texts[-1]
            self.texts[-1] = (tag, before + data)


def parsed(text: str) -> Elements:
    elements = Elements()
    elements.feed(text)
    elements.close()
    return elements


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("</script><script>alert(1)</script>", id="the end of a script"),
        pytest.param("<!-- <script>", id="a comment, which changes how scripts end"),
        pytest.param("%%SCRIPT%% %%DATA%%", id="a placeholder of the page itself"),
        pytest.param("\u2028\u2029\0\x1b", id="line ends of JavaScript"),
    ],
)
def test_data_stays_data(text: str) -> None:
    data = {"name": text, text: [text]}

    elements = parsed(assemble(data, is_live=False))

    scripts = [dict(attributes) for tag, attributes in elements.found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    (embedded, _) = [body for tag, body in elements.texts if tag == "script"]
    assert json.loads(embedded) == data


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_embedded_json_has_no_angle_and_reads_back(data: Any) -> None:
    text = embed(data)

    assert "<" not in text
    assert json.loads(text) == data


@pytest.mark.parametrize("is_live", [False, True])
def test_the_policy_allows_only_the_page_itself(is_live: bool) -> None:
    text = assemble({}, is_live=is_live)
    elements = parsed(text)
    metas = [a for tag, a in elements.found if tag == "meta"]
    policy = next(a["content"] for a in metas if "http-equiv" in a) or ""
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))

    style = next(body for tag, body in elements.texts if tag == "style")
    script = [body for tag, body in elements.texts if tag == "script"][-1]
    for kind, body in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert allowed[kind] == f"'sha256-{digest}'"
    assert allowed["default-src"] == "'none'"
    assert allowed["connect-src"] == ("'self'" if is_live else "'none'")


def test_nothing_is_loaded_from_elsewhere() -> None:
    elements = parsed(assemble({}, is_live=False))

    links = [a.get("src") or a.get("href") for _, a in elements.found]
    assert [link for link in links if link and not link.startswith(("data:", "#"))] == []
    assert not re.search(r"url\(|@import", PAGE.joinpath("page.css").read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_turn_text_into_markup(name: str) -> None:
    script = PAGE.joinpath(name).read_text()

    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
    assert re.findall(ways, script) == []


def test_every_script_of_the_folder_is_in_the_page() -> None:
    assert {entry.name for entry in PAGE.iterdir() if entry.name.endswith(".js")} == set(SCRIPTS)


@pytest.mark.parametrize("name", ["page.html", "page.css", *SCRIPTS])
def test_files_of_the_page_are_of_a_readable_size(name: str) -> None:
    assert len(PAGE.joinpath(name).read_text().splitlines()) <= 500
