"""`snapshot -f`: files as a snapshot, in YAML, JSON and columns."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bayplan.api.wire.encode import to_dict
from bayplan.cli.main import app
from bayplan.sim import read_manifests

EXAMPLES = Path(__file__).parents[3] / "examples"
CLUSTER = str(EXAMPLES / "cluster.yaml")
TIMELINE = "apiVersion: bayplan.dev/v1\nkind: Timeline\nevents: [{at: 1m, remove: [node/a]}]\n"


def snapshot(*args: str) -> Result:
    return CliRunner().invoke(app, ["snapshot", *args])


@pytest.mark.parametrize("name", ["c.yaml", "c.json", "c.bay", "c.bay.gz"])
def test_every_form_has_the_same_objects(name: str, tmp_path: Path) -> None:
    target = tmp_path / name

    assert snapshot("-f", CLUSTER, "--to", str(target)).exit_code == 0

    found, given = read_manifests([target]).objects, read_manifests([CLUSTER]).objects
    assert [to_dict(obj) for obj in found] == [to_dict(obj) for obj in given]  # type: ignore[arg-type]  # no timeline


GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: red, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: default, annotations: {bayplan.dev/kubernetes-version: v1.37.0}}
---
apiVersion: v1
kind: Node
metadata: {name: a}
"""


@pytest.mark.parametrize("command", ["snapshot", "simulate"])
@pytest.mark.parametrize("name", ["c.json", "c.bay"])
def test_groups_keep_the_version_of_their_release(command: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "given.yaml").write_text(GROUP)

    for given, target in (("given.yaml", name), (name, "again.json")):
        files = ["-f", str(tmp_path / given), "--to", str(tmp_path / target)]
        assert CliRunner().invoke(app, [command, *files]).exit_code == 0

    assert '"scheduling.k8s.io/v1beta1"' in (tmp_path / "again.json").read_text()


def test_columns_go_to_standard_output_with_their_option(tmp_path: Path) -> None:
    result = snapshot("-f", CLUSTER, "-o", "bay")

    (tmp_path / "c.bay").write_bytes(result.stdout_bytes)
    assert len(read_manifests([tmp_path]).objects) == len(read_manifests([CLUSTER]).objects)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        pytest.param(
            ["-o", "json", "--to", "c.bay"],
            "-o: expected bay, for a file of that name; got json",
            id="another form than the name's",
        ),
        pytest.param(
            ["-n", "shop"],
            "-f: expected no --kubeconfig, --context or -n with it; got one",
            id="a part of a live cluster",
        ),
    ],
)
def test_contradictions_are_refused(options: list[str], fault: str) -> None:
    result = snapshot("-f", CLUSTER, *options)

    assert (result.exit_code, result.stderr) == (2, f"error: {fault}\n")


def test_a_timeline_is_no_part_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TIMELINE)

    result = snapshot("-f", CLUSTER, "-f", str(tmp_path / "t.yaml"))

    assert result.exit_code == 2
    assert "t.yaml: document 1: expected an object of a cluster; got a Timeline" in result.stderr
