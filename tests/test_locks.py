"""locks/: every package has the version of constraints.txt and a hash, and no address is written."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PIN = re.compile(r"([\w.-]+)==(\S+?)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)\n")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes by name."""
    return {
        canonical(name): (version, rest.count("--hash"))
        for name, version, rest in PIN.findall(text)
    }


def constrained() -> dict[str, str]:
    text = (ROOT / "constraints.txt").read_text()
    return {name: version for name, (version, _) in pins(text).items()}


def names(lock: str) -> set[str]:
    """Names of a lock, with those of the lock it is on top of."""
    text = (ROOT / "locks" / f"{lock}.txt").read_text()
    return {*pins(text), *(names("run") if "-r run.txt\n" in text else ())}


def test_the_locks_together_have_the_pins_of_constraints_txt() -> None:
    locked = {name for file in LOCKS for name in pins(file.read_text())}

    assert locked == constrained().keys()


@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in LOCKS])
def test_a_lock_has_versions_and_hashes_and_nothing_else(file: Path) -> None:
    text, versions = file.read_text(), constrained()
    found = pins(text)

    assert found
    assert {name: version for name, (version, _) in found.items()} == {
        name: versions[name] for name in found
    }
    assert all(count for _, count in found.values())
    rest = PIN.sub("", text).splitlines()
    assert [line for line in rest if not line.startswith("#")] in ([], ["-r run.txt"])
    assert "://" not in text


def test_constraints_txt_has_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()

    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)


def test_the_generator_has_no_address() -> None:
    assert "://" not in (ROOT / "locks" / "generator.py").read_text()


def requirements(*extras: str) -> set[str]:
    """Names that pyproject.toml requires, with extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = (
        project["dependencies"],
        *(project["optional-dependencies"][extra] for extra in extras),
    )
    found = {canonical(re.split(r"[^\w.-]", text)[0]) for one in lists for text in one}
    return found - {"bayplan"}


@pytest.mark.parametrize(
    ("lock", "extras"),
    [
        pytest.param("run", (), id="run"),
        pytest.param("image", ("kube", "dra"), id="image"),
        pytest.param("docs", ("docs",), id="docs"),
        pytest.param(
            "test", ("dev", "dra", "kube", "notebook", "gym", "parquet", "plan", "ray"), id="test"
        ),
    ],
)
def test_a_lock_has_the_requirements_of_pyproject(lock: str, extras: tuple[str, ...]) -> None:
    assert requirements(*extras) <= names(lock)
