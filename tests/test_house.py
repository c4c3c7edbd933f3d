"""The house: sizes of files and folders, names of modules, and the length of the engine's glossary."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "bayplan"
MOST_LINES = 500
MOST_FILES = 40
MOST_DOUBLED = 45
MOST_GERUNDS = 15
MOST_WORDS = 15


def modules() -> list[Path]:
    """The modules of the package that are not the front of a folder."""
    return [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]


def test_no_file_of_the_package_is_long() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}

    assert {path.as_posix(): count for path, count in lengths.items() if count > MOST_LINES} == {}


def test_no_folder_of_the_package_has_many_files() -> None:
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py"))

    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_few_file_names_occur_more_than_once() -> None:
    counts = Counter(path.name for path in modules())
    doubled = sorted(name for name, count in counts.items() if count > 1)

    assert len(doubled) <= MOST_DOUBLED, doubled


def test_few_modules_are_gerunds() -> None:
    gerunds = sorted(path.stem for path in modules() if path.stem.endswith("ing"))

    assert len(gerunds) <= MOST_GERUNDS, gerunds


def test_the_glossary_of_the_engine_is_short() -> None:
    source = (PACKAGE / "engine" / "__init__.py").read_text("utf-8")
    words = re.findall(r"^- ([\w ]+):", ast.get_docstring(ast.parse(source)) or "", re.M)

    assert 0 < len(words) <= MOST_WORDS, words
