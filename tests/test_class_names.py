"""Class names: one name, one thing. No two public classes of the package have the same name."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "bayplan"

PUBLIC = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)

# Names that Kubernetes itself gives to two things.
FORCED = {
    "NodeAffinity": "a field of a pod's affinity, and the plugin that evaluates it",
}


@cache
def public_classes(package: Path) -> dict[str, list[str]]:
    """Return the files of `package` that define each public class at their top level."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for name in PUBLIC.findall(path.read_text("utf-8")):
            found[name].append(path.relative_to(package).as_posix())
    return found


def duplicates(package: Path) -> list[str]:
    """Return each name with more than one class, and their files."""
    return [
        f"{name}: {', '.join(files)}"
        for name, files in sorted(public_classes(package).items())
        if len(files) > 1 and name not in FORCED
    ]


def test_no_two_public_classes_have_the_same_name() -> None:
    assert duplicates(PACKAGE) == []


@pytest.mark.parametrize("name", FORCED)
def test_a_name_on_the_list_occurs_twice(name: str) -> None:
    assert len(public_classes(PACKAGE)[name]) > 1, f"remove {name} from the list"


def test_a_duplicate_is_found(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "a.py").write_text("class Plan: ...\nclass _Own: ...\n")
    (tmp_path / "x" / "b.py").write_text("class Plan: ...\nclass _Own: ...\nclass Other: ...\n")

    assert duplicates(tmp_path) == ["Plan: a.py, x/b.py"]
