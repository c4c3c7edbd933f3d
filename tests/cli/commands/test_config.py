"""`bayplan config`: output, its streams, and exit status."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.choices import PROVIDER_NAMES
from bayplan.cli.main import app
from bayplan.cli.options.option_groups import completing

GROUP = "kubescheduler.config.k8s.io"


pytestmark = pytest.mark.usefixtures("folder")


def write(name: str, data: dict[str, Any]) -> str:
    Path(name).write_text(json.dumps(data) if name.endswith("json") else yaml.safe_dump(data))
    return name


def component(version: str = "v1", **fields: Any) -> dict[str, Any]:
    head = {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration"}
    return {**head, **fields}


def policy(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Policy", **fields}


MINE = """
from bayplan.framework import SUCCESS, FilterPlugin


class Mine(FilterPlugin):
    name = "Mine"

    def filter_node(self, state, pod, node):
        return SUCCESS
"""
SMALL_POLICY = policy(
    predicates=[{"name": "HostName"}], priorities=[{"name": "ImageLocalityPriority", "weight": 4}]
)


def run(*args: str, code: int = 0, stdin: str | None = None) -> tuple[str, str]:
    """Run the command within this process; returns its output and its complaints."""
    result = CliRunner().invoke(app, ["config", *args], input=stdin)
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_show_prints_settings_plugins_and_arguments() -> None:
    out, err = run("show")

    assert err == ""
    rows = [line.split() for line in out.splitlines()]
    assert ["parallelism", "16"] in rows
    assert ["leaderElection.leaseDuration", "15s"] in rows
    assert ["PROFILE", "default-scheduler"] in rows
    assert ["queueSort", "PrioritySort"] in rows
    assert ["score", "TaintToleration", "3"] in rows
    assert ["VolumeBinding", "bindTimeoutSeconds", "600"] in rows


@pytest.mark.parametrize(
    ("form", "load"), [pytest.param("yaml", yaml.safe_load, id="YAML"), ("json", json.loads)]
)
def test_show_as_a_document(form: str, load: Any) -> None:
    score = {"enabled": [{"name": "ImageLocality", "weight": 8}]}
    file = write("s.yaml", component(profiles=[{"plugins": {"score": score}}]))

    out, _ = run("show", "--config", file, "-o", form)

    document = load(out)
    assert document["kind"] == "EffectiveConfiguration"
    assert document["configuration"]["parallelism"] == 16
    (profile,) = document["profiles"]
    assert profile["plugins"]["score"][0] == {"name": "ImageLocality", "weight": 8}
    assert profile["plugins"]["bind"] == [{"name": "DefaultBinder"}]
    assert profile["pluginConfig"]["VolumeBinding"]["bindTimeoutSeconds"] == 600


def test_show_orders_extenders_and_names_what_they_look_after() -> None:
    managed = [{"name": "example.com/a", "ignoredByScheduler": True}]
    extenders = [
        {"urlPrefix": "http://late", "ignorable": True, "managedResources": managed},
        {"urlPrefix": "http://early"},
    ]
    file = write("s.yaml", component(extenders=extenders))

    out, _ = run("show", "--config", file, "-o", "json")

    document = json.loads(out)
    assert document["extenders"] == ["http://early", "http://late"]
    fit = document["profiles"][0]["pluginConfig"]["NodeResourcesFit"]
    assert fit["ignoredResources"] == ["example.com/a"]
    table, _ = run("show", "--config", file)
    assert table.splitlines()[-3:] == ["EXTENDERS", "http://early", "http://late"]


@pytest.mark.parametrize(
    ("name", "data", "scorers"),
    [
        pytest.param("s.yaml", component("v1beta2"), 7, id="v1beta2"),
        pytest.param("s.yaml", component("v1beta3"), 8, id="v1beta3"),
        pytest.param("p.json", SMALL_POLICY, 1, id="a policy"),
        pytest.param(
            "m.yaml",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "data": {"policy.cfg": json.dumps(SMALL_POLICY)},
            },
            1,
            id="a ConfigMap",
        ),
        pytest.param("s.yaml", component("v1beta1"), 8, id="v1beta1"),
    ],
)
def test_show_takes_every_generation(name: str, data: dict[str, Any], scorers: int) -> None:
    out, _ = run("show", "--config", write(name, data), "-o", "json")

    assert len(json.loads(out)["profiles"][0]["plugins"]["score"]) == scorers


def test_show_reads_standard_input() -> None:
    out, _ = run("show", "--config", "-", "-o", "json", stdin=json.dumps(component(parallelism=3)))

    assert json.loads(out)["configuration"]["parallelism"] == 3


@pytest.mark.parametrize("provider", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_show_takes_a_provider(provider: str) -> None:
    out, _ = run("show", "--algorithm-provider", provider, "-o", "json")

    scorers = [ref["name"] for ref in json.loads(out)["profiles"][0]["plugins"]["score"]]
    kind = "Least" if provider == "DefaultProvider" else "Most"
    assert f"NodeResources{kind}Allocated" in scorers


def test_show_takes_feature_gates() -> None:
    out, _ = run(
        "show", "--feature-gates", "GenericWorkload=true,GangScheduling=true", "-o", "json"
    )

    plugins = json.loads(out)["profiles"][0]["plugins"]
    assert {"name": "GangScheduling"} in plugins["permit"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(
            ["show", "--algorithm-provider", "Best"],
            "error: algorithm provider: expected DefaultProvider or ClusterAutoscalerProvider; "
            'got "Best"',
            id="no such provider",
        ),
        pytest.param(
            ["show", "--config", "absent.yaml"],
            "error: absent.yaml: expected a readable file; got No such file or directory",
            id="no such file",
        ),
        pytest.param(
            ["show", "--config", "x", "--algorithm-provider", "DefaultProvider"],
            "error: expected a file or --algorithm-provider; got both",
            id="two sources",
        ),
        pytest.param(
            ["show", "--feature-gates", "SidecarContainers=false"],
            "error: --feature-gates: cannot set feature gate SidecarContainers to false, feature is "
            "locked to true",
            id="a locked gate",
        ),
        pytest.param(
            ["convert"], "error: expected a FILE or --algorithm-provider; got neither", id="nothing"
        ),
    ],
)
def test_what_is_refused(args: list[str], error: str) -> None:
    out, err = run(*args, code=2)

    assert out == ""
    assert err.splitlines() == [error]


def test_check_names_all_problems_of_all_files() -> None:
    good = write("good.yaml", component())
    bad = write("bad.yaml", component(parallelism=0, podInitialBackoffSeconds=-1, foo=1))
    worse = write("worse.json", policy(priorities=[{"name": "NodeAffinityPriority", "weight": 0}]))

    out, err = run("check", good, bad, worse, "absent.yaml", code=2)

    assert out == "good.yaml: good\n"
    assert sorted(
        line.removeprefix("error: ").partition(": expected")[0] for line in err.splitlines()
    ) == [
        "absent.yaml",
        "bad.yaml: foo",
        "bad.yaml: parallelism",
        "bad.yaml: podInitialBackoffSeconds",
        "worse.json: priorities[0].weight",
    ]


def test_check_finds_plugins_that_cannot_be_run() -> None:
    enabled = {
        "filter": {"enabled": [{"name": "Best"}, {"name": "ImageLocality"}]},
        "multiPoint": {
            "enabled": [
                {"name": name} for name in ("NodeAfinity", "NodeNumber", "NodeResourcesAllocatable")
            ]
        },
    }
    doubled = {"multiPoint": {"enabled": [{"name": "NodeName"}, {"name": "NodeName"}]}}
    profiles = [
        {"schedulerName": "a", "plugins": enabled},
        {"schedulerName": "b"},
        {"schedulerName": "c", "plugins": doubled},
    ]
    file = write("s.yaml", component(profiles=profiles))

    _, err = run("check", file, code=2)

    first, third = "error: s.yaml: profiles[0].plugins", "error: s.yaml: profiles[2].plugins"
    assert err.splitlines() == [
        f"{first}: expected plugins that Bayplan has, or --plugins with those; got NodeResourcesAllocatable"
        " of scheduler-plugins",
        f'{first}.filter.enabled: expected the name of a plugin; got "Best"',
        f'{first}.filter.enabled: expected plugins that implement filter; got "ImageLocality"',
        f'{first}.multiPoint.enabled: expected NodeAffinity; got "NodeAfinity"',
        f'{first}.multiPoint.enabled: expected the name of a plugin; got "NodeNumber"',
        f'{third}.multiPoint.enabled: expected each plugin once; got "NodeName"',
    ]


def test_check_finds_arguments_that_only_the_plugin_can_read() -> None:
    gang = {"name": "GangScheduling", "args": {"antiAffinityBothWay": True}}
    file = write("s.yaml", component(profiles=[{"pluginConfig": [gang]}]))

    _, err = run("check", file, code=2)

    assert err.splitlines() == [
        'error: s.yaml: profiles[0]: initializing plugin "GangScheduling": args: Object contains '
        "unknown field `antiAffinityBothWay`"
    ]


def test_check_finds_problems_of_fields_and_of_plugins_at_once() -> None:
    no_binder = {"bind": {"disabled": [{"name": "*"}]}}
    file = write("s.yaml", component(parallelism=0, profiles=[{"plugins": no_binder}]))

    _, err = run("check", file, code=2)

    assert err.splitlines() == [
        "error: s.yaml: parallelism: expected a number above 0; got 0",
        "error: s.yaml: profiles[0]: at least one bind plugin is needed for profile with scheduler "
        'name "default-scheduler"',
    ]


def test_check_notes_what_has_no_effect() -> None:
    placement = {
        "placementGenerate": {"enabled": [{"name": "TopologyPlacementGenerator"}]},
        "placementScore": {"enabled": [{"name": "PodGroupPodsCount", "weight": 3}]},
    }
    config = [{"name": "NodeResourceFit", "args": {}}]
    file = write("s.yaml", component(profiles=[{"plugins": placement, "pluginConfig": config}]))

    out, err = run("check", file, "--feature-gates", "KubeletPSI=true")

    later = "is not run without the feature gate TopologyAwareWorkloadScheduling"
    assert out == "s.yaml: good\n"
    assert err.splitlines() == [
        "note: s.yaml: feature gates without effect here: KubeletPSI",
        "note: s.yaml: profiles[0].pluginConfig: NodeResourceFit: no such plugin; no effect "
        "(expected NodeResourcesFit)",
        f"note: s.yaml: profiles[0].plugins: PodGroupPodsCount: placementScore {later}",
        f"note: s.yaml: profiles[0].plugins: TopologyPlacementGenerator: placementGenerate {later}",
    ]


def test_show_has_the_plugins_for_pod_groups() -> None:
    placement = {"placementGenerate": {"enabled": [{"name": "TopologyPlacementGenerator"}]}}
    file = write("s.yaml", component(profiles=[{"plugins": placement}]))

    out, _ = run("show", "--config", file, "-o", "json")

    plugins = json.loads(out)["profiles"][0]["plugins"]
    assert plugins["placementGenerate"] == [{"name": "TopologyPlacementGenerator"}]
    assert plugins["placementScore"] == [{"name": "NodeResourcesFit", "weight": 1}]


def test_gates_decide_about_arguments() -> None:
    shape = [{"utilization": 0, "score": 1}, {"utilization": 100, "score": 9}]
    config = [{"name": "VolumeBinding", "args": {"shape": shape}}]
    file = write("s.yaml", component(profiles=[{"pluginConfig": config}]))

    _, err = run("show", "--config", file, code=2)
    out, _ = run(
        "show", "--config", file, "--feature-gates", "StorageCapacityScoring=true", "-o", "json"
    )

    assert "expected nothing while feature gate StorageCapacityScoring is off" in err
    shown = json.loads(out)["profiles"][0]["pluginConfig"]["VolumeBinding"]
    assert shown["shape"] == shape


def test_check_accepts_plugins_of_a_file() -> None:
    Path("mine.py").write_text(MINE)
    enabled = {"filter": {"enabled": [{"name": "Mine"}]}}
    file = write("s.yaml", component(profiles=[{"plugins": enabled}]))

    out, _ = run("check", file, "--plugins", "mine.py")

    assert out == "s.yaml: good\n"


def test_convert_writes_the_current_format_and_notes_the_rest() -> None:
    file = write("old.yaml", component("v1beta3", healthzBindAddress="0.0.0.0:10251"))

    out, err = run("convert", file)

    document = yaml.safe_load(out)
    assert document["apiVersion"] == f"{GROUP}/v1"
    assert document["profiles"][0]["plugins"]["multiPoint"] == {"disabled": [{"name": "*"}]}
    assert "&id" not in out
    assert [line.partition(";")[0] for line in err.splitlines()] == [
        "note: healthzBindAddress: left out",
        "note: profile default-scheduler: EBSLimits: left out",
        "note: profile default-scheduler: GCEPDLimits: left out",
        "note: profile default-scheduler: AzureDiskLimits: left out",
    ]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("a.yaml", component("v1beta2"), id="v1beta2"),
        pytest.param("a.yaml", component("v1beta3"), id="v1beta3"),
        pytest.param("a.yaml", component(), id="v1"),
        pytest.param("a.json", SMALL_POLICY, id="a policy"),
        pytest.param("a.json", policy(), id="the default policy"),
    ],
)
def test_the_converted_file_shows_the_same_plugins(name: str, data: dict[str, Any]) -> None:
    def plugins_of(file: str) -> dict[str, list[str]]:
        out, _ = run("show", "--config", file, "-o", "json")
        points = json.loads(out)["profiles"][0]["plugins"]
        gone = {"EBSLimits", "GCEPDLimits", "AzureDiskLimits"}
        return {p: [ref for ref in refs if ref["name"] not in gone] for p, refs in points.items()}

    old = write(name, data)
    out, _ = run("convert", old)
    Path("new.yaml").write_text(out)

    assert plugins_of("new.yaml") == plugins_of(old)
    good, _ = run("check", "new.yaml")
    assert good == "new.yaml: good\n"


@pytest.mark.parametrize("command", [[], ["show"], ["check"], ["convert"]])
def test_help_has_an_example(command: list[str]) -> None:
    out, _ = run(*command, "--help")

    assert "Example: bayplan config" in out


def test_providers_are_completed() -> None:
    complete = completing(PROVIDER_NAMES)
    assert complete("") == ["DefaultProvider", "ClusterAutoscalerProvider"]
    assert complete("C") == ["ClusterAutoscalerProvider"]
