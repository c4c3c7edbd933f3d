"""Storm: a small number of random requests. `make storm` sends more."""

import sys
from pathlib import Path

import pytest

from tests.security.storm import Asked, asked, is_granted, run


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_random_requests_do_no_harm(tmp_path: Path) -> None:
    report = run(250, 3, tmp_path, limit_s=20.0)

    assert report.problems == []
    assert report.count >= 240
    assert report.statuses[403] > 50
    assert report.statuses[200] > 2
    assert report.grown_mib < 200


@pytest.mark.parametrize(
    ("method", "target", "granted"),
    [
        pytest.param("GET", "/api/v1/namespaces/default/pods/a", True, id="one pod"),
        pytest.param("GET", "/api/v1/namespaces/default/pods", False, id="all pods"),
        pytest.param("GET", "/api/v1/namespaces/other/pods/a", False, id="another namespace"),
        pytest.param("POST", "/api/v1/namespaces/default/pods/a/eviction", True, id="a part"),
        pytest.param("PATCH", "/api/v1/namespaces/default/configmaps/a", True, id="a name"),
        pytest.param("PATCH", "/api/v1/namespaces/default/configmaps/b", False, id="another"),
    ],
)
def test_the_storm_can_tell_what_is_granted(method: str, target: str, granted: bool) -> None:
    question = asked(method, target)

    assert isinstance(question, Asked)
    assert is_granted(question) is granted
