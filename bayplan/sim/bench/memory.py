"""Memory: how much of it this process holds."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")
_MIB = 1 << 20


def resident_mib() -> float:
    """What the process holds now, without garbage; where the system does not tell, the most it has held."""
    gc.collect()
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return peak_mib()
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def peak_mib() -> float:
    """The most the process has held so far; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MIB if sys.platform == "darwin" else peak / 1024
