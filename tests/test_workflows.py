"""The workflows of GitHub: pinned actions, few rights, every Python that is promised."""

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
"""What a job may do more than read: publish on PyPI, publish the site."""

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
    assert re.fullmatch(r"ubuntu-\d\d\.\d\d", job["runs-on"])


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
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    made = {
        word
        for line in re.findall(r"run: make (.*)", (FOLDER / file).read_text())
        for word in line.split()
        if "=" not in word
    }

    assert made
    assert made <= targets


def test_a_release_waits_for_the_tests_and_the_archives() -> None:
    release = yaml.safe_load((FOLDER / "release.yml").read_text())

    assert list(release[True]) == ["push"]
    assert list(release[True]["push"]) == ["tags"]
    assert release["jobs"]["publish"]["needs"] == ["tests", "build"]
    assert release["jobs"]["publish"]["environment"]["name"] == "pypi"
