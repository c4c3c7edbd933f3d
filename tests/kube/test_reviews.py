"""Reviews: missing permissions are named, none if the server has no reviews, and failed requests are repeated."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import ApiError
from bayplan.kube import reviews
from bayplan.kube.connection import Connection
from bayplan.kube.reviews import REVIEWS, TRIES, missing_permissions
from bayplan.kube.watched_kinds import RESOURCES
from tests.rig.one_peer import ask, json_server, status_tree
from tests.security.rig import guarded_api, rule

PODS_ONLY = [RESOURCES["Pod"]]


class ReviewingServer:
    """Answers the first reviews of each verb with `codes`, and allows the verbs in `allowed` after these."""

    def __init__(self, *codes: int, allowed: str = "list watch") -> None:
        self._codes = codes
        self._allowed = allowed.split()
        self.asked: Counter[str] = Counter()

    def answer(self, path: str, given: Any) -> tuple[int, Any]:
        assert path == REVIEWS
        verb = given["spec"]["resourceAttributes"]["verb"]
        number = self.asked[verb]
        self.asked[verb] += 1
        if number < len(self._codes):
            return status_tree(self._codes[number], f"refused with {self._codes[number]}")
        return 201, {**given, "status": {"allowed": verb in self._allowed}}


def missing(folder: Path, server: ReviewingServer) -> list[str]:
    with json_server(server.answer) as url:
        return ask(folder, url, lambda one: missing_permissions(one, PODS_ONLY))


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "RETRY_S", 0.0)


def test_the_verbs_that_roles_do_not_grant_are_missing(tmp_path: Path) -> None:
    async def find(connection: Connection) -> list[str]:
        wanted = (RESOURCES["Node"], RESOURCES["Pod"], RESOURCES["ReplicaSet"])
        return await missing_permissions(connection, wanted)

    with guarded_api() as api:
        rules = rule("list watch", "nodes"), rule("list", "pods")
        account = api.account("shadow", *rules, everywhere=True)
        found = ask(tmp_path, api.api.server.url, find, account.token)

    assert found == ["watch pods", "list replicasets.apps", "watch replicasets.apps"]


@pytest.mark.parametrize("code", [403, 404, 405])
def test_a_server_that_answers_no_reviews_has_nothing_missing(tmp_path: Path, code: int) -> None:
    server = ReviewingServer(*[code] * TRIES, allowed="")

    assert missing(tmp_path, server) == []


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_review_that_failed_is_repeated(tmp_path: Path, code: int) -> None:
    server = ReviewingServer(*[code] * (TRIES - 1), allowed="list")

    assert missing(tmp_path, server) == ["watch pods"]
    assert server.asked == {"list": TRIES, "watch": TRIES}


@pytest.mark.parametrize(
    ("code", "tries"),
    [
        pytest.param(400, 1, id="a refusal is not repeated"),
        pytest.param(500, TRIES, id="a failure is repeated a few times"),
    ],
)
def test_a_review_that_stays_refused_is_raised(tmp_path: Path, code: int, tries: int) -> None:
    server = ReviewingServer(*[code] * (2 * TRIES))

    with pytest.raises(ApiError, match=f"refused with {code}") as caught:
        missing(tmp_path, server)

    assert (caught.value.code, max(server.asked.values())) == (code, tries)


def test_a_server_that_cannot_be_reached_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="cannot reach the API server"):
        ask(tmp_path, "http://127.0.0.1:1", lambda one: missing_permissions(one, PODS_ONLY))
