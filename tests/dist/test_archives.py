"""Messages of `make dist` about faulty archives."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .archives import (
    console_scripts,
    metadata_problems,
    sdist_problems,
    wheel_files,
    wheel_problems,
)

VERSION = "1.2.3"
METADATA = """Metadata-Version: 2.4
Name: bayplan
Version: 1.2.3
Classifier: Programming Language :: Python :: 3.11
Requires-Dist: numpy>=2
Description-Content-Type: text/markdown

# Bayplan
"""
TRACKED = [".ci/run", ".github/x.yml", "LICENSE", "bayplan/__init__.py", "bayplan/page.html"]
INSTALLED = ["bayplan/__init__.py", "bayplan/page.html"]
INFO = "bayplan-1.2.3.dist-info"
WHEEL = {
    "bayplan/__init__.py": "",
    "bayplan/page.html": "",
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/RECORD": "",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": "[console_scripts]\nbayplan = bayplan.cli.main:main\n",
    f"{INFO}/licenses/LICENSE": "",
}
EXTENSION = "bayplan/amounts/_kernel.cpython-311-x86_64-linux-gnu.so"
COMPILED = {
    EXTENSION: "",
    f"{INFO}/WHEEL": "Root-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n",
}
SDIST = {"PKG-INFO": METADATA, "LICENSE": "", "bayplan/__init__.py": "", "bayplan/page.html": ""}


def write_wheel(folder: Path, files: Mapping[str, str | None]) -> Path:
    """A wheel with these files; those that are None are left out."""
    path = folder / "it.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            if text is not None:
                archive.writestr(name, text)
    return path


def write_sdist(
    folder: Path, files: Mapping[str, str | None], root: str = "bayplan-1.2.3/"
) -> Path:
    path = folder / "it.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            if text is not None:
                member = tarfile.TarInfo(f"{root}{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        pytest.param({}, [], id="as it should be"),
        pytest.param(
            {"tests/test_a.py": ""},
            [
                f"it.whl: tests/test_a.py: expected bayplan/ or {INFO}/ only",
                "it.whl: tests/test_a.py: stray file; expected only what git tracks",
            ],
            id="a second package",
        ),
        pytest.param(
            {"bayplan/notes.txt": ""},
            ["it.whl: bayplan/notes.txt: stray file; expected only what git tracks"],
            id="a file of the package that git does not track",
        ),
        pytest.param(
            {"bayplan/page.html": None},
            ["it.whl: bayplan/page.html: missing"],
            id="data is missing",
        ),
        pytest.param(
            {f"{INFO}/licenses/LICENSE": None},
            [f"it.whl: {INFO}/licenses/LICENSE: missing"],
            id="the licence is missing",
        ),
    ],
)
def test_contents_of_a_wheel(
    tmp_path: Path, change: dict[str, str | None], problems: list[str]
) -> None:
    wheel = write_wheel(tmp_path, WHEEL | change)

    assert wheel_problems(wheel, INSTALLED, VERSION) == problems


@pytest.mark.parametrize("installed", [INSTALLED, None], ids=["a checkout", "not a checkout"])
@pytest.mark.parametrize(
    ("extension", "change", "problems"),
    [
        pytest.param(EXTENSION, COMPILED, [], id="as it should be"),
        pytest.param(
            EXTENSION,
            COMPILED | {EXTENSION: None},
            [f"it.whl: {EXTENSION}: missing"],
            id="no extension module",
        ),
        pytest.param(
            EXTENSION,
            {EXTENSION: ""},
            [
                "it.whl: WHEEL: Root-Is-Purelib: expected false; got true",
                "it.whl: WHEEL: Tag: expected one Python and one platform; got py3-none-any",
            ],
            id="an extension module in a wheel for every Python",
        ),
        pytest.param(
            None,
            {f"{INFO}/WHEEL": COMPILED[f"{INFO}/WHEEL"]},
            [
                "it.whl: WHEEL: Root-Is-Purelib: expected true; got false",
                "it.whl: WHEEL: Tag: expected py3-none-any; got cp311-cp311-linux_x86_64",
            ],
            id="a pure wheel for one Python only",
        ),
    ],
)
def test_the_kernel_of_a_wheel(
    tmp_path: Path,
    extension: str | None,
    change: dict[str, str | None],
    problems: list[str],
    installed: list[str] | None,
) -> None:
    wheel = write_wheel(tmp_path, WHEEL | change)

    assert wheel_problems(wheel, installed, VERSION, extension) == problems


def test_a_pure_wheel_with_an_extension_module_is_told(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, {**WHEEL, EXTENSION: ""})

    assert wheel_problems(wheel, INSTALLED, VERSION) == [
        f"it.whl: {EXTENSION}: stray file; expected only what git tracks"
    ]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param({"packages": ["bayplan"]}, {"bayplan/a.py"}, id="a package"),
        pytest.param(
            {"only-include": ["bayplan", "examples/b.yaml"], "sources": {"examples": "bayplan/ex"}},
            {"bayplan/a.py", "bayplan/ex/b.yaml"},
            id="files from elsewhere",
        ),
        pytest.param(
            {"packages": ["bayplan"], "exclude": ["*.py"]}, set(), id="files that are left out"
        ),
    ],
)
def test_files_that_a_wheel_should_install(section: dict[str, Any], expected: set[str]) -> None:
    tracked = ["bayplan/a.py", "bayplan.md", "examples/b.yaml", "examples/c.yaml"]

    assert wheel_files(section, tracked) == expected


def test_a_wheel_outside_of_a_checkout_holds_the_package_only(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, {**WHEEL, "tests/test_a.py": ""})

    (problem,) = wheel_problems(wheel, None, VERSION)

    assert problem == f"it.whl: tests/test_a.py: expected bayplan/ or {INFO}/ only"


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        pytest.param({}, [], id="as it should be"),
        pytest.param(
            {"core.1234": ""},
            ["it.tar.gz: core.1234: stray file; expected only what git tracks"],
            id="a stray file",
        ),
        pytest.param({"LICENSE": None}, ["it.tar.gz: LICENSE: missing"], id="a missing file"),
        pytest.param(
            {".ci/run": ""},
            ["it.tar.gz: .ci/run: stray file; expected only what git tracks"],
            id="a file that serves the repository only",
        ),
    ],
)
def test_contents_of_an_sdist(
    tmp_path: Path, change: dict[str, str | None], problems: list[str]
) -> None:
    sdist = write_sdist(tmp_path, SDIST | change)

    assert sdist_problems(sdist, TRACKED, VERSION) == problems


def test_an_sdist_has_one_folder_named_after_the_version(tmp_path: Path) -> None:
    sdist = write_sdist(tmp_path, {"LICENSE": ""}, root="")

    problems = sdist_problems(sdist, None, VERSION)

    assert "it.tar.gz: LICENSE: expected to be below bayplan-1.2.3/" in problems


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        pytest.param(
            "Version: 1.2.3\n",
            "Version: 1.2.4\n",
            "METADATA: Version: expected 1.2.3; got 1.2.4",
            id="another version than the source",
        ),
        pytest.param(
            "Python :: 3.11",
            "Python :: 3.99",
            'METADATA: Classifier: expected one that PyPI accepts; got "Programming Language :: Python :: 3.99"',
            id="a classifier that PyPI refuses",
        ),
        pytest.param(
            "numpy>=2",
            "numpy @ https://example.com/numpy.whl",
            "METADATA: Requires-Dist: expected a version range, which PyPI accepts; "
            "got numpy@ https://example.com/numpy.whl",
            id="a dependency by address, which PyPI refuses",
        ),
        pytest.param(
            "# Bayplan\n",
            "",
            "METADATA: Description: expected the README as text/markdown",
            id="no README",
        ),
    ],
)
def test_metadata(old: str, new: str, problem: str) -> None:
    text = METADATA.replace(old, new)

    found = metadata_problems("METADATA", text.encode(), VERSION)

    assert [each.replace("numpy @", "numpy@") for each in found] == [problem]


def test_metadata_that_an_index_refuses_is_told() -> None:
    problems = metadata_problems("METADATA", METADATA.replace("2.4", "9.9").encode(), VERSION)

    assert problems == ["METADATA: '9.9' is not a valid metadata version"]


def test_console_scripts(tmp_path: Path) -> None:
    assert console_scripts(write_wheel(tmp_path, WHEEL), VERSION) == ["bayplan"]
