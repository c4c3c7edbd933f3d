"""The suite as it is described in suite.yaml: files with hashes, rows, sweeps over inputs, and pools."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bayplan.errors import InputError
from bayplan.sim.traces import Alibaba2025, TraceWindow, parse_shape, write_list
from bayplan.sweeps.document import SweepDocument, parse_sweep

HERE = Path(__file__).resolve().parent
OPENB = "cluster-trace-gpu-v2023/csv"
DEMAND = 105
HOUR_S = 3600.0


@dataclass(frozen=True)
class Suite:
    """A version of the suite, with the place of its traces."""

    tree: Mapping[str, Any]
    folder: Path
    """The folder of suite.yaml, to which paths are relative."""
    traces: Path
    """A copy of alibaba/clusterdata, or of the files that are named."""

    @staticmethod
    def read(file: Path, traces: Path) -> Suite:
        """The suite in a file."""
        return Suite(yaml.safe_load(file.read_text()), file.parent, traces)

    @property
    def version(self) -> int:
        return int(self.tree["version"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The baselines, as configurations of a sweep."""
        return [self._row(each) for each in self.tree["baselines"]]

    @property
    def columns(self) -> dict[str, str]:
        """The headline measure of each input, in the order of the table."""
        found = {
            given["name"]: sweep["measure"]
            for sweep in self.tree["sweeps"]
            for given in sweep["inputs"]
        }
        pools = self.tree.get("pools", {})
        return found | {f"pools, {name}": pools["measure"] for name in pools.get("autoscalers", ())}

    def check_files(self) -> None:
        """Raise InputError when a file of the traces is missing or another one."""
        for name, digest in self.tree["files"].items():
            file = self.traces / name
            if not file.is_file():
                raise InputError(
                    f"{file}: expected a file of alibaba/clusterdata; got nothing there"
                )
            got = hashlib.sha256(file.read_bytes()).hexdigest()
            if got != digest:
                raise InputError(f"{file}: expected content with the SHA-256 {digest}; got {got}")

    def sweeps(
        self,
        work: Path,
        rows: Sequence[Mapping[str, Any]],
        inputs: Sequence[str],
        seeds: int | None,
    ) -> Iterator[tuple[str, SweepDocument]]:
        """The sweeps by name with these rows: all inputs, or those that are named; at most so many seeds."""
        for sweep in self.tree["sweeps"]:
            given = [
                self._input(each, work)
                for each in sweep["inputs"]
                if not inputs or each["name"] in inputs
            ]
            if not given:
                continue
            gates = sweep.get("featureGates", {})
            tree = {
                "inputs": given,
                "configurations": [{**row, "featureGates": gates} for row in rows],
                "seeds": sweep["seeds"][:seeds],
                "ties": sweep.get("ties", "random"),
                "measures": [sweep["measure"]],
                **({"until": sweep["until"]} if "until" in sweep else {}),
            }
            yield sweep["name"], parse_sweep(tree, f"suite.yaml: {sweep['name']}", self.folder)

    def _row(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        paths = {"file": str(self.folder / tree["file"])} if "file" in tree else {}
        plugins = [str(self.folder / each) for each in tree.get("plugins", ())]
        return {"name": tree["name"], **paths, **({"plugins": plugins} if plugins else {})}

    def _input(self, tree: Mapping[str, Any], work: Path) -> dict[str, Any]:
        """An input of a sweep; one that is not in the form of the sweep is made."""
        name = tree["name"]
        if "prepared" in tree:
            return {"name": name, "files": [str(self._prepare(tree["prepared"], work))]}
        if tree["trace"] == "openb":
            tables = self.traces / OPENB
            return {
                "name": name,
                "trace": "openb",
                "nodes": str(tables / "openb_node_list_gpu_node.csv"),
                "pods": str(tables / f"openb_pod_list_{tree['variant']}.csv"),
                "demand": DEMAND,
                "shuffled": True,
            }
        return dict(tree)

    def _prepare(self, name: str, work: Path) -> Path:
        """The manifests of a trace on the nodes of the suite."""
        given = self.tree[name]
        trace = Alibaba2025(
            file=self.traces / given["file"],
            shapes=tuple(parse_shape(text) for text in given["nodes"]),
            window=TraceWindow(0.0, float(given["until"].removesuffix("h")) * HOUR_S),
        )
        file = work / f"{name}.json"
        with file.open("w", encoding="utf-8") as stream:
            write_list(stream, trace.objects())
        return file
