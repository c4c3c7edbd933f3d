"""The image and the Deployment: a user without rights, a read-only file system, a pinned base."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bayplan import __version__

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UID = 65532


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, continued lines joined."""
    text = (DEPLOY / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.split("\n"))]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, FROM first."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest))
    return found


def documents(name: str) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all((DEPLOY / name).read_text())


def deployment() -> dict[str, Any]:
    (found,) = documents("30-deployment.yaml")
    return found


def test_the_base_image_is_pinned_by_version_and_digest() -> None:
    (base,) = (rest for word, rest in instructions() if word == "ARG")
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]

    assert re.fullmatch(
        r"PYTHON=docker\.io/library/python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base
    )
    assert bases == ["${PYTHON}"] * 2


def test_the_python_of_the_image_is_one_that_is_promised() -> None:
    (base,) = (rest for word, rest in instructions() if word == "ARG")
    minor = re.search(r"python:(\d+\.\d+)", base)
    assert minor is not None

    project = (ROOT / "pyproject.toml").read_text()

    assert f"Programming Language :: Python :: {minor[1]}" in project


def test_no_instruction_needs_a_shell() -> None:
    forms = {
        word: json.loads(rest)
        for word, rest in instructions()
        if word in {"RUN", "ENTRYPOINT", "CMD"}
    }

    assert forms["ENTRYPOINT"][0].startswith("/")
    assert forms.keys() == {"RUN", "ENTRYPOINT", "CMD"}


def test_the_last_stage_only_copies_and_drops_its_rights() -> None:
    build, last = stages()

    assert build[0] == ("FROM", "${PYTHON} AS build")
    assert [word for word, _ in last] == [
        "FROM",
        "COPY",
        "ENV",
        "USER",
        "WORKDIR",
        "EXPOSE",
        "ENTRYPOINT",
        "CMD",
    ]
    assert ("USER", f"{UID}:{UID}") in last
    assert ("WORKDIR", "/tmp") in last
    (environment,) = (rest.split() for word, rest in last if word == "ENV")
    assert {"HOME=/tmp", "PYTHONDONTWRITEBYTECODE=1"} <= set(environment)


def test_the_image_has_what_the_build_needs_and_the_compiled_kernel() -> None:
    build, _ = stages()
    copied = {name for word, rest in build if word == "COPY" for name in rest.split()[:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE"} <= copied
    assert {name.split("/")[0] for name in wheel["only-include"]} <= copied
    assert any("BAYPLAN_BUILD_KERNEL=require" in rest for word, rest in build if word == "ENV")


def test_packages_are_installed_by_their_hashes() -> None:
    build, _ = stages()
    commands = [json.loads(rest) for word, rest in build if word == "RUN"]
    *locked, package = [words for words in commands if words[0].endswith("/pip")]

    assert [words[-1] for words in locked] == ["/src/locks/dist.txt", "/src/locks/image.txt"]
    for words in locked:
        assert {"--require-hashes", "--no-deps"} <= set(words)
    assert "--no-index" in package
    (wheel,) = (words for words in commands if "build" in words)
    assert "--no-isolation" in wheel


def test_the_pod_runs_without_rights_on_a_read_only_file_system() -> None:
    pod = deployment()["spec"]["template"]["spec"]

    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": UID,
        "runAsGroup": UID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in pod["containers"] + pod.get("initContainers", []):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_pod_can_write_to_memory_at_tmp_only() -> None:
    pod = deployment()["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}

    (container,) = pod["containers"]
    writable = [mount for mount in container["volumeMounts"] if not mount.get("readOnly")]

    assert [mount["mountPath"] for mount in writable] == ["/tmp"]
    assert volumes[writable[0]["name"]]["emptyDir"]["medium"] == "Memory"


def test_image_manifest_and_documentation_name_this_version() -> None:
    (container,) = deployment()["spec"]["template"]["spec"]["containers"]
    places = [DEPLOY / "Containerfile", DEPLOY / "kustomization.yaml", ROOT / "docs" / "run.md"]

    assert container["image"] == f"bayplan:{__version__}"
    for place in places:
        named = re.findall(r"(?:bayplan:|newTag: )(\d+\.\d+\.\d+)", place.read_text())
        assert set(named) == {__version__}, place


def test_every_manifest_is_in_the_kustomization() -> None:
    (kustomization,) = documents("kustomization.yaml")

    manifests = sorted(path.name for path in DEPLOY.glob("[0-9]*.yaml"))

    assert kustomization["resources"] == manifests
