"""Credentials: a kubeconfig is read as by kubectl."""

import asyncio
import base64
import math
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cluster.certificates import make_certificate
from bayplan.errors import InputError
from bayplan.kube.credentials import Credentials, load_credentials

EXEC = "client.authentication.k8s.io/v1"


def write(file: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig with one user."""
    config = make_kubeconfig("http://x")
    config["users"][0]["user"] = user
    config["clusters"][0]["cluster"].update(cluster)
    file.write_text(yaml.safe_dump(config))
    return file


def load(*arguments: Any) -> Credentials:
    return asyncio.run(load_credentials(*arguments))


def plugin(status: str, *, version: str = EXEC) -> dict[str, Any]:
    """The settings of a plugin that prints `status`."""
    printed = f'{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {status}}}'
    return {"exec": {"apiVersion": EXEC, "command": "echo", "args": [printed]}}


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"token": "t"}, "Bearer t", id="a token"),
        pytest.param(
            {"tokenFile": "token"}, "Bearer stored", id="a file, relative to the kubeconfig"
        ),
        pytest.param(
            {"token": "t", "tokenFile": "token"}, "Bearer stored", id="a file before a token"
        ),
        pytest.param(
            {"username": "a", "password": "b"}, "Basic YTpi", id="a user name and a password"
        ),
        pytest.param(plugin('{"token": "p"}'), "Bearer p", id="a plugin"),
    ],
)
def test_identity(tmp_path: Path, user: dict[str, Any], authorization: str | None) -> None:
    (tmp_path / "token").write_text("stored\n")

    assert load(write(tmp_path / "kubeconfig", user)).authorization == authorization


def test_plugin_runs_again_only_when_it_was_refused_or_its_token_expires(tmp_path: Path) -> None:
    def count(expires: str) -> list[int]:
        runs = tmp_path / f"runs-{expires}"
        status = f'{{\\"token\\": \\"t\\", \\"expirationTimestamp\\": \\"{expires}\\"}}'
        script = (
            f"echo x >> {runs}; "
            f'echo "{{\\"apiVersion\\": \\"{EXEC}\\", \\"kind\\": \\"ExecCredential\\", \\"status\\": {status}}}"'
        )
        user = {"exec": {"apiVersion": EXEC, "command": "sh", "args": ["-c", script]}}

        async def use() -> list[int]:
            credentials = await load_credentials(write(tmp_path / "kubeconfig", user))
            counts = []
            for was_refused in (False, True):
                await credentials.refresh(was_refused)
                counts.append(len(runs.read_text().split()))
                assert credentials.plugin_calls == {("0", "no_error"): counts[-1]}
            assert credentials.certificate_ttl_s == math.inf
            return counts

        return asyncio.run(use())

    assert count("2999-01-01T00:00:00Z") == [1, 2]
    assert count("2001-01-01T00:00:00Z") == [2, 3]


def test_plugin_is_given_its_environment(tmp_path: Path) -> None:
    script = (
        f'echo "{{\\"apiVersion\\": \\"{EXEC}\\", \\"kind\\": \\"ExecCredential\\", '
        '\\"status\\": {\\"token\\": \\"$COLOR\\"}}"; '
        f'case "$KUBERNETES_EXEC_INFO" in *{EXEC}*) ;; *) exit 1;; esac'
    )
    settings = {"command": "sh", "args": ["-c", script], "env": [{"name": "COLOR", "value": "red"}]}
    user = {"exec": {"apiVersion": EXEC, **settings}}

    assert load(write(tmp_path / "kubeconfig", user)).authorization == "Bearer red"


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        pytest.param({"token": 1}, r"user\.token: expected a string", id="a token of another type"),
        pytest.param(
            {"tokenFile": "none"}, r"user\.tokenFile: expected a file", id="a missing file"
        ),
        pytest.param({"auth-provider": {"name": "oidc"}}, "exec plugins", id="an auth provider"),
        pytest.param(
            {"exec": []}, r"user\.exec: expected an object", id="a plugin without settings"
        ),
        pytest.param({"exec": {"apiVersion": EXEC}}, "expected a command", id="no command"),
        pytest.param(
            {"exec": {"apiVersion": "v1", "command": "x"}}, "apiVersion", id="an unknown version"
        ),
        pytest.param(
            {"exec": {"apiVersion": EXEC, "command": "/none", "installHint": "Get it."}},
            "Get it",
            id="a command that is not there",
        ),
        pytest.param(
            {"exec": {"apiVersion": EXEC, "command": "false"}}, "exit status 1", id="one that fails"
        ),
        pytest.param(plugin("{}"), "got neither", id="one that gives nothing"),
        pytest.param(
            plugin('{"token": "t"}', version="v0"), "got ExecCredential of v0", id="another version"
        ),
        pytest.param(
            {"exec": {"apiVersion": EXEC, "command": "echo"}},
            "printed by",
            id="one that prints none",
        ),
    ],
)
def test_fault_is_named(tmp_path: Path, user: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        load(write(tmp_path / "kubeconfig", user))

    assert str(caught.value).startswith(str(tmp_path / "kubeconfig"))


def test_client_certificate_and_authority_are_given_as_data_or_as_files(tmp_path: Path) -> None:
    certificate = make_certificate()
    (tmp_path / "cert").write_bytes(certificate.cert)
    (tmp_path / "key").write_bytes(certificate.key)
    encoded = {
        name: base64.b64encode(value).decode() for name, value in certificate._asdict().items()
    }
    files = {"client-certificate": "cert", "client-key": "key"}
    data = {"client-certificate-data": encoded["cert"], "client-key-data": encoded["key"]}

    for user, authority in (
        (files, {"certificate-authority": "cert"}),
        (data, {"certificate-authority-data": encoded["cert"]}),
    ):
        file = write(tmp_path / "kubeconfig", user, server="https://x", **authority)
        context = load(file).ssl_context

        assert context is not None
        assert len(context.get_ca_certs()) == 1
        assert context.verify_mode is ssl.CERT_REQUIRED


def test_check_of_the_certificate_can_be_off(tmp_path: Path) -> None:
    settings = {"server": "https://x", "insecure-skip-tls-verify": True}
    context = load(write(tmp_path / "kubeconfig", {}, **settings)).ssl_context

    assert context is not None
    assert context.verify_mode is ssl.CERT_NONE


def test_wrong_certificate_is_reported(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"no certificate").decode()
    settings = {"server": "https://x", "certificate-authority-data": encoded}

    with pytest.raises(InputError, match="expected certificates"):
        load(write(tmp_path / "kubeconfig", {}, **settings))


def test_proxy_is_one_for_http(tmp_path: Path) -> None:
    good = write(tmp_path / "good", {}, **{"proxy-url": "http://proxy:3128"})
    bad = write(tmp_path / "bad", {}, **{"proxy-url": "socks5://proxy"})

    assert load(good).proxy == "http://proxy:3128"
    with pytest.raises(InputError, match="expected an http or https address; got socks5"):
        load(bad)


def test_first_of_several_files_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "first", {"token": "first"})
    second = write(tmp_path / "second", {"token": "second"}, server="http://second")
    tree = yaml.safe_load(second.read_text())
    tree["contexts"].append(
        {"name": "other", "context": {**tree["contexts"][0]["context"], "namespace": "team"}}
    )
    second.write_text(yaml.safe_dump({**tree, "current-context": "other"}))
    files = os.pathsep.join([str(tmp_path / "none"), str(first), str(second)])

    current, other = load(files), load(files, "other")

    assert (current.server, current.authorization, current.namespace) == (
        "http://x",
        "Bearer first",
        "default",
    )
    assert (other.context, other.namespace, other.server) == ("other", "team", "http://x")
