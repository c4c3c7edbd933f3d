"""Refusals of kubectl drain, in its words."""

from typing import Any

import pytest

from bayplan.answers.what_if import Drain, Upgrade, ask_what_if
from bayplan.answers.what_if.answer import WhatIfAnswer
from bayplan.api.pod import Pod
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned

SCRATCH = {"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}]}
LOCAL = "cannot delete Pods with local storage (use --delete-emptydir-data to override)"
UNMANAGED = "cannot delete Pods that declare no controller (use --force to override)"
DAEMONS = "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"


def make_owned(name: str, kind: str = "ReplicaSet", node: str = "a", **more: Any) -> Pod:
    return owned(make_pod(name, node_name=node, **more), "owner", kind)


def ask(change: Drain | Upgrade, *objects: Any) -> WhatIfAnswer:
    nodes = [make_node("a"), make_node("b"), make_node("spare")]
    return ask_what_if([*nodes, *objects], [change], Settings(seed=0))


def causes(answer: WhatIfAnswer) -> list[str]:
    return [stall.cause for course in answer.courses for stall in course.stalls]


@pytest.mark.parametrize(
    ("flags", "refusals"),
    [
        pytest.param({}, [LOCAL, UNMANAGED], id="neither flag"),
        pytest.param({"delete_emptydir_data": True}, [UNMANAGED], id="only data"),
        pytest.param({"force": True}, [LOCAL], id="only force"),
        pytest.param({"force": True, "delete_emptydir_data": True}, [], id="both"),
        pytest.param(
            {"force": True, "delete_emptydir_data": True, "ignore_daemonsets": False},
            [DAEMONS],
            id="daemons are not ignored",
        ),
    ],
)
def test_refusals_and_the_flags_that_override_them(
    flags: dict[str, Any], refusals: list[str]
) -> None:
    pods = {
        LOCAL: make_owned("cache", spec=SCRATCH),
        UNMANAGED: make_pod("bare", node_name="a"),
        DAEMONS: make_owned("logs", "DaemonSet", spec=SCRATCH),
    }

    answer = ask(Drain(("a",), **flags), *pods.values())

    errors = [f"{reason}: default/{pods[reason].name}" for reason in refusals]
    listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    expected = [f'unable to drain node "a" due to error: {listed}'] if errors else []
    assert causes(answer) == expected
    assert answer.is_worse == bool(refusals)
    assert sorted(change.name for change in answer.pods) == ([] if refusals else ["bare", "cache"])


def test_other_nodes_are_drained_beside_one_that_is_refused() -> None:
    answer = ask(Drain(("a", "b")), make_owned("cache", spec=SCRATCH), make_owned("web", node="b"))

    assert [change.name for change in answer.pods] == ["web"]
    (course,) = answer.drains
    assert (course.pods, course.evicted, course.drained) == (2, 1, 1)
    assert course.to_dict()["stalls"][0]["refused"] is True


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            make_pod(
                "m", node_name="a", spec=SCRATCH, annotations={"kubernetes.io/config.mirror": "x"}
            ),
            id="mirror pods are skipped",
        ),
        pytest.param(
            make_pod("done", node_name="a", spec=SCRATCH, status={"phase": "Succeeded"}),
            id="finished pods can be removed",
        ),
    ],
)
def test_pods_that_refuse_no_drain(pod: Pod) -> None:
    assert causes(ask(Drain(("a",)), pod)) == []


def test_budgets_do_not_count_when_eviction_is_disabled() -> None:
    labels = {"app": "web"}
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": labels}}
    budget = make_object("PodDisruptionBudget", "web", namespace="default", spec=spec)
    pod = make_owned("web", labels=labels)

    assert causes(ask(Drain(("a",)), pod, budget)) == ["default/web allows no disruption"]
    answer = ask(Drain(("a",), disable_eviction=True), pod, budget)
    assert (causes(answer), [change.name for change in answer.pods]) == ([], ["web"])


def test_an_upgrade_leaves_a_node_that_is_refused() -> None:
    pod = make_owned("cache", spec=SCRATCH)

    refused = ask(Upgrade(("a",)), pod)
    done = ask(Upgrade(("a",), delete_emptydir_data=True), pod)

    assert causes(refused) == [f'unable to drain node "a" due to error: {LOCAL}: default/cache']
    assert refused.upgrades[0].replaced == {}
    assert list(done.upgrades[0].replaced) == ["a"]
