"""`make dist`: build sdist and wheel into dist/, check them, try the wheel in an empty environment.

Ends with 0 when all is well, with 1 and the problems when not. Needs Python with `build` and `hatchling`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .archives import console_scripts, sdist_problems, wheel_files, wheel_problems
from .smoke import Environment, SmokeError, check_up, check_without_extras

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
CONSTRAINTS = ROOT / "constraints.txt"


def main() -> int:
    version = source_version()
    try:
        with step("build sdist, and the wheel from it"):
            build()
        sdist = one_archive(f"bayplan-{version}.tar.gz")
        wheel = one_archive(f"bayplan-{version}-*.whl")
        with step("check contents and metadata"):
            check_archives(sdist, wheel, version)
        with tempfile.TemporaryDirectory(prefix="bayplan-dist-") as folder:
            try_out(wheel, version, Path(folder))
    except SmokeError as problem:
        print(f"make dist: {problem}", file=sys.stderr)
        return 1
    print(*(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes" for path in (sdist, wheel)), sep="\n")
    return 0


def check_archives(sdist: Path, wheel: Path, version: str) -> None:
    """Raises a SmokeError with everything that is wrong with their contents and metadata."""
    tracked = tracked_files()
    installed = None
    if tracked is None:
        print("  contents not compared: this folder is not a git checkout")
    else:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        installed = wheel_files(project["tool"]["hatch"]["build"]["targets"]["wheel"], tracked)
    problems = sdist_problems(sdist, tracked, version) + wheel_problems(wheel, installed, version)
    if problems:
        raise SmokeError("\n".join(problems))


def try_out(wheel: Path, version: str, folder: Path) -> None:
    """Uses the wheel, first without extras, then with what a cluster needs."""
    work = folder / "work"
    work.mkdir()
    with step("install the wheel in an empty environment"):
        environment = Environment.make(folder / "venv", work)
        environment.install(str(wheel), CONSTRAINTS)
    with step("simulate, explain, a plugin file, the page"):
        check_without_extras(environment, console_scripts(wheel, version), version)
    with step("install the extra kube"):
        environment.install(f"{wheel}[kube]", CONSTRAINTS)
    with step("up, and requests to it"):
        check_up(environment)


def source_version() -> str:
    text = (ROOT / "bayplan" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.M)
    assert found is not None, "bayplan/__init__.py: expected a line __version__ = ..."
    return found[1]


def build() -> None:
    """Builds in an isolated environment, with the versions of constraints.txt."""
    shutil.rmtree(DIST, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)],
        env={**os.environ, "PIP_CONSTRAINT": str(CONSTRAINTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SmokeError(f"python -m build: exit code {done.returncode}\n{done.stdout}")


def one_archive(pattern: str) -> Path:
    found = list(DIST.glob(pattern))
    if len(found) != 1:
        names = sorted(path.name for path in DIST.iterdir())
        raise SmokeError(f"dist: expected one file {pattern}; got {', '.join(names) or 'none'}")
    return found[0]


def tracked_files() -> list[str] | None:
    """What git tracks and is there; None outside of a checkout."""
    if not (ROOT / ".git").exists():
        return None
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in done.stdout.decode().split("\0") if name]
    return [name for name in names if (ROOT / name).is_file()]


@contextmanager
def step(title: str) -> Iterator[None]:
    print(f"{title} ...", flush=True)
    started = time.monotonic()
    yield
    print(f"  done, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
