"""Ten thousand random requests: none gives a 5xx, no controller fails, and the server still works."""

import logging
from pathlib import Path

import pytest

from bayplan.cli.commands.up import start_scheduler
from bayplan.sim.settings import DEFAULT_SETTINGS
from tests.rig.api_server import PODS, api_server
from tests.rig.random_examples import examples
from tests.rig.trees import node_tree, pod_tree

from .fuzzing import random_requests

SEEDS, COUNT, SETTLE_EVERY = range(4), examples(1000), 25


@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests_never_make_the_server_fail(
    seed: int, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    failures = []
    with api_server(tmp_path) as api:
        api.within(lambda server: start_scheduler(server, DEFAULT_SETTINGS))
        api.make("/api/v1/nodes", node_tree("node-0"))
        for number, sent in enumerate(random_requests(seed, COUNT)):
            method, path, headers, body = sent
            kind = headers.pop("Content-Type", "")
            answer = api.request(method, path, body, kind, **headers)
            if answer.status >= 500:
                failures.append((answer.status, sent, answer.tree))
            if number % SETTLE_EVERY == 0:
                api.advance(7)
        api.advance(60)

        assert failures == []
        problems = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert [record.getMessage() + str(record.exc_info) for record in problems] == []
        api.make("/api/v1/namespaces", {"metadata": {"name": "after"}})
        api.make(PODS.replace("default", "after"), pod_tree("works"))
        assert api.get(PODS.replace("default", "after")).names == ["works"]
