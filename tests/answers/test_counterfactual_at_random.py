"""Random clusters: the reported changes help, and none is superfluous."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.answers import find_counterfactual
from tests.answers.changed_cluster import (
    HOST,
    REQUIRED,
    TAINTS,
    WEB,
    ZONE,
    check,
    make_view,
    spread,
    web_pod,
    zone_node,
)
from tests.rig.random_examples import examples

TAINT = st.sampled_from([*TAINTS, {"key": "soft", "effect": "PreferNoSchedule"}])
NODES = st.lists(
    st.builds(
        lambda zone, cpu, taints, cordoned, disk: {
            "zone": zone,
            "cpu": cpu,
            "taints": taints,
            "unschedulable": cordoned,
            "labels": {"disk": disk} if disk else {},
        },
        st.sampled_from("ab"),
        st.sampled_from(["1", "2", "4"]),
        st.lists(TAINT, max_size=2, unique_by=lambda taint: taint["key"]),
        st.booleans(),
        st.sampled_from(["", "ssd", "hdd"]),
    ),
    min_size=1,
    max_size=3,
)
TERM = st.builds(
    lambda key: {"labelSelector": WEB, "topologyKey": key}, st.sampled_from([ZONE, HOST, "rack"])
)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.sampled_from([{"disk": "ssd"}, {ZONE: "b"}, {"disk": "hdd", ZONE: "a"}]),
        "port": st.just(80),
        "topologySpreadConstraints": st.sampled_from([spread(), spread(topologyKey="rack")]),
        "schedulingGates": st.just([{"name": "wait"}]),
        "affinity": st.builds(
            lambda kind, term: {kind: {REQUIRED: [term]}},
            st.sampled_from(["podAffinity", "podAntiAffinity"]),
            TERM,
        ),
    },
)
RUNNING = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["100m", "500m", "1"]),
        st.sampled_from([{"app": "web"}, {"app": "db"}]),
        st.sampled_from([{}, {"port": 80}, {"priority": 7}]),
    ),
    max_size=6,
)


@settings(max_examples=examples(20), deadline=None)
@given(nodes=NODES, running=RUNNING, wishes=WISHES, cpu=st.sampled_from(["100m", "2", "5"]))
def test_the_reported_changes_help_and_none_is_superfluous(
    nodes: list[dict[str, Any]], running: list[Any], wishes: dict[str, Any], cpu: str
) -> None:
    manifests = [zone_node(f"n{i}", **node) for i, node in enumerate(nodes)]
    for i, (on, size, labels, more) in enumerate(running):
        manifests.append(web_pod(f"r{i}", size, f"n{on % len(nodes)}", labels=labels, **more))
    manifests.append(web_pod(cpu=cpu, **wishes))
    view, pod = make_view(*manifests)

    for name in view.node_names():
        check(find_counterfactual(view, pod, name), manifests, pod)
