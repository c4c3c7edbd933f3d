"""Extender: requests to a web service, and its answers."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.config.types import Extender as ExtenderConfig
from bayplan.config.types import ExtenderTLS, ManagedResource
from bayplan.errors import ApiError, ConfigError, ExtenderError
from bayplan.framework.victims import Victims
from bayplan.scheduler.extender import Filtered, HTTPExtender, make_http_transport
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.extenders import FakeExtender

URL = "http://127.0.0.1:1"
NODES = [make_node("a"), make_node("b")]
POD = make_pod("p", uid="1")
GPU = "example.com/gpu"


def make_extender(fake: FakeExtender, **config: Any) -> HTTPExtender:
    verbs = {
        "filter_verb": "filter",
        "prioritize_verb": "prioritize",
        "preempt_verb": "preempt",
        "bind_verb": "bind",
    }
    given = {"url_prefix": URL, "node_cache_capable": True, "weight": 1, **verbs, **config}
    return HTTPExtender(ExtenderConfig(**given), fake)


# Requests


def test_names_are_sent_to_an_extender_that_caches_the_nodes() -> None:
    fake = FakeExtender(filter={"NodeNames": ["a"]})

    make_extender(fake).filter(POD, NODES)

    (asked,) = fake.asked
    assert asked.url == f"{URL}/filter"
    assert asked.args.keys() == {"Pod", "Nodes", "NodeNames"}
    assert asked.args["Nodes"] is None
    assert asked.args["NodeNames"] == ["a", "b"]
    assert asked.args["Pod"]["metadata"] == {"name": "p", "namespace": "default", "uid": "1"}


def test_whole_nodes_are_sent_to_one_that_does_not() -> None:
    fake = FakeExtender(prioritize=[])

    make_extender(fake, node_cache_capable=False).prioritize(POD, NODES)

    (asked,) = fake.asked
    assert asked.args["NodeNames"] is None
    items = asked.args["Nodes"]["items"]
    assert [item["metadata"]["name"] for item in items] == ["a", "b"]
    assert items[0]["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}


@pytest.mark.parametrize("prefix", [URL, f"{URL}/", f"{URL}//"])
def test_the_verb_follows_one_slash(prefix: str) -> None:
    fake = FakeExtender(filter={})

    make_extender(fake, url_prefix=prefix).filter(POD, NODES)

    assert fake.asked[0].url == f"{URL}/filter"


@pytest.mark.parametrize(
    ("given", "waits"),
    [
        pytest.param(0.0, 5.0, id="none given"),
        pytest.param(0.25, 0.25, id="as given"),
    ],
)
def test_timeout(given: float, waits: float) -> None:
    fake = FakeExtender(filter={})

    make_extender(fake, http_timeout_s=given).filter(POD, NODES)

    assert fake.asked[0].timeout_s == waits


def test_bind_names_pod_and_node() -> None:
    fake = FakeExtender(bind={})

    make_extender(fake).bind(POD, "a")

    sent = {"PodName": "p", "PodNamespace": "default", "PodUID": "1", "Node": "a"}
    assert fake.asked[0].args == sent


VICTIM = make_pod("v", uid="v1", node_name="a")
TABLE = make_table(*NODES, pods=[VICTIM])


@pytest.mark.parametrize("cached", [True, False])
def test_victims_are_sent_by_uid_or_whole(cached: bool) -> None:
    fake = FakeExtender(preempt={})

    make_extender(fake, node_cache_capable=cached).process_preemption(
        POD, {"a": Victims("a", [VICTIM], 2)}, TABLE
    )

    args = fake.asked[0].args
    used, unused = ("NodeNameToMetaVictims", "NodeNameToVictims")[:: 1 if cached else -1]
    assert args[unused] is None
    assert args[used]["a"]["NumPDBViolations"] == 2
    (sent,) = args[used]["a"]["Pods"]
    assert sent == {"UID": "v1"} if cached else sent["metadata"]["name"] == "v"


# Answers


@pytest.mark.parametrize(
    ("cached", "answer", "filtered"),
    [
        pytest.param(True, {"NodeNames": ["b", "a"]}, Filtered(["b", "a"], {}, {}), id="in order"),
        pytest.param(True, {"nodenames": ["b"]}, Filtered(["b"], {}, {}), id="in any case"),
        pytest.param(True, {"NodeNames": []}, Filtered([], {}, {}), id="none"),
        pytest.param(True, {"NodeNames": ["a", "a"]}, Filtered(["a"], {}, {}), id="twice is once"),
        pytest.param(True, {}, Filtered([], {}, {}, False), id="an empty answer has no nodes"),
        pytest.param(True, None, Filtered([], {}, {}, False), id="null has no nodes"),
        pytest.param(
            True,
            {"Nodes": {"items": [{"metadata": {"name": "b"}}]}},
            Filtered(["b"], {}, {}, False),
            id="nodes where names were expected",
        ),
        pytest.param(
            False,
            {"nodes": {"Items": [{"Metadata": {"Name": "a"}}]}, "NodeNames": ["b"]},
            Filtered(["a"], {}, {}, False),
            id="whole nodes",
        ),
        pytest.param(False, {"NodeNames": ["a"]}, Filtered([], {}, {}, False), id="names unread"),
        pytest.param(
            True,
            {
                "NodeNames": ["a"],
                "FailedNodes": {"b": "busy"},
                "FailedAndUnresolvableNodes": {"c": "broken"},
                "Error": "",
            },
            Filtered(["a"], {"b": "busy"}, {"c": "broken"}),
            id="why others are not among them",
        ),
    ],
)
def test_filter_answers(cached: bool, answer: Any, filtered: Filtered) -> None:
    extender = make_extender(FakeExtender(filter=answer), node_cache_capable=cached)

    assert extender.filter(POD, NODES) == filtered


def test_without_a_verb_nothing_is_asked() -> None:
    fake = FakeExtender()
    extender = make_extender(fake, filter_verb="", prioritize_verb="")

    assert extender.filter(POD, NODES) == Filtered(["a", "b"], {}, {})
    assert extender.prioritize(POD, NODES) == [("a", 0), ("b", 0)]
    assert fake.asked == []


def test_prioritize_answers() -> None:
    answer = [{"Host": "a", "Score": 3}, {"host": "x", "score": 10}, {"Host": "b"}]

    scores = make_extender(FakeExtender(prioritize=answer)).prioritize(POD, NODES)

    assert scores == [("a", 3), ("x", 10), ("b", 0)]


def test_preempt_answers() -> None:
    said = {"a": {"Pods": [{"UID": "v1"}], "NumPDBViolations": 1}, "b": None}

    extender = make_extender(FakeExtender(preempt={"NodeNameToMetaVictims": said}))

    victims = extender.process_preemption(POD, {}, TABLE)
    assert victims == {"a": Victims("a", [VICTIM], 1), "b": Victims("b", [], 0)}


PREEMPT_UNKNOWN_POD = {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "v1"}]}}}
PREEMPT_UNKNOWN_NODE: dict[str, Any] = {"NodeNameToMetaVictims": {"x": {}}}


@pytest.mark.parametrize(
    ("verb", "answer", "text"),
    [
        pytest.param(
            "filter",
            ApiError("x", 500),
            f"failed filter with extender at URL {URL}/filter, code 500",
            id="not 200",
        ),
        pytest.param("bind", ApiError("no answer within 5s"), "no answer within 5s", id="slow"),
        pytest.param("filter", {"Error": "out of order"}, "out of order", id="an error"),
        pytest.param("bind", {"error": "taken"}, "taken", id="an error of bind"),
        pytest.param(
            "filter",
            {"NodeNames": ["a", "x"]},
            f'extender "{URL}" claims a filtered node "x" which is not found in the input node list',
            id="a node it was not asked about",
        ),
        pytest.param(
            "filter",
            b"<html>",
            f"answer of extender {URL}/filter: expected JSON; got",
            id="no JSON",
        ),
        pytest.param(
            "filter",
            {"NodeNames": "a"},
            f"answer of extender {URL}: NodeNames: expected a list; got a text",
            id="no list",
        ),
        pytest.param("filter", [], "expected an object; got a list", id="no object"),
        pytest.param("filter", {"NodeNames": [1]}, "expected a text", id="no names"),
        pytest.param("filter", {"FailedNodes": {"a": 1}}, "expected a text", id="no reasons"),
        pytest.param("prioritize", {}, "expected a list; got an object", id="no list of scores"),
        pytest.param("prioritize", [{"Score": 1.5}], "expected a whole number", id="a fraction"),
        pytest.param("prioritize", [{"Score": 2**63}], "64 bits", id="too large a score"),
        pytest.param(
            "preempt",
            PREEMPT_UNKNOWN_POD,
            f"extender: {URL} claims to preempt pod (UID: v1) on node: b, but the pod is not found "
            "on that node",
            id="a pod that is not there",
        ),
        pytest.param(
            "preempt",
            PREEMPT_UNKNOWN_NODE,
            'nodeinfo not found for node name "x"',
            id="victims on no node",
        ),
    ],
)
def test_errors(verb: str, answer: Any, text: str) -> None:
    extender = make_extender(FakeExtender(**{verb: answer}))
    ask: dict[str, Callable[[], Any]] = {
        "filter": lambda: extender.filter(POD, NODES),
        "prioritize": lambda: extender.prioritize(POD, NODES),
        "preempt": lambda: extender.process_preemption(POD, {}, TABLE),
        "bind": lambda: extender.bind(POD, "a"),
    }

    with pytest.raises(ExtenderError) as raised:
        ask[verb]()

    assert text in str(raised.value)


# Calls


def with_resources(where: str, kind: str) -> Pod:
    container = {"name": "c", "resources": {kind: {GPU: "1"}}}
    return make_pod(spec={"containers": [{"name": "x"}], where: [container]})


@pytest.mark.parametrize(
    ("managed", "pod", "interested"),
    [
        pytest.param([], make_pod(), True, id="manages nothing: all pods"),
        pytest.param([GPU], make_pod(cpu="1"), False, id="does not use it"),
        pytest.param([GPU], with_resources("containers", "requests"), True, id="requests"),
        pytest.param([GPU], with_resources("containers", "limits"), True, id="limits"),
        pytest.param([GPU], with_resources("initContainers", "requests"), True, id="when starting"),
        pytest.param(["x.com/y"], with_resources("containers", "limits"), False, id="another"),
    ],
)
def test_interest(managed: list[str], pod: Pod, interested: bool) -> None:
    resources = tuple(ManagedResource(name) for name in managed)

    extender = make_extender(FakeExtender(), managed_resources=resources)

    assert extender.is_interested(pod) is interested


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        pytest.param(
            ExtenderTLS(insecure=True, ca_data=b"x"),
            "specifying a root certificates file with the insecure flag is not allowed",
            id="insecure with a CA",
        ),
        pytest.param(ExtenderTLS(ca_file="/nowhere/ca.pem"), "cannot be used", id="no such file"),
        pytest.param(ExtenderTLS(ca_data=b"nonsense"), "cannot be used", id="no certificate"),
        pytest.param(
            ExtenderTLS(cert_data=b"x", key_data=b"y"), "cannot be used", id="no client certificate"
        ),
    ],
)
def test_certificates_that_cannot_work(tls: ExtenderTLS, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_http_transport(ExtenderConfig(url_prefix="https://x", tls_config=tls))
