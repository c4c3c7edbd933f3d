"""`bayplan run` where it does not schedule: its version, its configuration as a file, a Policy in the cluster."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.commands.run import connect, other_release, with_policy
from bayplan.cli.flags.command import FlagValues
from bayplan.cli.flags.run_settings import read_settings
from bayplan.cli.main import app
from bayplan.config.load import load_config
from bayplan.config.types import SchedulerConfiguration
from bayplan.errors import ConfigError
from tests.rig.api_server import ServerInThread, api_server

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 20
profiles:
- schedulerName: packing
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--version"], ["Kubernetes v1.36.4+bayplan"], id="the newest release"),
        pytest.param(
            ["--version", "--kubernetes-version=1.34"],
            ["Kubernetes v1.34.11+bayplan"],
            id="an older release",
        ),
        pytest.param(
            ["--version=raw"], ["git_version: v1.36.4+bayplan", "major: 1", "minor: 36"], id="raw"
        ),
    ],
)
def test_the_version_is_that_of_kubernetes_with_ours_behind_it(
    arguments: list[str], expected: list[str]
) -> None:
    result = CliRunner().invoke(app, ["run", *arguments])

    assert result.exit_code == 0, result.output
    assert all(part in result.output for part in expected), result.output


def test_the_configuration_in_effect_is_written_and_can_be_read(tmp_path: Path) -> None:
    given, written = tmp_path / "config.yaml", tmp_path / "written.yaml"
    given.write_text(CONFIG)

    result = CliRunner().invoke(
        app, ["run", "--config", str(given), "--write-config-to", str(written)]
    )

    assert result.exit_code == 0, result.output
    assert load_config(written) == load_config(given)
    assert "podInitialBackoffSeconds: 1" in written.read_text(), "with the defaults"


def test_a_configuration_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    target = tmp_path / "none" / "written.yaml"

    result = CliRunner().invoke(app, ["run", "--write-config-to", str(target)])

    assert result.exit_code == 2
    assert f"--write-config-to: {target}: " in result.output.replace("\n", "")


POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [{"name": "PodFitsResources"}],
    "priorities": [{"name": "MostRequestedPriority", "weight": 3}],
}


def read_policy(api: ServerInThread, folder: Path, data: dict[str, str]) -> SchedulerConfiguration:
    """The configuration of a scheduler that is told to take its Policy from a ConfigMap of these data."""
    tree = {"metadata": {"name": "policy", "namespace": "kube-system"}, "data": data}
    api.make("/api/v1/namespaces/kube-system/configmaps", tree)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(make_kubeconfig(api.server.url, token=api.server.token)))
    flags = FlagValues({"kubeconfig": str(kubeconfig), "policy-configmap": "policy"})

    async def read() -> SchedulerConfiguration:
        connection = await connect(flags)
        try:
            return await with_policy(read_settings(flags), connection)
        finally:
            await connection.close()

    return asyncio.run(read())


def test_the_policy_of_a_config_map_is_read_from_the_cluster(tmp_path: Path) -> None:
    with api_server(runs_pods=False) as api:
        config = read_policy(api, tmp_path, {"policy.cfg": json.dumps(POLICY)})

    [profile] = config.profiles
    enabled = {plugin.name: plugin.weight for plugin in profile.plugins.score.enabled}
    assert enabled == {"NodeResourcesMostAllocated": 3}


def test_a_config_map_without_a_policy_is_an_error(tmp_path: Path) -> None:
    with api_server(runs_pods=False) as api, pytest.raises(ConfigError, match="kube-system/policy"):
        read_policy(api, tmp_path, {"other": "text"})


def test_the_kubeconfig_of_the_configuration_comes_first_and_master_is_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configured, config = tmp_path / "configured", tmp_path / "config.yaml"
    configured.write_text(json.dumps(make_kubeconfig("http://127.0.0.1:1")))
    client = {"clientConnection": {"kubeconfig": str(configured)}}
    config.write_text(json.dumps({"delayCacheUntilActive": True, **client}))
    given = {"config": str(config), "kubeconfig": "other", "master": "http://127.0.0.1:2/"}

    async def server() -> str:
        connection = await connect(FlagValues(given))
        try:
            return connection.credentials.server
        finally:
            await connection.close()

    assert asyncio.run(server()) == "http://127.0.0.1:2"
    assert f"--kubeconfig has no effect: the configuration names {configured}" in caplog.text


def test_an_api_server_of_another_release_than_the_settings_is_noticed(tmp_path: Path) -> None:
    async def read(api: ServerInThread, release: str) -> str:
        kubeconfig = tmp_path / "kubeconfig"
        tree = make_kubeconfig(api.server.url, token=api.server.token)
        kubeconfig.write_text(json.dumps(tree))
        flags = FlagValues({"kubeconfig": str(kubeconfig)})
        connection = await connect(flags)
        try:
            settings = read_settings(flags, release)
            async with asyncio.timeout(1):
                return await other_release(settings, connection, asyncio.Event())
        finally:
            await connection.close()

    with api_server(runs_pods=False) as api:
        assert asyncio.run(read(api, "v1.34.11")).startswith("v1.36")
        with pytest.raises(TimeoutError):  # one of the same release is nothing to tell
            asyncio.run(read(api, "v1.36.4"))
