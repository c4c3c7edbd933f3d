"""`bayplan capacity`: output and exit status."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers: [{name: c, image: c, resources: {requests: {cpu: %s, memory: 1Gi}}}]
"""


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(POD % "500m")
    Path("huge.yaml").write_text(POD % "50")
    return "web.yaml"


def capacity(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["capacity", *args, *FILES])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_the_tables(pod: str) -> None:
    out, err = capacity("--pod", pod)

    assert err == ""
    assert out.splitlines()[0] == "after placing 19 of 21 waiting pods"
    assert out.splitlines()[2].split()[:4] == ["web.yaml", "1", "20", "5"]
    assert "    5  Insufficient cpu\n" in out
    assert out.endswith("20 more pods fit; cpu runs out first\n")


def test_pods_that_wait_take_no_room_in_the_cluster_as_it_was_read(pod: str) -> None:
    out, _ = capacity("--pod", pod, "--as-is")

    assert out.startswith("about the cluster as it was read, in which 19 pods wait\n")
    assert int(out.splitlines()[2].split()[2]) > 20


def test_the_document_for_machines(pod: str) -> None:
    out, _ = capacity("--pod", f"{pod}:2", "-o", "json")

    document = json.loads(out)
    assert document["kind"] == "Capacity"
    assert (document["fits"], document["rounds"], document["bottleneck"]) == (20, 10, "cpu")
    assert sum(entry["nodes"] for entry in document["histogram"]) == 7


def test_unknown_fields_of_a_pod_are_remarks_or_refused(pod: str) -> None:
    Path("bad.yaml").write_text(POD.replace("spec:", "spec:\n  nodeSelecter: {a: b}") % "1")
    expected = "bad.yaml: document 1: pod shop/web: spec.nodeSelecter: expected nodeSelector; got an unknown field"

    out, err = capacity("--pod", "bad.yaml", "--lenient", "-o", "json")

    assert err == f"warning: {expected}\n"
    assert json.loads(out)["remarks"] == [expected]
    assert capacity("--pod", "bad.yaml", code=2)[1] == f"error: {expected}\n"


def test_names(pod: str) -> None:
    assert capacity("--pod", pod, "--nodes", "worker-b2", "-o", "name")[0] == "web.yaml 9\n"


def test_not_even_one_ends_with_1(pod: str) -> None:
    out, _ = capacity("--pod", "huge.yaml", code=1)

    assert out.endswith("0 more pods fit; cpu runs out first\n")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(["--pod", "absent.yaml"], "absent.yaml: expected a file", id="no file"),
        pytest.param(
            ["--pod", "web.yaml", "--nodes", "worker-a3"],
            'expected a node of the cluster; got "worker-a3"; did you mean',
            id="no node",
        ),
    ],
)
def test_wrong_input_is_one_line_and_the_status_is_2(
    pod: str, args: list[str], problem: str
) -> None:
    out, err = capacity(*args, code=2)

    assert out == ""
    assert err.startswith(f"error: {problem}")
    assert err.count("\n") == 1


def test_a_quota_ends_the_search_for_a_pod_of_the_namespace_on_standard_input(
    tmp_path: Path,
) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}"
    )
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: 2}}"
    (tmp_path / "quota.yaml").write_text(quota)
    options = ["-n", "quiet", "--pod", "-", "-f", str(tmp_path), *FILES]

    out = CliRunner().invoke(app, ["capacity", *options], input=text).stdout

    assert out.splitlines()[-1].startswith(
        '2 more pods fit; pods "p-copy-3" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2,'
    )
