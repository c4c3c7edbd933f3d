"""`bayplan simulate --metrics`: the scheduler's counts, in addition to the result."""

from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.rig.trees import pod_tree

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A node, two pods that fit and one that does not, in an otherwise empty working directory."""
    monkeypatch.chdir(tmp_path)
    objects = [NODE, pod_tree("a", "1"), pod_tree("b", "1"), pod_tree("big", "9")]
    Path("all.yaml").write_text(yaml.safe_dump_all(objects))
    return "all.yaml"


def simulate(*args: str, code: int) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["simulate", *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def numbers(text: str, name: str) -> dict[str, float]:
    """The samples of one name, by the values of their labels."""
    return {
        "/".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def test_metrics_go_to_the_file(file: str) -> None:
    out, _ = simulate("-f", file, "-o", "name", "--metrics", "metrics.txt", code=1)

    assert out.splitlines() == [
        "pod/default/a node/n",
        "pod/default/b node/n",
        "pod/default/big -",
    ]
    text = Path("metrics.txt").read_text()
    assert numbers(text, "scheduler_schedule_attempts_total") == {
        "default-scheduler/scheduled": 2,
        "default-scheduler/unschedulable": 1,
    }
    assert numbers(text, "scheduler_pending_pods") == {
        "active": 0,
        "backoff": 0,
        "unschedulable": 1,
        "gated": 0,
    }
    assert numbers(text, "scheduler_cache_size") == {"assumed_pods": 0, "pods": 2, "nodes": 1}


def test_metrics_on_standard_output_follow_the_result(file: str) -> None:
    out, _ = simulate("-f", file, "-o", "name", "--metrics", "-", code=1)

    result, _, metrics = out.partition("# HELP")
    assert result.splitlines()[-1] == "pod/default/big -"
    assert numbers(f"# HELP{metrics}", "scheduler_pod_scheduling_attempts_sum") == {"": 2}


def test_a_file_that_cannot_be_written_is_said_before_the_work(file: str) -> None:
    out, err = simulate("-f", file, "--metrics", "no/such/folder", code=2)

    assert out == ""
    assert "--metrics: no/such/folder: expected a file to write to; got No such file" in err
