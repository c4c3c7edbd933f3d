"""Archives: whether an sdist and a wheel hold what they should, and nothing else.

Every check returns problems as sentences; an empty list means that all is well.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Collection, Iterable, Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata
from trove_classifiers import classifiers as known_classifiers

PACKAGE = "bayplan"
NOT_IN_SDIST = (".ci/", ".github/")
"""Folders that serve the repository only."""
MADE_FOR_SDIST = {"PKG-INFO"}
DIST_INFO = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}


def sdist_problems(sdist: Path, tracked: Collection[str] | None, version: str) -> list[str]:
    """Compares an sdist with the files that git tracks; None: not a checkout, only metadata is checked."""
    root = f"{PACKAGE}-{version}/"
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
        names = [member.name for member in members]
        source = archive.extractfile(f"{root}PKG-INFO") if f"{root}PKG-INFO" in names else None
        metadata = source.read() if source is not None else b""
    problems = [
        f"{sdist.name}: {member.name}: expected a regular file"
        for member in members
        if not member.isfile()
    ]
    problems += [
        f"{sdist.name}: {name}: expected to be below {root}"
        for name in names
        if not name.startswith(root)
    ]
    if tracked is not None:
        expected = {name for name in tracked if not name.startswith(NOT_IN_SDIST)}
        found = {name.removeprefix(root) for name in names}
        problems += _differences(sdist, found, expected | MADE_FOR_SDIST)
    return problems + metadata_problems(f"{sdist.name}: PKG-INFO", metadata, version)


def wheel_problems(wheel: Path, expected: Collection[str] | None, version: str) -> list[str]:
    """Compares a wheel with the files it should install (`wheel_files`) and the metadata that a wheel has.

    None: not a checkout, so only the names of the folders are checked.
    """
    info = f"{PACKAGE}-{version}.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"{info}METADATA") if f"{info}METADATA" in names else b""
    made = {f"{info}{name}" for name in DIST_INFO}
    problems = [
        f"{wheel.name}: {name}: expected {PACKAGE}/ or {info} only"
        for name in sorted(names - made)
        if not name.startswith(f"{PACKAGE}/")
    ]
    if expected is not None:
        problems += _differences(wheel, names, {*expected, *made})
    return problems + metadata_problems(f"{wheel.name}: METADATA", metadata, version)


def wheel_files(build: Mapping[str, Any], tracked: Collection[str]) -> set[str]:
    """Where the files that git tracks are in a wheel, by the section [tool.hatch.build.targets.wheel]."""
    roots = build.get("only-include") or build["packages"]
    moved: Mapping[str, str] = build.get("sources", {})
    found = set()
    for name in tracked:
        if any(name == root or name.startswith(f"{root}/") for root in roots):
            old = next((old for old in moved if name.startswith(f"{old}/")), None)
            found.add(name if old is None else moved[old] + name.removeprefix(old))
    return found


def metadata_problems(where: str, text: bytes, version: str) -> list[str]:
    """Validates core metadata as an index does on upload, and compares the version with the source's."""
    try:
        metadata = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        return [f"{where}: {problem}" for problem in group.exceptions]
    problems = []
    if str(metadata.version) != version:
        problems.append(f"{where}: Version: expected {version}; got {metadata.version}")
    if not metadata.description or metadata.description_content_type != "text/markdown":
        problems.append(f"{where}: Description: expected the README as text/markdown")
    problems += [
        f'{where}: Classifier: expected one that PyPI accepts; got "{name}"'
        for name in metadata.classifiers or []
        if name not in known_classifiers
    ]
    problems += [
        f"{where}: Requires-Dist: expected a version range, which PyPI accepts; got {requirement}"
        for requirement in metadata.requires_dist or []
        if requirement.url is not None
    ]
    return problems


def console_scripts(wheel: Path, version: str) -> list[str]:
    """The commands that the wheel installs."""
    parser = ConfigParser(delimiters=("=",))
    with zipfile.ZipFile(wheel) as archive:
        parser.read_string(
            archive.read(f"{PACKAGE}-{version}.dist-info/entry_points.txt").decode()
        )
    return sorted(parser["console_scripts"])


def _differences(archive: Path, found: Iterable[str], expected: Iterable[str]) -> list[str]:
    found, expected = set(found), set(expected)
    stray = [
        f"{archive.name}: {name}: stray file; expected only what git tracks"
        for name in sorted(found - expected)
    ]
    return stray + [f"{archive.name}: {name}: missing" for name in sorted(expected - found)]
