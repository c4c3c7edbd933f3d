"""Selecting: label and field selectors in query syntax."""

import pytest

from bayplan.apiserver.registry.query_selectors import make_matcher
from bayplan.apiserver.registry.resource_table import BY_KIND, BY_STORAGE, selectable_fields
from bayplan.apiserver.registry.status_errors import StatusError
from bayplan.apiserver.store.records import Record

POD = {
    "metadata": {"name": "web", "namespace": "prod"},
    "spec": {"nodeName": "n1", "schedulerName": "mine"},
    "status": {"phase": "Running"},
}
LABELS = {"app": "web", "tier": "front", "size": "3"}


def record() -> Record:
    return Record(("prod", "web"), "u", 1, b"{}", LABELS, selectable_fields("pods", POD))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("app=web", True, id="equal"),
        pytest.param("app==web,tier=front", True, id="both"),
        pytest.param("app=web,tier=back", False, id="one of them not"),
        pytest.param("app!=web", False, id="not equal"),
        pytest.param("none!=web", True, id="not equal to what is absent"),
        pytest.param("app in (web, db)", True, id="in"),
        pytest.param("app notin (web,db)", False, id="not in"),
        pytest.param("none notin (web)", True, id="absent is not in"),
        pytest.param("app", True, id="exists"),
        pytest.param("!app", False, id="does not exist"),
        pytest.param("!none , tier", True, id="with spaces"),
        pytest.param("size>2", True, id="greater"),
        pytest.param("size<2", False, id="less"),
        pytest.param("app=", False, id="empty value"),
    ],
)
def test_labels(selector: str, expected: bool) -> None:
    matches = make_matcher(BY_STORAGE["pods"], selector, "")

    assert matches is not None
    assert matches(record()) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("metadata.name=web", True, id="name"),
        pytest.param("metadata.namespace!=prod", False, id="namespace"),
        pytest.param("spec.nodeName=n1,status.phase=Running", True, id="both"),
        pytest.param("spec.nodeName=", False, id="no node"),
        pytest.param("status.phase!=Succeeded,status.phase!=Failed", True, id="neither"),
        pytest.param("spec.schedulerName=default-scheduler", False, id="scheduler"),
    ],
)
def test_fields(selector: str, expected: bool) -> None:
    matches = make_matcher(BY_STORAGE["pods"], "", selector)

    assert matches is not None
    assert matches(record()) is expected


def test_the_other_version_of_events_has_other_names() -> None:
    event = {"involvedObject": {"name": "web", "kind": "Pod"}, "reportingComponent": "sched"}
    kept = Record(("default", "e"), "u", 1, b"{}", None, selectable_fields("events", event))

    matches = make_matcher(
        BY_KIND["events.k8s.io", "Event"],
        "",
        "regarding.name=web,reportingController=sched",
    )

    assert matches is not None
    assert matches(kept)


def test_without_selectors_all_match() -> None:
    assert make_matcher(BY_STORAGE["pods"], "", "") is None


@pytest.mark.parametrize(
    ("labels", "fields"),
    [
        pytest.param("a b", "", id="two words"),
        pytest.param("app in web", "", id="in without brackets"),
        pytest.param("=x", "", id="no key"),
        pytest.param("a=b=c", "", id="two equal signs"),
        pytest.param("app=ä", "", id="no label value"),
        pytest.param("", "spec.image=x", id="unknown field"),
        pytest.param("", "spec.nodeName", id="no value"),
    ],
)
def test_refused(labels: str, fields: str) -> None:
    with pytest.raises(StatusError) as caught:
        make_matcher(BY_STORAGE["pods"], labels, fields)

    assert caught.value.code == 400
