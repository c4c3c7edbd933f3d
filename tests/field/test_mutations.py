"""Objects with random faults are read or refused with a sentence; they never end in a traceback."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bayplan.cli.main import app

from .mutations import mutated_inputs
from .questions import PACKED, POD

EXAMPLES = int(os.environ.get("BAYPLAN_FIELD_MUTATIONS", "150"))
QUESTIONS = (
    ("simulate",),
    ("simulate", "-o", "json"),
    ("simulate", "--explain"),
    ("explain", "shop/too-big"),
    ("explain", "deployment/shop/web"),
    ("what-if", "drain", "worker-1"),
    ("what-if", "scale", "deployment/shop/web", "5"),
    ("capacity", "--pod", str(POD)),
    ("rebalance",),
    ("compare", "--config", str(PACKED)),
)
DOCUMENTED = (0, 1, 2)


@given(trees=mutated_inputs(), words=st.sampled_from(QUESTIONS))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_a_mutated_object_never_gives_a_traceback(trees: list[Any], words: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": trees}))

        result = CliRunner().invoke(app, [*words, "-f", str(file)])

    assert result.exit_code in DOCUMENTED, result.output
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert "error: " in result.stderr.lower()
