"""Conftest: an API server in the process, whose pods do not run."""

from tests.rig.idle_api import api, kubeconfig

__all__ = ["api", "kubeconfig"]
