"""A release is the same one everywhere: version, date and interpreters agree wherever they are written."""

import re
import tomllib
from pathlib import Path

import yaml

from bayplan import __version__

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def newest_release() -> tuple[str, str]:
    """Version and date of the first release of the changelog."""
    found = re.search(r"^## \[(\d[^\]]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert found is not None
    return found[1], found[2]


def test_the_changelog_has_a_section_for_this_version_and_one_for_what_comes_next() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)

    assert headings[:2] == ["Unreleased", __version__]


def test_the_citation_names_the_newest_release() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())

    assert (citation["version"], str(citation["date-released"])) == newest_release()


def test_the_classifiers_name_every_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    named = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]

    assert named == PYTHONS
    assert project["requires-python"] == f">={PYTHONS[0]}"
