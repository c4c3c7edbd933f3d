"""Slices of the recorded decisions of other releases, and two releases in one process."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.answers.release_changes import (
    SEVERAL,
    find_release_changes,
    metric_notes,
    version_notes,
)
from bayplan.api.wire.decode import decode_object
from bayplan.apiserver.registry.resource_table import ResourceCatalog
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import RELEASES, find_release
from bayplan.sim import read_manifests
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node
from bayplan.testing.devices import make_class, make_taint_rule
from tests.rig.conformance.cases import run_case
from tests.rig.conformance.cli import main, read_cases
from tests.rig.scenarios import Scenario

FOLDER = Path(__file__).parent / "cases" / "releases"
EXAMPLES = Path(__file__).parents[2] / "examples"
SLICES = {release.patch: FOLDER / release.patch for release in RELEASES.values()}
OTHERS = [patch for patch in SLICES if patch != "v1.36.4"]


def settings_of(version: str) -> Settings:
    """The default scheduler of a release."""
    return Settings(None, FeatureGates(release=find_release(version)), (), 0)


@pytest.mark.parametrize("patch", OTHERS)
def test_every_decision_of_a_release_agrees(patch: str) -> None:
    cases = list(read_cases(SLICES[patch] / "slice.jsonl.gz"))

    found = [str(one) for case in cases for _, differences in run_case(case) for one in differences]

    assert found == []
    assert {case["release"] for case in cases} == {patch}


def test_the_command_counts_each_release(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([str(SLICES[patch]) for patch in OTHERS[:2]])

    *lines, whole = capsys.readouterr().out.splitlines()
    assert status == 0
    assert [line.split(":")[0] for line in lines] == sorted(OTHERS[:2])
    assert whole.startswith("agree ")


@pytest.mark.parametrize("patch", OTHERS)
def test_another_release_does_not_agree(patch: str) -> None:
    cases = read_cases(SLICES[patch] / "slice.jsonl.gz")

    found = [
        one
        for case in cases
        for _, differences in run_case({**case, "release": "v1.36.4"})
        for one in differences
    ]

    assert found, "the slice has cases in which the releases differ"


@pytest.mark.parametrize(
    ("before", "after"), [("1.33", "1.34"), ("1.34", "1.35"), ("1.35", "1.36"), ("1.36", "1.37")]
)
def test_each_changed_decision_has_a_named_fact(before: str, after: str) -> None:
    manifests = read_manifests([EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml"])

    found = find_release_changes(manifests.objects, settings_of(before), settings_of(after))

    assert found.pods > 0
    assert not [each for each in found.changed if SEVERAL in each.causes]


def test_notes_about_metrics_and_versions() -> None:
    gone, new = metric_notes(RELEASES["1.36"], RELEASES["1.37"])
    rules = [make_taint_rule("r", "k=v:NoSchedule", driver="d"), make_class("c")]

    moved = list(version_notes(rules, RELEASES["1.36"], RELEASES["1.37"]))

    assert gone == "metrics that only v1.36.4 has: scheduler_resourceclaim_creates_total"
    assert new.startswith("metrics that only v1.37.0-rc.1 has: dynamic_resource_allocation_")
    versions = "resource.k8s.io/v1beta2 in v1.36.4, resource.k8s.io/v1 in v1.37.0-rc.1"
    assert moved == [f"API version of 1 DeviceTaintRule: {versions}"]
    assert not [*metric_notes(RELEASES["1.36"], RELEASES["1.36"])]


def test_up_serves_the_versions_of_the_facts() -> None:
    for release in RELEASES.values():
        served = {r.kind: r.api_version for r in ResourceCatalog(release=release).resources}
        known = {kind: version for kind, version in release.api_versions.items() if kind in served}
        assert known == {kind: served[kind] for kind in known}


def test_a_release_changes_nothing_against_itself() -> None:
    manifests = read_manifests([EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml"])

    found = find_release_changes(manifests.objects, settings_of("1.36"), settings_of("1.36"))

    assert (found.pods > 0, found.changed) == (True, [])


def container(name: str, cpu: str) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}}


def given(name: str, cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu}
    return {"name": name, "allocatedResources": amounts, "resources": {"requests": amounts}}


def test_two_releases_share_no_answer() -> None:
    """One container shrinks while another grows: v1.37 counts the pod, v1.36 each container."""
    pod = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "resized", "namespace": "default", "uid": "1"},
            "spec": {"nodeName": "a", "containers": [container("x", "1"), container("y", "3")]},
            "status": {"phase": "Running", "containerStatuses": [given("x", "2"), given("y", "2")]},
        }
    )
    used = []
    for version in ("1.36", "1.37", "1.36"):
        gates = FeatureGates(release=find_release(version))
        table = Scenario(make_node("a"), pod, feature_gates=gates).scheduler.cache.table
        used.append(int(table.requested["cpu"][table.live_rows][0]))

    assert used == [5000, 4000, 5000]
