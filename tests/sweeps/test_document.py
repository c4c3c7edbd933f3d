"""The document of a sweep: its expansion, and messages about faults."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import InputError
from bayplan.sweeps import read_sweep
from bayplan.sweeps.document import parse_sweep
from bayplan.sweeps.expansion import expand

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = str(EXAMPLES / "cluster.yaml")
INPUTS = [{"name": "shop", "files": [CLUSTER]}]


def parse(**fields: Any) -> Any:
    return parse_sweep({"inputs": INPUTS, **fields}, "sweep.yaml", Path())


def test_every_input_configuration_value_and_seed_is_a_run() -> None:
    document = parse(
        inputs=[*INPUTS, {"files": str(EXAMPLES / "workload.yaml")}],
        configurations=[
            {"name": "plain"},
            {
                "name": "varied",
                "vary": {"weight.NodeResourcesFit": [1, 2], "podMaxBackoffSeconds": [5, 10, 20]},
            },
        ],
        seeds=[3, 4],
    )

    runs = expand(document)

    assert len(runs) == 2 * 2 * (1 + 2 * 3) == len({run.id for run in runs})
    assert {run.input for run in runs} == {"shop", "workload"}
    assert {run.seed for run in runs} == {3, 4}
    assert runs[1].values == {"weight.NodeResourcesFit": 1, "podMaxBackoffSeconds": 5}
    assert runs[1].label.startswith("shop, varied weight.NodeResourcesFit=1 podMaxBackoff")


def test_the_example_is_a_sweep() -> None:
    runs = expand(read_sweep(EXAMPLES / "sweep" / "sweep.yaml"))

    assert len(runs) == 9
    assert {run.configuration for run in runs} == {"default", "packed"}


def test_demands_sample_with_the_seed_of_the_run(tmp_path: Path) -> None:
    for name in ("nodes.csv", "pods.csv"):
        (tmp_path / name).write_text("x\n")
    trace = {"trace": "openb", "nodes": "nodes.csv", "pods": "pods.csv", "demand": [100, 130]}
    tree = {"inputs": [trace, {**trace, "name": "fixed", "samplingSeed": 7}], "seeds": 2}

    runs = expand(parse_sweep(tree, "sweep", tmp_path))

    found = [(run.input, run.what.demand, run.seed, run.what.sampling_seed) for run in runs]
    assert ("openb", 130.0, 1, 1) in found
    assert ("fixed", 100.0, 1, 7) in found
    assert len(found) == 8


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        pytest.param(lambda folder: None, True, id="nothing"),
        pytest.param(
            lambda folder: (folder / "nodes.yaml").write_text("# other\n"), False, id="a manifest"
        ),
        pytest.param(
            lambda folder: (folder / "plugin.py").write_text("# other\n"), False, id="a plugin"
        ),
        pytest.param(
            lambda folder: (folder / "config.yaml").write_text(CONFIG.replace("10", "11")),
            False,
            id="the configuration",
        ),
        pytest.param(
            lambda folder: (folder / "config.yaml").write_text(f"# a comment\n{CONFIG}"),
            True,
            id="a comment in the configuration",
        ),
    ],
)
def test_the_hash_depends_on_the_content_of_files(
    change: Any, is_same: bool, tmp_path: Path
) -> None:
    (tmp_path / "nodes.yaml").write_text("# nodes\n")
    (tmp_path / "plugin.py").write_text("# a plugin\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    tree = {
        "inputs": [{"files": ["nodes.yaml"]}],
        "configurations": [{"file": "config.yaml", "plugins": ["plugin.py"]}],
    }
    (before,) = expand(parse_sweep(tree, "sweep", tmp_path))

    change(tmp_path)

    (after,) = expand(parse_sweep(tree, "sweep", tmp_path))
    assert (before.id == after.id) is is_same


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 10
"""


def test_the_hash_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    ids = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "nodes.yaml").write_text("# nodes\n")
        tree = {"inputs": [{"files": ["nodes.yaml"]}]}
        ids.append(expand(parse_sweep(tree, "sweep", folder))[0].id)

    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        pytest.param({"kind": "Sweeep"}, 'kind: expected Sweep; got "Sweeep"', id="kind"),
        pytest.param({"seed": 1}, "seed: expected one of apiVersion, kind,", id="field"),
        pytest.param({"seeds": 0}, "seeds: expected a number of seeds of 1 or", id="no seeds"),
        pytest.param({"seeds": [1, 1]}, "expected a name of its own; got", id="a seed twice"),
        pytest.param({"seeds": ["x"]}, "seeds[0]: expected a whole number", id="seed is text"),
        pytest.param({"until": "soon"}, "until: expected", id="until"),
        pytest.param({"inputs": []}, "inputs: expected a list with at least one", id="no input"),
        pytest.param(
            {"inputs": [{"name": "x"}]}, "inputs[0]: expected files or a trace", id="empty input"
        ),
        pytest.param(
            {"inputs": [{"files": [CLUSTER], "demand": 130}]},
            "inputs[0].demand: expected it only with trace: openb",
            id="demand without a trace",
        ),
        pytest.param(
            {"inputs": [{"trace": "borg"}]},
            "inputs[0].trace: expected openb, csv, generated, alibaba-2018,",
            id="unknown trace",
        ),
        pytest.param({"ties": "luck"}, 'ties: expected random or name; got "luck"', id="ties"),
        pytest.param(
            {"inputs": [{"trace": "openb", "folder": "x", "shuffled": True}]},
            "inputs[0].shuffled: expected it only with demand",
            id="shuffled without a demand",
        ),
        pytest.param(
            {"inputs": [{"trace": "openb", "folder": "x", "demand": 9, "shuffled": "yes"}]},
            'inputs[0].shuffled: expected true or false; got "yes"',
            id="shuffled is text",
        ),
        pytest.param(
            {"inputs": [{"trace": "azure-vms"}]},
            "inputs[0].place: expected a text",
            id="no place of a trace",
        ),
        pytest.param(
            {"inputs": [{"trace": "azure-vms", "place": "gone.csv"}]},
            "inputs[0]: gone.csv: expected a readable file",
            id="no such trace",
        ),
        pytest.param(
            {"inputs": [{"trace": "azure-vms", "place": "x", "from": "2h", "until": "1h"}]},
            'inputs[0].until: expected a time after from; got "1h"',
            id="window",
        ),
        pytest.param(
            {"inputs": [{"trace": "openb", "folder": "x", "from": "2h"}]},
            "inputs[0].from: expected it only with a published trace besides openb",
            id="a window of openb",
        ),
        pytest.param(
            {"inputs": [{"trace": "openb", "folder": "x", "demand": [0]}]},
            "inputs[0].demand: expected a percentage above 0; got 0",
            id="demand",
        ),
        pytest.param(
            {"configurations": [{"name": "a"}, {"name": "a"}]},
            'configurations[1].name: expected a name of its own; got "a" again',
            id="names",
        ),
        pytest.param(
            {"configurations": [{"file": "x.yaml", "config": {}}]},
            "configurations[0]: expected file or config; got both",
            id="two configurations in one",
        ),
        pytest.param(
            {"configurations": [{"file": "gone.yaml"}]},
            "gone.yaml: expected a readable file",
            id="no such configuration",
        ),
        pytest.param(
            {"configurations": [{"vary": {"weight.NodeName": []}}]},
            "configurations[0].vary.weight.NodeName: expected a list with at least one entry",
            id="nothing to vary",
        ),
        pytest.param(
            {"configurations": [{"vary": {"args.X": [1]}}]},
            "configurations[0]: args.X: expected args.PLUGIN.FIELD or weight.PLUGIN",
            id="path",
        ),
        pytest.param(
            {"configurations": [{"vary": {"podMaxBackoffSeconds": [0]}}]},
            "configurations[0]: default podMaxBackoffSeconds=0: podMaxBackoffSeconds: expected",
            id="value",
        ),
        pytest.param(
            {"configurations": [{"featureGates": {"GangScheduling": "on"}}]},
            "configurations[0].featureGates.GangScheduling: expected true or false",
            id="gate",
        ),
        pytest.param(
            {"configurations": [{"plugins": ["gone.py"]}]},
            "configurations[0].plugins: gone.py: expected a readable file",
            id="plugin",
        ),
        pytest.param(
            {"inputs": [{"files": ["gone.yaml"]}]},
            "inputs[0].files: gone.yaml: expected a file or folder",
            id="manifest",
        ),
        pytest.param(
            {"measures": ["joy"]}, "measures[0]: expected the name of a measure", id="measure"
        ),
    ],
)
def test_faults_have_a_place(
    fields: dict[str, Any], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputError) as caught:
        expand(parse(**fields))

    text = str(caught.value).replace(f"{tmp_path}/", "")
    assert text.startswith("sweep.yaml: ")
    assert fault in text


def test_a_file_has_one_sweep(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("kind: Sweep\n---\nkind: Sweep\n")

    with pytest.raises(InputError, match=r"two.yaml: expected one document of kind Sweep; got 2"):
        read_sweep(file)
