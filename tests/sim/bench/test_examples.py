"""The example workload and the one in the documentation run."""

import re
from pathlib import Path

from bayplan.sim.bench.cases import read_cases
from bayplan.sim.bench.measurements import PodRun
from bayplan.sim.bench.op_executor import execute
from bayplan.sim.bench.ops import OPS
from bayplan.sim.bench.workload import Request, make_workload

ROOT = Path(__file__).resolve().parents[3]
DOCS = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")


def test_example_runs() -> None:
    (case,) = read_cases(ROOT / "examples" / "bench" / "training.yaml")

    (measured,) = execute(make_workload(case, Request(case.name, nodes=20, pods=30)))

    assert isinstance(measured, PodRun)
    assert measured.placed == measured.pods == 30


def test_workload_in_the_documentation_runs(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    file = tmp_path / "batch.yaml"
    file.write_text(text)
    (tmp_path / "node.yaml").write_text(
        "{kind: Node, metadata: {name: 'node-{{.Index}}'}, status: {capacity: {cpu: 9, memory: 9Gi, pods: 9}}}"
    )
    (case,) = read_cases(file)

    (measured,) = execute(make_workload(case, Request(case.name, "small", nodes=5, pods=10)))

    assert isinstance(measured, PodRun)
    assert measured.placed == 10


def test_every_op_is_in_the_documentation() -> None:
    for opcode in OPS:
        assert f"| {opcode} |" in DOCS
