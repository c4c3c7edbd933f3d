"""Synthetic: workloads that are drawn from a model instead of read from a trace.

Contents: the document WorkloadModel (`model.py`), its distributions (`distributions.py`), when jobs arrive
and nodes fail (`processes.py`), the manifests made of it (`generator.py`), and a model that is fitted to the pods of
a trace (`fit.py`). Imports: what may enter sim. Never: a clock or a random generator other than that of
the seed. Callers: cli, sweeps, users' scripts.
"""

from .fit import fit_model
from .generator import generate
from .model import parse_model, read_model

__all__ = ["fit_model", "generate", "parse_model", "read_model"]
