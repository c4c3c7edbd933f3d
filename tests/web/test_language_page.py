"""English and Chinese: every text of the page has both, and the reader's language is shown."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from bayplan.web.assembly import SCRIPTS

from .chromium import Tab

Open = Callable[..., Tab]
PAGE = files("bayplan.web").joinpath("page")
TEXT = r'"((?:[^"\\]|\\.)+)"'
SAME = {"Bayplan", "CPU", "CSV", "JSON", "PNG", "Pod", "Pods", "/", "EN", "中文", "English"}
"""Names that are the same in both."""


def chinese() -> dict[str, str]:
    script = PAGE.joinpath("chinese.js").read_text("utf-8")
    return dict(re.findall(rf"^  {TEXT}: {TEXT},$", script, flags=re.MULTILINE))


def scripts() -> str:
    names = [name for name in SCRIPTS if name not in ("chinese.js", "words.js")]
    return "\n".join(PAGE.joinpath(name).read_text("utf-8") for name in names)


def asked_for() -> set[str]:
    """The texts that scripts translate, if they are literals in the call."""
    script = scripts()
    found = set(re.findall(rf"\btr\({TEXT}", script))
    found |= {
        text for pair in re.findall(rf"\btr\([^\"()]*\? {TEXT} : {TEXT}", script) for text in pair
    }
    found |= {text for pair in re.findall(rf"\btold\({TEXT}, {TEXT}\)", script) for text in pair}
    found |= set(re.findall(rf"\btextColumn\(\"\w+\", {TEXT}", script))
    found |= set(re.findall(rf"\bplural\([^\"]*?, {TEXT}", script))
    return found | set(re.findall(rf"\bsign\(\w+, \"\w+\", {TEXT}", script))


def fixed() -> set[str]:
    """The texts of the page before any script."""
    body = PAGE.joinpath("page.html").read_text("utf-8").partition("<body")[2]
    body = body.partition("<noscript>")[0]
    found = {text.strip() for text in re.findall(r">([^<>]+)<", body)}
    return {
        t for t in found | set(re.findall(r'(?:aria-label|title|placeholder)="([^"]+)"', body)) if t
    }


def test_every_text_has_a_translation() -> None:
    assert asked_for() | fixed() > {"Waiting", "No pods", "Copy link", "Workload", "full", "node"}
    assert sorted((asked_for() | fixed()) - set(chinese()) - SAME) == []


def test_every_translation_is_of_a_text_of_the_page() -> None:
    script = scripts() + PAGE.joinpath("page.html").read_text("utf-8")
    told = {"absent", "lost", "pending"}  # states in answers of the server

    assert [text for text in chinese() if text not in script and text not in told] == []


@pytest.mark.parametrize("text", chinese())
def test_translations_have_the_same_values(text: str) -> None:
    values = re.compile(r"\{\w+\}")

    assert sorted(values.findall(chinese()[text])) == sorted(values.findall(text))


def test_the_page_is_in_the_language_of_the_address_and_of_the_choice(
    open_page: Open, example: Path
) -> None:
    tab = open_page(example.as_uri() + "#lang=zh&view=nodes")
    shown = tab.text("#tab-waiting"), tab.text("#view"), tab.run("document.documentElement.lang")

    tab.run("window.isOld = true")
    tab.click("#language [data-value=en]")
    tab.wait_for("!window.isOld && window.bayplan")
    tab.settle()

    assert shown == ("等待2", "图\n节点表\nPod 表", "zh-CN")
    assert tab.text("#tab-waiting") == "Waiting2"
    assert tab.run("bayplan.view") == "nodes", "what was shown is shown again"
    tab.run("localStorage.clear()")


def test_the_language_of_the_browser_is_used(open_page: Open, example: Path) -> None:
    tab = open_page(example)
    agent = json.dumps(tab.run("navigator.userAgent"))
    tab.send("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="zh-CN")

    tab.run("window.isOld = true")
    tab.send("Page.reload")
    tab.wait_for("!window.isOld && window.bayplan")

    assert tab.text("#tab-waiting").startswith("等待")
