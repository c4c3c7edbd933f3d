"""/statusz and /flagz: plain text for people, objects of config.k8s.io for programs."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
import yaml
from aiohttp import web

from bayplan.web.route_server import WebServer
from bayplan.web.zpages import AcceptedForm, Component, encode_cbor, negotiate, zpage_routes

STATUSZ = "v=v1beta1;g=config.k8s.io;as=Statusz"


def component(has_cbor: bool = False) -> Component:
    return Component(
        "kube-scheduler",
        "1.36.4+bayplan.0.2.0",
        "1.36",
        flags={"v": "2", "leader-elect": "true"},
        has_cbor=has_cbor,
        started=datetime.now(UTC) - timedelta(hours=2, minutes=3),
    )


def get(
    path: str, accept: str | None, routes: list[web.RouteDef] | None = None
) -> tuple[int, str, Mapping[str, str]]:
    code, body, headers = get_bytes(path, accept, routes)
    return code, body.decode(), headers


def get_bytes(
    path: str, accept: str | None, routes: list[web.RouteDef] | None = None
) -> tuple[int, bytes, Mapping[str, str]]:
    async def run() -> tuple[int, bytes, Mapping[str, str]]:
        server = WebServer(routes or zpage_routes(component(), ["/metrics", "/healthz"]))
        await server.start()
        headers = {} if accept is None else {"Accept": accept}
        try:
            async with (
                aiohttp.ClientSession(skip_auto_headers=("Accept",)) as session,
                session.get(server.url + path, headers=headers) as response,
            ):
                return response.status, await response.read(), dict(response.headers)
        finally:
            await server.stop()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("accept", "asked"),
    [
        pytest.param("", AcceptedForm("text/plain"), id="nothing asked for"),
        pytest.param("*/*", AcceptedForm("text/plain"), id="anything"),
        pytest.param("text/plain", AcceptedForm("text/plain"), id="text"),
        pytest.param(
            f"application/json;{STATUSZ}", AcceptedForm("application/json", "v1beta1"), id="JSON"
        ),
        pytest.param(
            f"application/yaml;{STATUSZ}", AcceptedForm("application/yaml", "v1beta1"), id="YAML"
        ),
        pytest.param(
            f"text/plain;q=0.5, application/json;{STATUSZ}",
            AcceptedForm("application/json", "v1beta1"),
            id="the better quality first",
        ),
        pytest.param("application/json", None, id="JSON of no kind"),
        pytest.param(
            "application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None, id="of another kind"
        ),
        pytest.param(
            "application/json;v=v9;g=config.k8s.io;as=Statusz", None, id="a version ahead"
        ),
        pytest.param("image/png", None, id="a picture"),
    ],
)
def test_the_media_type_is_negotiated(accept: str, asked: AcceptedForm | None) -> None:
    assert negotiate(accept, "Statusz") == asked


def test_the_status_for_people() -> None:
    code, text, headers = get("/statusz", None)

    assert code == 200
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert text.startswith("\nkube-scheduler statusz\n")
    assert "Up: 2 hr 03 min" in text
    assert "Binary version: 1.36.4+bayplan.0.2.0" in text
    assert "Paths: /flagz /healthz /metrics\n" in text


def test_the_status_lists_first_path_elements() -> None:
    paths = ["/", "/debug/pprof/heap", "/debug/pprof", "/metrics/resources", "/metrics"]

    _, text, _ = get("/statusz", None, zpage_routes(component(), paths))

    assert "Paths: /debug /flagz /metrics\n" in text


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_the_status_for_programs(version: str) -> None:
    accept = f"application/json;v={version};g=config.k8s.io;as=Statusz"
    code, text, headers = get("/statusz", accept)

    tree = json.loads(text)
    assert code == 200
    assert (tree["kind"], tree["apiVersion"]) == ("Statusz", f"config.k8s.io/{version}")
    assert 7380 <= tree["uptimeSeconds"] < 7500
    assert tree["emulationVersion"] == "1.36"
    assert headers["Content-Type"] == f"application/json;g=config.k8s.io;v={version};as=Statusz"
    assert ("Warning" in headers) is (version == "v1alpha1")


def test_the_flags_in_all_forms() -> None:
    assert "\nleader-elect=true\nv=2\n" in get("/flagz", None)[1]
    accept = "application/yaml;v=v1beta1;g=config.k8s.io;as=Flagz"
    tree = yaml.safe_load(get("/flagz", accept)[1])
    assert tree["flags"] == {"leader-elect": "true", "v": "2"}


def test_what_cannot_be_served_is_refused_with_the_media_types() -> None:
    code, text, _ = get("/flagz", "image/png")

    assert code == 406
    assert json.loads(text)["message"].endswith("application/json, application/yaml, text/plain")


FLAGZ_CBOR = "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz"


def test_cbor_with_its_gate() -> None:
    code, body, headers = get_bytes("/flagz", FLAGZ_CBOR, zpage_routes(component(True), []))

    assert code == 200
    assert headers["Content-Type"] == "application/cbor;g=config.k8s.io;v=v1beta1;as=Flagz"
    assert body == encode_cbor(
        {
            "kind": "Flagz",
            "apiVersion": "config.k8s.io/v1beta1",
            "metadata": {"name": "kube-scheduler"},
            "flags": {"v": "2", "leader-elect": "true"},
        }
    )


def test_cbor_of_no_kind_is_refused_in_cbor() -> None:
    code, body, headers = get_bytes("/flagz", "application/cbor", zpage_routes(component(True), []))

    assert (code, headers["Content-Type"]) == (406, "application/cbor")
    assert body.startswith(encode_cbor({})[:3])
    assert b"application/json, application/yaml, text/plain, application/cbor" in body


def test_cbor_is_refused_without_its_gate() -> None:
    code, text, _ = get("/flagz", FLAGZ_CBOR)

    assert code == 406
    assert json.loads(text)["message"].endswith("application/yaml, text/plain")
