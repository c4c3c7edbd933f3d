"""Compiled kernel: whether the extension module of `amounts` can be used. Needs no NumPy, so `--version` can ask."""

from __future__ import annotations

import os
from importlib.machinery import PathFinder
from pathlib import Path

MODULE = "bayplan.amounts._kernel"
FOLDER = Path(__file__).parent / "amounts"
SOURCE_SUFFIXES = (".pyx", ".pxi", ".h")
"""A checkout has these files beside the module, an installed package has not."""
STALE = "the compiled kernel is older than its source; `make kernel` compiles it"


def why_not_compiled() -> str | None:
    """Why the compiled kernel is not used; None when it is."""
    if os.environ.get("BAYPLAN_KERNEL") == "numpy":
        return "BAYPLAN_KERNEL=numpy"
    found = PathFinder.find_spec(MODULE, [str(FOLDER)])
    if found is None or found.origin is None:
        return "it is not compiled"
    compiled_at = Path(found.origin).stat().st_mtime
    sources = (path for path in FOLDER.iterdir() if path.suffix in SOURCE_SUFFIXES)
    return STALE if any(path.stat().st_mtime > compiled_at for path in sources) else None
