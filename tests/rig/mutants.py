"""Mutants: the package with one thing broken at a time, and whether the tests see it.

Each is a change of the source in a copy of the package, and must turn a test red: `make mutants` prints a table, and
ends with 1 when one stays green.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[2]
"""The folder of the source; mutants need an editable installation."""
ALWAYS_COPIED = ["bayplan", "pyproject.toml", "hatch_build.py"]
"""The build script belongs to the digest of the compiled kernel, which is not used if that differs."""
FIRST_RED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """Name of the mutation, its file, and the text that is replaced there; it occurs once."""

    what: str
    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Break the copy of the package at `root`."""
        path = root / "bayplan" / self.file
        source = path.read_text("utf-8")
        found = source.count(self.old)
        if found != 1:
            raise LookupError(f"{self.file}: expected {self.old!r} once; got it {found} times")
        path.write_text(source.replace(self.old, self.new), "utf-8")


def dropped(what: str, file: str, line: str) -> Mutant:
    """A statement that is left out."""
    return Mutant(
        what, file, line, "pass" if line.strip() == line else line[: -len(line.lstrip())] + "pass"
    )


@dataclass(frozen=True)
class MutantSuite:
    """Mutants, and the tests that are to see them."""

    mutants: Sequence[Mutant]
    redundant: Mapping[str, str]
    """Mutants that change no decision, with the reason."""
    tests: Sequence[str]
    copied: Sequence[str]
    """Files that the tests need besides the package."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for the tests."""

    @contextmanager
    def copies(self, count: int) -> Iterator[Queue[Path]]:
        """A pool of copies of the package and its quick tests."""
        with tempfile.TemporaryDirectory(prefix="break-it-") as folder:
            free: Queue[Path] = Queue()
            for number in range(count):
                root = Path(folder) / str(number)
                for name in [*ALWAYS_COPIED, *self.copied]:
                    source, target = ROOT / name, root / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if source.is_dir():
                        shutil.copytree(
                            source, target, ignore=shutil.ignore_patterns("__pycache__")
                        )
                    else:
                        shutil.copy(source, target)
                free.put(root)
            yield free

    def first_red(self, root: Path) -> str | None:
        """The first test that fails in a copy; None when all pass."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        own = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        environment = {**os.environ, **own, **self.environment}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *self.tests],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            return None
        found = FIRST_RED.search(done.stdout)
        if found is None:
            return f"pytest ended with {done.returncode}"
        return found[1].partition("::")[2] or found[1]

    def try_mutant(self, mutant: Mutant, free: Queue[Path]) -> str | None:
        """The first test that sees the mutant."""
        root = free.get()
        path = root / "bayplan" / mutant.file
        source = path.read_text("utf-8")
        try:
            mutant.apply(root)
            return self.first_red(root)
        finally:
            path.write_text(source, "utf-8")
            free.put(root)

    def main(self, arguments: list[str] | None = None) -> int:
        """Try all mutants; 1 when one survives, or when the tests are red without any."""
        parser = argparse.ArgumentParser(prog="break_it", description=__doc__)
        parser.add_argument(
            "--only", default="", help="mutants with this text in what is broken, or in the file"
        )
        parser.add_argument(
            "--skip", type=int, default=0, help="leave out so many at the beginning"
        )
        parser.add_argument(
            "--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time"
        )
        given = parser.parse_args(arguments)
        chosen = [m for m in self.mutants if given.only in m.what or given.only in m.file][
            given.skip :
        ]
        survivors = 0
        with self.copies(given.jobs) as free, ThreadPoolExecutor(given.jobs) as pool:
            root = free.get()
            red = self.first_red(root)
            free.put(root)
            if red is not None:
                print(f"red without any mutant: {red}")
                return 1
            for mutant, seen in zip(
                chosen, pool.map(lambda m: self.try_mutant(m, free), chosen), strict=True
            ):
                if seen is None and mutant.what not in self.redundant:
                    survivors += 1
                said = seen or self.redundant.get(mutant.what) or "SURVIVES"
                print(f"{mutant.file.rpartition('/')[2]:16} {mutant.what:62} {said}", flush=True)
        print(f"{len(chosen)} mutants, {survivors} survive")
        return 1 if survivors else 0
