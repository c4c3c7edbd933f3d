"""Shadow run: every decision gets a verdict, each difference names a plugin, and the account is bounded."""

from typing import Any

import msgspec
import pytest

from bayplan.answers.judged_decision import Agreement, JudgedDecision
from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.shadow.decision_account import DecisionAccount
from bayplan.shadow.gain import compute_gain
from bayplan.shadow.report import headline, report_tree
from bayplan.shadow.shadow_run import ShadowRun
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod

Event = tuple[float, Any]
ZONE = "topology.kubernetes.io/zone"


def pod(name: str, node: str = "", **more: Any) -> Pod:
    more.setdefault("cpu", "1")
    return make_pod(name, uid=f"uid-{name}", node_name=node, **more)


def refused(message: str, nominated: str = "") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {"conditions": [{**condition, "message": message}], "nominatedNodeName": nominated}


def judge(
    objects: list[Any], events: list[Event], **options: Any
) -> tuple[ShadowRun, list[JudgedDecision]]:
    decisions: list[JudgedDecision] = []
    run = ShadowRun(
        objects, Settings(), on_decision=lambda one, _: decisions.append(one), **options
    )
    for at_s, obj in events:
        is_deleted = isinstance(obj, tuple)
        run.take(at_s, obj[0] if is_deleted else obj, is_deleted=is_deleted)
        run.look_at_waits(at_s)
    run.finish(events[-1][0] + 10)
    decisions.sort(key=lambda one: one.number)
    return run, decisions


def agreements(decisions: list[JudgedDecision]) -> list[str]:
    return [str(one.agreement) for one in decisions]


APP = {"app": "web"}
SELECTED = {"labelSelector": {"matchLabels": APP}}
BROKEN = [
    pytest.param("NodeResourcesFit", {}, {"cpu": "8"}, id="amounts"),
    pytest.param("TaintToleration", {"taints": ["gpu=yes:NoSchedule"]}, {}, id="taints"),
    pytest.param("NodeUnschedulable", {"unschedulable": True}, {}, id="cordon"),
    pytest.param("NodeAffinity", {}, {"spec": {"nodeSelector": {"disk": "fast"}}}, id="selector"),
    pytest.param(
        "InterPodAffinity",
        {},
        {
            "labels": APP,
            "spec": {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {**SELECTED, "topologyKey": "kubernetes.io/hostname"}
                        ]
                    }
                }
            },
        },
        id="anti-affinity",
    ),
    pytest.param(
        "PodTopologySpread",
        {},
        {
            "labels": APP,
            "spec": {
                "topologySpreadConstraints": [
                    {
                        **SELECTED,
                        "maxSkew": 1,
                        "topologyKey": ZONE,
                        "whenUnsatisfiable": "DoNotSchedule",
                    }
                ]
            },
        },
        id="spread",
    ),
]


@pytest.mark.parametrize(("plugin", "node", "more"), BROKEN)
def test_a_broken_rule_is_different_and_names_the_plugin(
    plugin: str, node: dict[str, Any], more: dict[str, Any]
) -> None:
    """The other scheduler breaks the rule of one plugin."""
    labels = {"kubernetes.io/hostname": "bad", ZONE: "a"}
    bad = make_node("bad", cpu="4", labels=labels, **node)
    good = make_node("good", cpu="16", labels={ZONE: "b", "disk": "fast"})
    there = pod("there", "bad", cpu="100m", labels=APP)

    run, decisions = judge(
        [bad, good, there], [(1.0, pod("p", **more)), (1.1, pod("p", "bad", **more))]
    )

    assert agreements(decisions) == ["different"]
    (found,) = run.account.differences
    assert (found.plugins, found.node, found.here) == ([plugin], "bad", "good")
    assert found.reason.startswith(f"{plugin}: ")
    assert run.account.schedulers["default-scheduler"].different_by_plugin == {plugin: 1}
    (hint,) = run.account.hints()
    assert (
        f"bound to nodes that are refused here ({plugin}): a webhook that changes bindings" in hint
    )


@pytest.mark.parametrize(
    ("message", "agreement", "plugins"),
    [
        pytest.param("0/1 nodes are available: 1 Insufficient cpu.", "same", [], id="the same"),
        pytest.param(
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption"
            " victims found for incoming pod.",
            "same",
            [],
            id="with preemption",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) have no licence.",
            "different",
            ["NodeResourcesFit"],
            id="a reason of no plugin",
        ),
    ],
)
def test_messages_of_refusals_are_compared(
    message: str, agreement: str, plugins: list[str]
) -> None:
    run, decisions = judge(
        [make_node("n", cpu="4")],
        [(1.0, pod("p", cpu="8")), (1.1, pod("p", cpu="8", status=refused(message)))],
    )

    assert agreements(decisions) == [agreement]
    assert [one.plugins for one in run.account.differences] == ([plugins] if plugins else [])
    hints = list(run.account.hints())
    assert bool(hints) == bool(plugins)
    assert all('"node(s) have no licence"' in hint for hint in hints)


def test_a_refusal_where_a_node_has_room_is_different() -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu."
    run, decisions = judge(
        [make_node("n", cpu="4")], [(1.0, pod("p")), (1.1, pod("p", status=refused(message)))]
    )

    assert agreements(decisions) == ["different"]
    assert run.account.differences[0].result == "pending then"
    assert "1 node has room" in run.account.differences[0].reason


def test_other_changes_of_a_refused_pod_are_no_attempt() -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu."
    held = pod("p", cpu="8", status=refused(message))
    _, decisions = judge(
        [make_node("n", cpu="4")],
        [
            (1.0, pod("p", cpu="8")),
            (1.1, held),
            (20.0, make_node("n", cpu="16")),
            (40.0, held.replace(labels={"seen": "yes"})),
        ],
    )

    assert agreements(decisions) == ["same"]


def test_a_state_from_before_the_arrival_is_another_state() -> None:
    small = make_node("small", cpu="4")
    _, decisions = judge(
        [small],
        [
            (6.8, small.replace(unschedulable=True)),
            (7.0, pod("p")),
            (7.1, pod("p", "small")),
        ],
    )

    assert agreements(decisions) == ["other state"]


def test_a_scheduler_without_a_profile_is_judged_with_the_default_one() -> None:
    theirs = {"schedulerName": "another"}
    run, decisions = judge(
        [make_node("n", cpu="4")],
        [
            (1.0, pod("p", spec=theirs)),
            (1.1, pod("p", "n", spec=theirs)),
            (20.0, pod("q")),
            (20.1, pod("q", "n")),
        ],
    )

    assert agreements(decisions) == ["same", "same"]
    found = {name: one.has_profile for name, one in run.account.schedulers.items()}
    assert found == {"another": False, "default-scheduler": True}


CORDONED = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
VICTIM = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


@pytest.mark.parametrize(
    ("victim", "agreement"),
    [
        pytest.param("low", "same", id="the pod of the lowest priority"),
        pytest.param("middle", "different", id="another pod"),
    ],
)
def test_victims_are_compared(victim: str, agreement: str) -> None:
    node = make_node("n", cpu="4")
    there = {
        "low": pod("low", "n", cpu="2", priority=1),
        "middle": pod("middle", "n", cpu="2", priority=5),
    }
    high: dict[str, Any] = {"cpu": "2", "priority": 9}
    message = "0/1 nodes are available: 1 Insufficient cpu."
    leaving = there[victim].replace(
        status=make_pod("x", status={"conditions": [VICTIM]}).status,
        deletion_timestamp="2026-01-01T00:00:00Z",
    )
    run, decisions = judge(
        [node, *there.values()],
        [
            (1.0, pod("high", **high)),
            (1.1, leaving),
            (1.11, pod("high", **high, status=refused(message, "n"))),
            (2.0, (leaving,)),
        ],
    )

    assert agreements(decisions) == [agreement]
    assert decisions[0].preemption is not None
    assert decisions[0].preemption.chosen_victims == ("default/low",)
    assert run.account.schedulers["default-scheduler"].preemptions == 1


def test_a_nomination_after_the_victim_is_gone_is_no_binding() -> None:
    low = pod("low", "n", cpu="4", priority=1)
    high: dict[str, Any] = {"cpu": "3", "priority": 9}
    message = "0/2 nodes are available: 2 Insufficient cpu."
    _, decisions = judge(
        [
            make_node("m", cpu="4"),
            make_node("n", cpu="4"),
            low,
            pod("other", "m", cpu="2", priority=9),
        ],
        [
            (1.0, pod("high", **high)),
            (1.1, (low,)),
            (1.11, pod("high", **high, status=refused(message, "n"))),
            (1.2, pod("small")),
            (1.3, pod("small", "n")),  # room on n is kept for the other pod, and not used yet
        ],
    )

    assert agreements(decisions) == ["same", "same"]


def test_a_node_may_change_after_many_pods_that_changed_later() -> None:
    cordoned = make_node("big", cpu="8", unschedulable=True)
    gone: list[Event] = [(1.06, (pod(f"old{i}", "m"),)) for i in range(40)]
    _, decisions = judge(
        [make_node("big", cpu="8"), make_node("m", cpu="64"), *(one[0] for _, one in gone)],
        [
            (1.0, pod("p", cpu="30")),
            (1.05, pod("p", cpu="30", status=refused(CORDONED))),
            *gone,
            (1.07, cordoned),
        ],
    )

    assert agreements(decisions) == ["same"]


def test_the_label_of_nodes_that_a_scheduler_leaves_out_is_named() -> None:
    nodes = [
        make_node(f"n{i}", cpu=f"{8 + 8 * (i > 2)}", labels={"pool": f"p{i // 3}"})
        for i in range(5)
    ]
    events: list[Event] = []
    for i in range(6):
        events += [(10.0 * i + 1, pod(f"p{i}")), (10.0 * i + 1.1, pod(f"p{i}", f"n{i % 3}"))]
    # the best one of the two large nodes is another one after this pod
    events.insert(6, (25.0, pod("other", "n3")))

    run, _ = judge(nodes, events)

    (hint,) = run.account.hints()
    assert "and none with the label pool=p1: an extender, a plugin" in hint


def sampled_run() -> ShadowRun:
    """Of 150 nodes two are best; the pod went to a lower one."""
    nodes = [make_node(f"n{i:03}", cpu="8") for i in range(150)]
    nodes[8], nodes[9] = make_node("n008", cpu="32"), make_node("n009", cpu="32")
    run, _ = judge(nodes, [(1.0, pod("p")), (1.1, pod("p", "n010"))])
    return run


def test_sampled_decisions_give_the_points_lost() -> None:
    run = sampled_run()

    gain = compute_gain(run.account, run.view, run.settings)

    assert run.account.count_of(Agreement.SAMPLED) == 1
    lost = gain.points_lost_by_plugin["NodeResourcesFit"]
    assert gain.points_lost == sum(one.low for one in gain.points_lost_by_plugin.values()) > 0
    assert lost.low == lost.high > 0


def test_a_pod_that_waits_beside_room_is_found() -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu."
    full = pod("full", "n", cpu="4")
    ticks: list[Event] = [(10.0 + step, pod(f"tick-{step}", cpu="9")) for step in range(30)]
    run, _ = judge(
        [make_node("n", cpu="4"), full],
        [
            (1.0, pod("p", cpu="4")),
            (1.1, pod("p", cpu="4", status=refused(message))),
            (2.0, (full,)),
            *ticks,
            (45.0, pod("p", "n", cpu="4")),
        ],
    )

    waits = run.account.waits
    assert (waits.pods, waits.longest_pod) == (1, "default/p")
    assert 20 <= waits.seconds <= 43


def test_the_account_is_read_again_as_it_was_written() -> None:
    account = sampled_run().account

    again = msgspec.convert(msgspec.to_builtins(account), DecisionAccount)

    assert again == account
    assert headline(again).startswith("1 decision: 0 same, 1 sampled")
    assert report_tree(again, None)["summary"]["sampled"] == 1


def test_decisions_that_are_not_judged_are_counted() -> None:
    run = ShadowRun([make_node("n", cpu="4")], Settings(default_config()))
    run.take(1.0, pod("p"))
    run.take(1.1, pod("p", "n"), is_judged=False)
    run.finish(2.0)

    assert run.follower.skipped == 1
    assert run.account.decisions == 0
