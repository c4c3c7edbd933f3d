"""Pod groups on the command line: output, notes and exit status."""

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from bayplan.answers.group_account import PodGroupExplanation
from bayplan.cli.main import app

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GANG = ["-f", str(EXAMPLES / "gang")]
GATES = (
    "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
)
IGNORED = "note: PodGroup objects are ignored without " + GATES


def call(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_simulate_has_a_section_of_groups_with_those_that_wait_first() -> None:
    out, err = call("simulate", *GANG, GATES, code=1)

    section = out.partition("POD GROUPS\n")[2].partition("\n\n")[0].splitlines()
    assert err == ""
    assert section[0::2] == ["research/huge", "research/red", "research/blue", "research/green"]
    assert section[1].startswith("  waits: 8 of 9 members fit in example.com/rack a")
    assert "3 of 4 pod groups started" in out


def test_simulate_has_groups_in_its_document() -> None:
    document = json.loads(call("simulate", *GANG, GATES, "-o", "json", code=1)[0])

    groups = {group["name"]: group for group in document["podGroups"]}
    assert groups["green"]["startedAt"] == pytest.approx(240, abs=15)
    assert groups["huge"]["cause"].startswith("8 of 9 members fit")
    assert document["summary"]["podGroupsStarted"] == 3


@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param(["simulate"], 0, id="simulate"),
        pytest.param(["explain", "pod/red-0-t49z8"], 0, id="explain"),
        pytest.param(["what-if", "cordon", "gpu-a1"], 0, id="what-if"),
        pytest.param(
            ["compare", "--config", str(EXAMPLES / "compare" / "most-allocated.yaml")],
            0,
            id="compare",
        ),
    ],
)
def test_groups_without_their_gates_are_noted(command: list[str], code: int) -> None:
    _, err = call(*command, *GANG, code=code)

    assert IGNORED in err.splitlines()


def test_explain_of_a_group_is_read_back_from_its_document() -> None:
    out, _ = call("explain", "podgroup/research/huge", *GANG, GATES, "-o", "json", code=1)

    account = msgspec.json.decode(out, type=PodGroupExplanation)
    assert account.to_dict() == json.loads(out)
    assert (account.key, account.verdict.value) == ("research/huge", "unschedulable")


def test_explain_of_a_group_that_starts_ends_with_0() -> None:
    out, _ = call("explain", "podgroup/red", "-n", "research", *GANG, GATES)

    assert out.splitlines()[1].startswith("podgroup research/red would start")


def test_explain_of_a_member_names_the_cause_of_the_group_first() -> None:
    out, _ = call("explain", "job/huge", *GANG, GATES, code=1)

    assert any(line.endswith("is pending  (4 of 4 nodes fit)") for line in out.splitlines())
    cause = [
        line for line in out.splitlines() if "pod group huge waits: 2 of 9 members fit" in line
    ]
    assert cause


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(
            ["podgroup/hug", GATES],
            'PodGroup "hug": expected one of the cluster, such as huge; got no such group',
            id="a wrong name",
        ),
        pytest.param(
            ["podgroup/huge", "--node", "gpu-a1", GATES],
            "--node: expected no node for a pod group; got gpu-a1",
            id="a node",
        ),
        pytest.param(
            ["podgroup/huge"],
            "podgroup/huge: pod groups are not scheduled as a whole without "
            "--feature-gates=GenericWorkload=true,GangScheduling=true",
            id="no gates",
        ),
    ],
)
def test_wrong_questions_about_groups(args: list[str], message: str) -> None:
    _, err = call("explain", *args, *GANG, code=2)

    assert f"error: {message}" in err.splitlines()


def test_capacity_counts_gangs() -> None:
    gang = str(EXAMPLES / "capacity" / "gang.yaml")
    cluster = ["-f", str(EXAMPLES / "gang" / "cluster.yaml")]

    out, _ = call("capacity", *cluster, "--pod", gang, GATES)

    assert out.splitlines()[1].split()[1:5] == ["1", "4", "4", "4"]
    assert out.endswith("4 more pod groups fit, 16 pods; example.com/gpu runs out first\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "{kind: Pod, metadata: {name: w}, spec: {containers: [{name: c, image: c}]}}",
            "Pod w: schedulingGroup.podGroupName: expected red; got none",
            id="a pod outside the group",
        ),
        pytest.param("", "expected at least 2 members of PodGroup red; got 0", id="no members"),
    ],
)
def test_a_file_with_half_a_gang_is_refused(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    group = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: red}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
"""
    Path("gang.yaml").write_text(group + text)
    cluster = ["-f", str(EXAMPLES / "gang" / "cluster.yaml")]

    _, err = call("capacity", *cluster, "--pod", "gang.yaml", GATES, code=2)

    assert f"error: gang.yaml: {message}" in err.splitlines()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            "{schedulingPolicy: {gang: {minCount: 0}}}",
            "spec.schedulingPolicy.gang.minCount: Required value",
            id="a minCount of 0",
        ),
        pytest.param(
            "{schedulingPolicy: {gang: {minCount: 2}},"
            " schedulingConstraints: {topology: [{key: a}, {key: b}]}}",
            "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item",
            id="two constraints",
        ),
    ],
)
@pytest.mark.parametrize("command", [["simulate"], ["explain", "podgroup/red"]])
def test_a_group_that_an_api_server_refuses_is_refused_with_its_words(
    spec: str, message: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    head = "apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: red}\n"
    Path("red.yaml").write_text(f"{head}spec: {spec}\n")
    cluster = ["-f", str(EXAMPLES / "gang" / "cluster.yaml"), "-f", "red.yaml"]

    _, err = call(*command, *cluster, GATES, code=2)

    assert err.endswith(f"podgroup default/red: {message}\n")
