"""`bayplan what-if`: output and exit status."""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
ZONE = "topology.kubernetes.io/zone"
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]


def what_if(*args: str, code: int = 0) -> tuple[str, str]:
    """Run the command within this process; returns its output and its complaints."""
    result = CliRunner().invoke(app, ["what-if", *args, *FILES])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_a_drain_of_the_example_as_a_table() -> None:
    out, err = what_if("drain", "worker-a1", code=1)

    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "after placing 19 of 21 waiting pods"
    assert lines[-2] == (
        '  error: unable to drain node "worker-a1" due to error: cannot delete Pods that declare no controller '
        "(use --force to override): infra/registry-0"
    )
    assert lines[-1].endswith("; pending 2 → 2")


def test_a_drain_of_the_example_with_force_ends_well() -> None:
    out, _ = what_if("drain", "worker-a1", "--force", "-o", "name")

    assert {line.split()[0] for line in out.splitlines()} >= {"pod/infra/registry-0"}


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_document_for_machines(form: str) -> None:
    out, _ = what_if("drain", "worker-a1", "--force", "-o", form)

    document = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert (document["apiVersion"], document["kind"]) == ("bayplan.dev/v1", "WhatIf")
    assert document["changes"] == ["drain worker-a1"]
    assert document["drains"][0]["stalls"] == []
    assert document["pods"][0] == {
        "namespace": "infra",
        "name": "registry-0",
        "was": {"state": "running", "node": "worker-a1"},
        "now": document["pods"][0]["now"],
        "why": document["pods"][0]["why"],
        "successor": None,
        "workload": "infra/registry-0",
    }


def test_until_fits_names_those_whom_nothing_helps() -> None:
    out, _ = what_if("add-nodes", "--like", "worker-a1", "--until-fits", code=1)

    lines = out.splitlines()
    assert lines[1] == "no number of nodes like worker-a1 helps"
    assert lines[2].startswith("research/in-memory-index fits on")


def test_a_drain_by_labels_says_how_many_rounds_and_how_long() -> None:
    labels = f"{ZONE}=north-a"
    out, _ = what_if("drain", "-l", labels, "--force", "--start-time", "30s", code=1)

    assert "\n5 pods evicted in 1 round, 30s\n" in out
    assert "no controller recreates it; it counts as created again" in out


def test_a_drain_that_stalls_says_where_and_why(tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    file = tmp_path / "budget.yaml"
    file.write_text(yaml.safe_dump(budget))

    out, _ = what_if("drain", "worker-b*", "--force", "-f", str(file), code=1)

    assert "\nthe drain stops at 4 of 5 pods, after 1 round (1 of 2 nodes empty):\n" in out
    cause = (
        "shop/web allows 1 disruption; its evicted pod shop/web-786ccdc584-9gt29 has no node: 0/7"
    )
    assert f"\n  worker-b2 (1 pod): {cause}" in out


def test_an_upgrade_names_what_is_at_risk() -> None:
    out, _ = what_if("upgrade", "*", "--surge", "2", "--force")

    assert "\n7 of 7 nodes replaced in 4 steps: " in out
    assert "infra/registry-0" in out.partition("AT RISK")[2]
    document = json.loads(what_if("upgrade", "*", "--force", "-o", "json")[0])
    assert len(document["upgrades"][0]["replaced"]) == 7


def test_deleting_nodes_says_that_budgets_are_not_asked() -> None:
    out, _ = what_if("delete", "-l", f"{ZONE}=north-c", code=1)

    assert out.endswith(
        "\nnote: deleting a node does not ask disruption budgets; drain it first to respect them\n"
    )


def test_nodes_until_all_fit_after_a_change() -> None:
    likes = ["--like", "worker-a1", "--like", "worker-b1", "--like", "worker-c1"]
    out, _ = what_if("scale", "deployment/web", "60", "--until-fits", *likes, code=1)

    needed = out.splitlines()[1]
    assert needed.startswith(
        "9 nodes needed: 3 like each of worker-a1, worker-b1, worker-c1 for 43"
    )


def test_nothing_changes() -> None:
    out, _ = what_if("cordon", "worker-a1")

    assert out.splitlines()[-1] == "nothing changes; pending 2 → 2"
    cpu = next(line for line in out.splitlines() if line.startswith("cpu "))
    assert cpu.split()[3:] == ["12→11.1", "44", "11.9", "0.9→1.8"], (
        "what is free there counts apart"
    )


def test_a_change_to_the_cluster_as_it_was_read_meets_its_waiting_pods() -> None:
    out, _ = what_if("cordon", "worker-a1", "--as-is")

    lines = out.splitlines()
    assert lines[0] == "about the cluster as it was read, in which 19 pods wait"
    assert lines[-1].endswith("; pending 19 → 2")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(
            ["drain", "worker-a3"],
            'drain worker-a3: expected a node of the cluster; got "worker-a3"; did you mean worker-a',
            id="a node that is not there",
        ),
        pytest.param(
            ["add-nodes", "2"],
            "add-nodes: expected --like with the name of a node; got none",
            id="like what",
        ),
        pytest.param(
            ["add-nodes", "2", "--like", "worker-a1", "--until-fits"],
            "add-nodes: expected a number or --until-fits; got both",
            id="a number and a search for it",
        ),
        pytest.param(
            ["drain", "worker-a1", "--until-fits"],
            "expected --until-fits and --like; got only --until-fits",
            id="a search without a node to copy",
        ),
        pytest.param(
            ["add-nodes", "--like", "worker-a1", "--fewest"],
            "add-nodes: expected --fewest with --until-fits; got it alone",
            id="the fewest of a given number",
        ),
        pytest.param(
            ["drain", "worker-a1", "--start-time", "30"],
            '--start-time: expected a duration such as 90s, 5m or 1h30m; got "30"',
            id="a time without unit",
        ),
        pytest.param(
            ["upgrade"],
            "upgrade: expected names of nodes or a selector (-l); got neither",
            id="an upgrade of nothing",
        ),
        pytest.param(
            ["cordon", "worker-a1", "--seed", "1", "--config", "absent.yaml"],
            "absent.yaml: ",
            id="a configuration that is not there",
        ),
    ],
)
def test_wrong_input_is_one_line_and_the_status_is_2(args: list[str], problem: str) -> None:
    out, err = what_if(*args, code=2)

    assert out == ""
    assert err.startswith(f"error: {problem}")
    assert err.count("\n") == 1


TOPOLOGY = EXAMPLES / "node-resource-topology"
PATCH = {
    "apiVersion": "bayplan.dev/v1",
    "kind": "WhatIf",
    "changes": [
        {
            "patch": {
                "apiVersion": "topology.node.k8s.io/v1alpha2",
                "kind": "NodeResourceTopology",
                "metadata": {"name": "split"},
                "zones": None,
                "attributes": None,
            }
        }
    ],
}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(["delete", "noderesourcetopology/split"], id="deleted by its kind"),
        pytest.param(["delete", "noderesourcetopologies/split"], id="deleted by its plural"),
        pytest.param(["changes", "changes.yaml"], id="patched by a file"),
    ],
)
def test_an_object_that_a_plugin_reads_is_changed(
    change: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("changes.yaml").write_text(yaml.safe_dump(PATCH))
    trees = yaml.safe_load_all((TOPOLOGY / "cluster.yaml").read_text())
    kept = [tree for tree in trees if tree["metadata"]["name"] != "burstable"]
    Path("cluster.yaml").write_text(yaml.safe_dump_all(kept))
    files = ["-f", "cluster.yaml", "--plugins", str(TOPOLOGY / "topology_match.py")]

    result = CliRunner().invoke(app, ["what-if", *change, *files, "-o", "name"])

    assert result.exit_code == 0, result.output
    assert "pod/default/seven" in result.stdout


def test_unknown_fields_in_a_change_file_are_warnings_remarks_or_errors(tmp_path: Path) -> None:
    patch = {"kind": "Node", "metadata": {"name": "worker-a1"}, "spec": {"unschedulabel": True}}
    document = {"apiVersion": "bayplan.dev/v1", "kind": "WhatIf", "changes": [{"patch": patch}]}
    file = tmp_path / "changes.yaml"
    file.write_text(yaml.safe_dump(document))
    expected = (
        f"{file}: document 1: changes[0].patch[0].spec.unschedulabel: node worker-a1: "
        "expected unschedulable; got an unknown field"
    )

    out, err = what_if("changes", str(file), "--lenient", "-o", "json")
    refused_out, refused = what_if("changes", str(file), code=2)

    assert json.loads(out)["remarks"] == [expected]
    assert err == f"warning: {expected}\n"
    assert (refused_out, refused) == ("", f"error: {expected}\n")


def test_a_patch_of_an_immutable_field_says_so(tmp_path: Path) -> None:
    patch = {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "other"}}},
    }
    document = {"apiVersion": "bayplan.dev/v1", "kind": "WhatIf", "changes": [{"patch": patch}]}
    file = tmp_path / "changes.yaml"
    file.write_text(yaml.safe_dump(document))

    out, err = what_if("changes", str(file), code=2)

    assert out == ""
    assert err.startswith(
        'error: patch deployment/shop/web: Deployment.apps "web" is invalid: spec.selector: '
    )
    assert err.endswith(": field is immutable\n")


def test_pods_that_a_quota_refuses_are_named(tmp_path: Path) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "shop"},
    }
    file = tmp_path / "quota.yaml"
    file.write_text(yaml.safe_dump(quota | {"spec": {"hard": {"count/pods": "5"}}}))

    out, _ = what_if("scale", "deployment/shop/web", "9", "-f", str(file), code=1)

    line = out.splitlines()[-1]
    assert line.startswith("refused: 4 pods of deployment shop/web: pods ")
    assert line.endswith("limited: count/pods=5")


def test_pods_that_a_quota_keeps_from_growing_are_named(tmp_path: Path) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "shop"},
    }
    file = tmp_path / "quota.yaml"
    file.write_text(yaml.safe_dump(quota | {"spec": {"hard": {"requests.cpu": "1"}}}))

    out, _ = what_if("resize", "deployment/shop/web", "cpu=2", "-f", str(file), code=0)

    note = next(line for line in out.splitlines() if line.startswith("note: "))
    assert re.match(
        r"note: \d pods of deployment/shop/web are not resized: exceeded quota: q,", note
    )


ROLLOUT = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        },
    },
}


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(["rollout/web"], id="kind and name"),
        pytest.param(["rollouts/shop/web"], id="plural and namespace"),
        pytest.param(["rollout/web", "-n", "shop"], id="the namespace as an option"),
    ],
)
def test_a_custom_workload_that_is_simulated_can_be_scaled(
    tmp_path: Path, target: list[str]
) -> None:
    owner = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "name": "web",
        "uid": "u",
        "controller": True,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-here", "namespace": "shop", "ownerReferences": [owner]},
        "spec": {"nodeName": "a", "containers": [{"name": "c"}]},
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}},
    }
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([node, ROLLOUT, pod]))

    name, *options = target
    out, _ = what_if("scale", name, "5", *options, "-f", str(file), "-o", "json")

    document = json.loads(out)
    assert document["summary"]["placed"] == 2, "of five pods one was there, and two were made"
    assert {change["why"] for change in document["pods"]} == {"new"}


def test_manifests_are_applied_and_a_stall_is_the_exit_status(tmp_path: Path) -> None:
    new, cluster = tmp_path / "new.yaml", EXAMPLES / "cluster.yaml"
    container = {"name": "c", "image": "web:2", "resources": {"requests": {"cpu": "64"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    huge = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "huge"},
        "spec": spec,
    }
    new.write_text(yaml.safe_dump(huge))
    command = ["what-if", "apply", "-f", str(new), "--cluster", str(cluster)]

    result = CliRunner().invoke(app, command)

    assert result.exit_code == 1, result.output
    assert "deployment/default/huge: stalls at 0 of 1 pod" in result.stdout
    assert "stalls: 1 pod pending: 0/7 nodes are available" in result.stdout


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        pytest.param([], "expected manifests, -f FILE or -k FOLDER; got neither", id="nothing"),
        pytest.param(["-f", "gone.yaml"], "gone.yaml: expected a file or folder", id="no file"),
    ],
)
def test_apply_without_manifests_is_refused(options: list[str], fault: str) -> None:
    cluster = str(EXAMPLES / "cluster.yaml")

    result = CliRunner().invoke(app, ["what-if", "apply", *options, "--cluster", cluster])

    assert result.exit_code == 2
    assert fault in result.stderr


def test_a_file_of_changes_is_still_applied_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "changes.yaml"
    file.write_text("{apiVersion: bayplan.dev/v1, kind: WhatIf, changes: [{cordon: [worker-a1]}]}")

    _, err = what_if("apply", str(file))

    assert "what-if changes reads it" in err
