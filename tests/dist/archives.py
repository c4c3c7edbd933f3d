"""Archives: complete contents of an sdist and a wheel, and nothing else.

Every check returns problems as sentences; an empty list means that all is well.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from configparser import ConfigParser
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.metadata import Metadata
from trove_classifiers import classifiers as known_classifiers

PACKAGE = "bayplan"
NOT_IN_SDIST = (".ci/", ".github/")
"""Folders that serve the repository only."""
MADE_FOR_SDIST = {"PKG-INFO"}
PURE_TAG = "py3-none-any"
DIST_INFO = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}


def sdist_problems(sdist: Path, tracked: Collection[str] | None, version: str) -> list[str]:
    """Compares an sdist with the files that git tracks; outside of a checkout (None) only metadata is checked."""
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


def wheel_problems(
    wheel: Path, expected: Collection[str] | None, version: str, extension: str | None = None
) -> list[str]:
    """Compares a wheel with the files it should install (`wheel_files`) and the metadata that a wheel has.

    Expected is None outside of a checkout: only the names of the folders are checked. `extension` is the extension
    module that the wheel should hold; without one it should be a wheel for every Python.
    """
    info = f"{PACKAGE}-{version}.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"{info}METADATA") if f"{info}METADATA" in names else b""
        tags = archive.read(f"{info}WHEEL").decode() if f"{info}WHEEL" in names else ""
    made = {f"{info}{name}" for name in DIST_INFO}
    if extension is not None:
        made.add(extension)
    problems = [
        f"{wheel.name}: {name}: expected {PACKAGE}/ or {info} only"
        for name in sorted(names - made)
        if not name.startswith(f"{PACKAGE}/")
    ]
    if expected is not None:
        problems += _differences(wheel, names, {*expected, *made})
    elif extension is not None and extension not in names:
        problems.append(f"{wheel.name}: {extension}: missing")
    problems += tag_problems(f"{wheel.name}: WHEEL", tags, is_pure=extension is None)
    return problems + metadata_problems(f"{wheel.name}: METADATA", metadata, version)


def tag_problems(where: str, text: str, is_pure: bool) -> list[str]:
    """Whether a wheel is for every Python, or for the one and the platform that it was compiled for."""
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    purelib, tag = fields.get("Root-Is-Purelib", ""), fields.get("Tag", "")
    problems = []
    if purelib != str(is_pure).lower():
        problems.append(f"{where}: Root-Is-Purelib: expected {str(is_pure).lower()}; got {purelib}")
    if is_pure and tag != PURE_TAG:
        problems.append(f"{where}: Tag: expected {PURE_TAG}; got {tag}")
    if not is_pure and (tag.startswith("py3-") or tag.endswith("-any") or "-none-" in tag):
        problems.append(f"{where}: Tag: expected one Python and one platform; got {tag}")
    return problems


def wheel_files(build: Mapping[str, Any], tracked: Collection[str]) -> set[str]:
    """Paths in a wheel of the files that git tracks, by the section [tool.hatch.build.targets.wheel]."""
    roots = build.get("only-include") or build["packages"]
    moved: Mapping[str, str] = build.get("sources", {})
    excluded: Sequence[str] = build.get("exclude", ())
    found = set()
    for name in tracked:
        if any(fnmatch(PurePosixPath(name).name, pattern) for pattern in excluded):
            continue
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
        parser.read_string(archive.read(f"{PACKAGE}-{version}.dist-info/entry_points.txt").decode())
    return sorted(parser["console_scripts"])


def _differences(archive: Path, found: Iterable[str], expected: Iterable[str]) -> list[str]:
    found, expected = set(found), set(expected)
    stray = [
        f"{archive.name}: {name}: stray file; expected only what git tracks"
        for name in sorted(found - expected)
    ]
    return stray + [f"{archive.name}: {name}: missing" for name in sorted(expected - found)]
