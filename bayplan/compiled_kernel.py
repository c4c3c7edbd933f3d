"""Compiled kernel: whether the extension module of `amounts` can be used. Needs no NumPy: `--version` reads this.

The module contains a digest of the files that it was compiled from (`hatch_build.py` passes it to the compiler). In a
checkout it is compared with the files beside the module, whose times are not reliable: a copied module has a new one.
"""

from __future__ import annotations

import hashlib
import os
from importlib.machinery import PathFinder
from pathlib import Path

MODULE = "bayplan.amounts._kernel"
FOLDER = Path(__file__).parent / "amounts"
SOURCE_SUFFIXES = (".pyx", ".pxi", ".h")
"""A checkout has these files next to the module, an installed package does not."""
BUILD_SCRIPT = "hatch_build.py"
"""Two folders up; it has the flags of the compiler."""
STALE = "the compiled kernel was made from other sources; `make kernel` compiles it"


def why_not_compiled() -> str | None:
    """Reason for not using the compiled kernel; None if it is used."""
    if os.environ.get("BAYPLAN_KERNEL") == "numpy":
        return "BAYPLAN_KERNEL=numpy"
    found = PathFinder.find_spec(MODULE, [str(FOLDER)])
    if found is None or found.origin is None:
        return "it is not compiled"
    return None if is_fresh(Path(found.origin)) else STALE


def is_fresh(module: Path) -> bool:
    """True if the module was compiled from the sources beside it, or if there are none."""
    digest = source_digest(module.parent)
    return digest is None or digest.encode() in module.read_bytes()


def source_digest(folder: Path) -> str | None:
    """Digest of the kernel's sources in `folder` and of the build script, a C identifier; None without sources."""
    sources = sorted(path for path in folder.iterdir() if path.suffix in SOURCE_SUFFIXES)
    if not sources:
        return None
    script = folder.parent.parent / BUILD_SCRIPT
    digest = hashlib.sha256()
    for path in (*sources, *([script] if script.is_file() else [])):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return f"sha256_{digest.hexdigest()}"
