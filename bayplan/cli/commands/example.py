"""Example: `bayplan example`, files to try the other commands with."""

from __future__ import annotations

import shlex
from pathlib import Path

from ...errors import InputError, os_errors_named
from ..options.option_groups import argument, option

FILES = {
    "cluster.yaml": "cluster.yaml",
    "workload.yaml": "workload.yaml",
    "prefer_zone.py": "prefer_zone.py",
    "most-allocated.yaml": "compare/most-allocated.yaml",
}
"""The files by the names they are written with. The wheel has them in `bayplan/examples`, a checkout in `examples`."""
PACKAGE = Path(__file__).resolve().parents[2]


def example(
    folder: Path = argument("DIR", "Where to write the files. It is made if it is not there."),
    force: bool = option("--force", "Overwrite files that are there."),
) -> None:
    """Write an example to a folder: a cluster, a workload, a plugin and a configuration.

    cluster.yaml has seven nodes and the pods that run there, workload.yaml the pods to place, prefer_zone.py a plugin,
    most-allocated.yaml a scheduler configuration. Files that are there are not overwritten.

    Exit status: 0, or 2 when a file is there already or cannot be written.

    Example: bayplan example demo
    """
    texts = {name: find_example(path).read_text("utf-8") for name, path in FILES.items()}
    _write(folder, texts, force)
    print(f"Wrote {', '.join(FILES)} to {folder}. Try:")
    path = {name: shlex.quote(str(folder / name)) for name in FILES}
    cluster = f"-f {path['cluster.yaml']} -f {path['workload.yaml']}"
    print(f"  bayplan simulate {cluster}")
    print(f"  bayplan explain pod/edge-proxy {cluster}")
    print(f"  bayplan what-if drain worker-a1 {cluster}")
    print(f"  bayplan simulate {cluster} --plugins {path['prefer_zone.py']} --explain")
    print(f"  bayplan compare {cluster} --config {path['most-allocated.yaml']}")


def find_example(path: str) -> Path:
    """An example file: of the installed package, or of the checkout that is installed in editable mode."""
    packaged = PACKAGE / "examples" / path
    for found in (packaged, PACKAGE.parent / "examples" / path):
        if found.is_file():
            return found
    raise InputError(f"{packaged}: expected an example file of the package; got no such file")


def _write(folder: Path, texts: dict[str, str], force: bool) -> None:
    """Write all files, or none when one is there and may not be overwritten."""
    with os_errors_named(folder, "a folder to write to"):
        folder.mkdir(parents=True, exist_ok=True)
        present = [name for name in texts if (folder / name).exists()]
        if present and not force:
            problem = "expected no such files (--force overwrites them); got"
            raise InputError(f"{folder}: {problem} {', '.join(present)}")
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
