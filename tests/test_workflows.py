"""The workflows of GitHub: pinned actions, few rights, every supported Python."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
USES = re.compile(
    r"^\s*(?:- )?uses: (?P<action>\S+)@(?P<commit>\S+)(?: # (?P<version>\S+))?$", re.M
)
READ_ONLY = {"contents": "read"}
ALLOWED_BESIDES = {
    ("release.yml", "publish"): {"id-token": "write"},
    ("docs.yml", "publish"): {"id-token": "write", "pages": "write"},
}
"""Permissions of a job beyond reading: publish on PyPI, publish the site."""

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="not run: an sdist does not hold .github"
)


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """File, name and content of every job."""
    for file in FILES:
        for name, job in yaml.safe_load(file.read_text())["jobs"].items():
            yield file.name, name, job


JOBS = [pytest.param(*each, id=f"{each[0]} {each[1]}") for each in jobs()]


def test_there_are_workflows() -> None:
    assert [file.name for file in FILES] == ["docs.yml", "release.yml", "tests.yml"]


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    pins: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for file in FILES:
        text = file.read_text()
        found = list(USES.finditer(text))
        assert len(found) == text.count("uses:"), file
        for match in found:
            pins[match["action"]].add((match["commit"], match["version"]))

    for action, each in pins.items():
        assert len(each) == 1, f"{action}: expected one version everywhere; got {sorted(each)}"
        ((commit, version),) = each
        assert re.fullmatch(r"[0-9a-f]{40}", commit), action
        assert re.fullmatch(r"v\d+\.\d+\.\d+", version or ""), action


@pytest.mark.parametrize("file", [pytest.param(file, id=file.name) for file in FILES])
def test_a_workflow_may_only_read_and_does_not_run_twice_at_a_time(file: Path) -> None:
    tree = yaml.safe_load(file.read_text())

    assert tree["permissions"] == READ_ONLY
    assert tree["concurrency"]["group"]
    assert "pull_request_target" not in tree[True]  # YAML 1.1 reads the key `on` as true


@pytest.mark.parametrize(("file", "name", "job"), JOBS)
def test_a_job_has_no_more_rights_than_it_needs(file: str, name: str, job: dict[str, Any]) -> None:
    assert job.get("permissions", {}) == ALLOWED_BESIDES.get((file, name), {})
    for step in job["steps"]:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(("file", "name", "job"), JOBS)
def test_a_job_ends_in_time_on_a_named_system(file: str, name: str, job: dict[str, Any]) -> None:
    assert job["timeout-minutes"] <= 90
    systems = [job["runs-on"]]
    if systems == ["${{ matrix.system }}"]:
        systems = job["strategy"]["matrix"]["system"]
    assert systems
    for system in systems:
        assert re.fullmatch(r"(ubuntu-\d\d\.\d\d|macos-\d\d|windows-\d{4})(-arm|-intel)?", system)


def test_a_job_that_may_publish_runs_nothing_of_the_source() -> None:
    for file, name in ALLOWED_BESIDES:
        job = yaml.safe_load((FOLDER / file).read_text())["jobs"][name]
        assert job["needs"], name
        assert [step for step in job["steps"] if "run" in step] == []


@pytest.mark.parametrize("file", ["tests.yml", "release.yml"])
def test_the_tests_run_on_every_python_that_is_promised(file: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: 3." in each]

    tests = yaml.safe_load((FOLDER / file).read_text())["jobs"]["tests"]

    assert tests["strategy"]["matrix"]["python"] == promised


@pytest.mark.parametrize("file", ["tests.yml", "release.yml"])
def test_every_target_that_is_made_exists(file: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    made = {
        word
        for line in re.findall(r"run: make (.*)", (FOLDER / file).read_text())
        for word in line.split()
        if "=" not in word
    }

    assert made
    assert made <= targets


def test_wheels_are_built_for_every_python_that_is_promised_with_the_compiled_kernel() -> None:
    tree = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [each.rpartition(" ")[2] for each in tree["project"]["classifiers"] if ":: 3." in each]
    settings = tree["tool"]["cibuildwheel"]

    assert settings["build"] == [f"cp{each.replace('.', '')}-*" for each in named]
    assert settings["environment"] == {"BAYPLAN_BUILD_KERNEL": "require"}


def test_tests_and_release_build_wheels_on_the_same_systems_with_the_same_tool() -> None:
    first, second = (
        yaml.safe_load((FOLDER / file).read_text())["jobs"]["wheels"]
        for file in ("tests.yml", "release.yml")
    )

    assert first["strategy"]["matrix"] == second["strategy"]["matrix"]
    ((tool,), (other,)) = (
        [s for s in job["steps"] if s["uses"].startswith("pypa/cibuildwheel@")]
        for job in (first, second)
    )
    assert (tool["uses"], tool["with"]) == (other["uses"], other["with"])


def test_no_workflow_installs_a_package_without_its_hash() -> None:
    for file, name, job in jobs():
        runs = [step.get("run", "") for step in job["steps"]]
        for word in ("pipx", "pip install", "uv ", "actionlint"):
            assert not [run for run in runs if word in run], (file, name, word)


def test_what_is_published_is_every_wheel_and_the_sdist() -> None:
    jobs = yaml.safe_load((FOLDER / "release.yml").read_text())["jobs"]
    uploads = [
        step["with"]
        for job in jobs.values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact@")
    ]
    (download,) = (step["with"] for step in jobs["publish"]["steps"] if "with" in step)

    assert sorted(each["path"] for each in uploads) == ["dist/*.tar.gz", "dist/*.whl"]
    assert all(each["name"].startswith("dist-") for each in uploads)
    assert download == {"pattern": "dist-*", "merge-multiple": True, "path": "dist/"}


def test_a_release_waits_for_the_tests_and_the_archives() -> None:
    release = yaml.safe_load((FOLDER / "release.yml").read_text())

    assert list(release[True]) == ["push"]
    assert list(release[True]["push"]) == ["tags"]
    assert release["jobs"]["publish"]["needs"] == ["tests", "wheels", "build"]
    assert release["jobs"]["publish"]["environment"]["name"] == "pypi"
