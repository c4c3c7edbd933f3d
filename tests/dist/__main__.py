"""`make dist`: build sdist and wheel into dist/, check them, try the wheel in an empty environment.

The wheel holds the compiled kernel if it can be compiled here. The pure wheel, for installations without a compiler, is
built beside it and tried, too. Ends with 0 when all is well, with 1 and the problems when not. Needs Python with what
pyproject.toml requires for building, and `build`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hatch_build

from .archives import console_scripts, sdist_problems, wheel_files, wheel_problems
from .smoke import Environment, SmokeError, check_kernel, check_up, check_without_extras

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
LOCKS = ROOT / "locks"


COMPILED, PURE = "compiled", "NumPy"
"""The kernels, as `bayplan --version` names them."""


def main() -> int:
    version = source_version()
    kernel = kernel_to_expect()
    try:
        with step("build sdist, and the wheel from it"):
            shutil.rmtree(DIST, ignore_errors=True)
            build(ROOT, DIST, kernel)
        sdist = one_archive(DIST, f"bayplan-{version}.tar.gz")
        wheel = one_archive(DIST, f"bayplan-{version}-*.whl")
        with step("check contents and metadata"):
            check_archives(sdist, wheel, version, kernel)
        with tempfile.TemporaryDirectory(prefix="bayplan-dist-") as folder:
            environment = try_out(wheel, version, kernel, Path(folder))
            if kernel != PURE:
                try_pure_wheel(sdist, version, Path(folder) / "pure", environment)
    except SmokeError as problem:
        print(f"make dist: {problem}", file=sys.stderr)
        return 1
    print(
        *(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes" for path in (sdist, wheel)),
        sep="\n",
    )
    return 0


def kernel_to_expect() -> str:
    """The compiled kernel, if it can be compiled here."""
    missing = hatch_build.missing_part()
    if missing is None:
        return COMPILED
    print(f"kernel: {missing}: the wheel is pure Python", flush=True)
    return PURE


def check_archives(sdist: Path, wheel: Path, version: str, kernel: str) -> None:
    """Raises a SmokeError with everything that is wrong with their contents and metadata."""
    tracked = tracked_files()
    installed = None
    if tracked is None:
        print("  contents not compared: this folder is not a git checkout")
    else:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        installed = wheel_files(project["tool"]["hatch"]["build"]["targets"]["wheel"], tracked)
    extension = hatch_build.extension_path() if kernel == COMPILED else None
    problems = sdist_problems(sdist, tracked, version)
    problems += wheel_problems(wheel, installed, version, extension)
    if problems:
        raise SmokeError("\n".join(problems))


def try_out(wheel: Path, version: str, kernel: str, folder: Path) -> Environment:
    """Uses the wheel, first without extras, then with those for a cluster."""
    work = folder / "work"
    work.mkdir()
    with step("install the wheel in an empty environment"):
        environment = Environment.make(folder / "venv", work)
        environment.install(str(wheel), LOCKS / "run.txt")
    with step("simulate, explain, a plugin file, the page"):
        check_without_extras(environment, console_scripts(wheel, version), version, kernel)
    with step("install the extra kube"):
        environment.install(f"{wheel}[kube]", LOCKS / "image.txt")
    with step("up, and requests to it"):
        check_up(environment)
    return environment


def try_pure_wheel(sdist: Path, version: str, folder: Path, environment: Environment) -> None:
    """Builds the wheel as where there is no compiler, and puts it in the place of the other one."""
    with step("build and try the wheel without the compiled kernel"):
        folder.mkdir()
        build(unpacked(sdist, folder), folder, PURE, "--wheel")
        pure = one_archive(folder, f"bayplan-{version}-*.whl")
        check_archives(sdist, pure, version, PURE)
        environment.pip("--no-index", "--force-reinstall", "--no-deps", str(pure))
        check_kernel(environment, version, PURE)


def unpacked(sdist: Path, folder: Path) -> Path:
    """The source that an sdist holds."""
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # new in Python 3.11.4
        archive.extractall(folder)
    return folder / sdist.name.removesuffix(".tar.gz")


def source_version() -> str:
    text = (ROOT / "bayplan" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.M)
    assert found is not None, "bayplan/__init__.py: expected a line __version__ = ..."
    return found[1]


def build(source: Path, folder: Path, kernel: str, *options: str) -> None:
    """Builds with the packages of this environment, which `make dist` installs."""
    wanted = {hatch_build.VARIABLE: "require" if kernel == COMPILED else "skip"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--no-isolation",
            *options,
            "--outdir",
            str(folder),
            str(source),
        ],
        env={**os.environ, **wanted},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SmokeError(f"python -m build: exit code {done.returncode}\n{done.stdout}")


def one_archive(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        names = sorted(path.name for path in folder.iterdir())
        raise SmokeError(
            f"{folder.name}: expected one file {pattern}; got {', '.join(names) or 'none'}"
        )
    return found[0]


def tracked_files() -> list[str] | None:
    """Existing files that git tracks; None outside of a checkout."""
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
