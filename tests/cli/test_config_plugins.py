"""`bayplan config plugins`: every plugin with its points, arguments and origin."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.engine import Reason
from bayplan.plugins.in_tree import IN_TREE

POLICIES = [
    "FGD",
    "GpuBestFit",
    "GpuClustering",
    "GpuDotProduct",
    "GpuPacking",
    "GpuRandom",
    "GpuShare",
    "NodeResourcesAlignment",
]
"""Entry points of the package itself."""

MINE = '''
from bayplan.framework import FilterPlugin, SUCCESS


class Mine(FilterPlugin):
    """Likes all nodes."""

    name = "Mine"

    def filter_node(self, state, pod, node):
        return SUCCESS
'''


def run(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["plugins", *args])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def test_the_table_has_a_line_for_each_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run().splitlines()

    assert len(lines) == len(IN_TREE) + len(POLICIES) + 1
    taints = next(line.split() for line in lines if line.startswith("TaintToleration "))
    assert taints == ["TaintToleration", "yes", "3", "filter", "preScore", "score", "in-tree"]
    limits = next(line.split() for line in lines if line.startswith("EBSLimits "))
    assert limits[1:] == ["filter", "in-tree"] or limits[1:] == ["preFilter", "filter", "in-tree"]


def test_wide_has_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run("-o", "wide").splitlines()

    volumes = next(line for line in lines if line.startswith("VolumeBinding "))
    assert '{"bindTimeoutSeconds":600,"shape":null}' in volumes


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_document(form: str) -> None:
    document = json.loads(run("-o", form)) if form == "json" else yaml.safe_load(run("-o", form))

    assert document["kind"] == "PluginList"
    items = {item["name"]: item for item in document["items"]}
    assert items["PodTopologySpread"]["args"] == {
        "defaultConstraints": [],
        "defaultingType": "System",
    }
    assert items["DynamicResources"]["args"] == {"bindingTimeout": "10m0s", "filterTimeout": "10s"}
    assert items["NodeName"]["args"] is None
    assert items["NodeName"]["default"] is True
    assert items["GangScheduling"]["default"] is False
    assert items["Coscheduling"]["customResources"] == ["podgroups.v1alpha1.scheduling.x-k8s.io"]
    assert all(item["extensionPoints"] and item["summary"] for item in items.values())


def test_names() -> None:
    assert run("-o", "name").split() == [*(plugin.name for plugin in IN_TREE), *POLICIES]


def test_plugins_of_a_file_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)

    items = json.loads(run("--plugins", str(file), "-o", "json"))["items"]

    assert items[-1] == {
        "name": "Mine",
        "summary": "Likes all nodes.",
        "source": str(file),
        "extensionPoints": ["filter"],
        "default": False,
        "weight": None,
        "args": None,
        "judged": "all nodes, for every pod",
        "advice": "declare `scope` if the answer depends on less; implement `filter_rows`",
        "customResources": [],
    }


def test_wide_says_how_a_plugin_is_judged_and_what_would_be_faster(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)

    rows = json.loads(run("--plugins", str(file), "-o", "json"))["items"]
    judged = {row["name"]: row["judged"] for row in rows}

    assert judged["NodeResourcesFit"] == "a rule on amounts, in the kernel"
    assert judged["TaintToleration"] == "nodes that changed"
    assert judged["PodTopologySpread"] == "one node of each group, for every pod"
    assert judged["DefaultBinder"] == ""
    wide = run("-o", "wide")
    assert "WOULD BE FASTER" in wide
    assert all(reason.label in wide for reason in Reason)


def test_only_the_plugins_of_a_configuration_are_listed(tmp_path: Path) -> None:
    file, config = tmp_path / "mine.py", tmp_path / "config.yaml"
    file.write_text(MINE)
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}}]\n"
    )

    names = run("--config", str(config), "--plugins", str(file), "-o", "name").split()

    assert "Mine" in names
    assert "NodeAffinity" in names
    assert not {"ImageLocality", "Coscheduling"} & set(names)


def test_a_file_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("import nowhere_to_be_found")

    assert "bad.py:1: ModuleNotFoundError: " in run("--plugins", str(file), code=2)


def test_help_has_an_example() -> None:
    assert "Example: bayplan config plugins" in run("--help")
