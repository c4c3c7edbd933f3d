"""The example notebook runs from top to bottom, and its statements hold."""

import os
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook" / "placement.py"


def test_the_notebook_runs_and_its_policy_moves_pods() -> None:
    env = {**os.environ, "MPLBACKEND": "Agg"}

    ran = subprocess.run(
        [sys.executable, str(NOTEBOOK)], capture_output=True, text=True, env=env, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert "node with PreferZone" in ran.stdout
    assert "Empty DataFrame" not in ran.stdout
    assert "emptyNodes" in ran.stdout
    assert "worker-a1 is drained" in ran.stdout
    assert "more pods of half a cpu fit" in ran.stdout
