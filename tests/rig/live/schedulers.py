"""Schedulers: a scheduler as a separate process: `bayplan run`, or kube-scheduler from the folder of the binaries.

BAYPLAN_E2E_SCHEDULER=kube-scheduler runs the end-to-end tests with kube-scheduler: the original has
to pass them, too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import yaml

from .client import Tree
from .control_plane import assets_folder
from .processes import Process

BAYPLAN, KUBE_SCHEDULER = "bayplan", "kube-scheduler"


def scheduler_under_test() -> str:
    """The scheduler under test of the end-to-end tests."""
    name = os.environ.get("BAYPLAN_E2E_SCHEDULER") or BAYPLAN
    assert name in (BAYPLAN, KUBE_SCHEDULER), f"BAYPLAN_E2E_SCHEDULER: unknown scheduler {name}"
    return name


def make_config(kubeconfig: Path, **settings: Any) -> Tree:
    """A KubeSchedulerConfiguration for a single scheduler without rate limits."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
        **settings,
    }


def start_scheduler(name: str, config: Tree, folder: Path, *arguments: str) -> Process:
    """Start the scheduler of that name; its configuration and its log go to `folder`, which is new."""
    folder.mkdir(parents=True)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    if name == KUBE_SCHEDULER:
        command = [str(assets_folder() / KUBE_SCHEDULER), "--secure-port=0"]
    else:
        command = [sys.executable, "-m", "bayplan.cli.main", "run", "--secure-port=0"]
    return Process([*command, f"--config={path}", *arguments], folder / f"{name}.log")
