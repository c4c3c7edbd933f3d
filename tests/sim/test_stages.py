"""Stages of pods in simulations: starting late, images that are not pulled, probes, exit codes, restarts."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.errors import DecodeError, InputError
from bayplan.sim import Simulation, SimulationReport, Timeline
from bayplan.testing.builders import make_node, make_object
from tests.rig.objects import decoded


def notes(**given: str) -> dict[str, str]:
    return {f"bayplan.dev/{name.replace('_', '-')}": value for name, value in given.items()}


def pod_tree(policy: str | None = None, **given: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "app:1"}]}
    if policy:
        spec["restartPolicy"] = policy
    return {"metadata": {"labels": {"app": "web"}, "annotations": notes(**given)}, "spec": spec}


def make_deployment(replicas: int = 2, **given: str) -> Any:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": pod_tree(**given),
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }
    return make_object("Deployment", "web", spec=spec)


def roll_out(at: str, **given: str) -> Timeline:
    """A new template with these stages."""
    patch = {
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": pod_tree(**given)},
    }
    tree = {"kind": "Timeline", "events": [{"at": at, "change": [patch]}]}
    timeline = decode_object({"apiVersion": "bayplan.dev/v1", **tree})
    assert isinstance(timeline, Timeline)
    return timeline


def stage_document(**spec: Any) -> Any:
    return decode_object({"apiVersion": "bayplan.dev/v1", "kind": "PodStages", "spec": spec})


def make_job(policy: str, backoff_limit: int = 2, **given: str) -> Any:
    spec = {"template": pod_tree(policy, **given), "backoffLimit": backoff_limit}
    return make_object("Job", "batch", spec=spec)


def run(*objects: Any, until_s: float | None = None) -> SimulationReport:
    return Simulation([make_node("n", cpu="64"), *objects]).run(until_s=until_s)


def created(report: SimulationReport) -> list[float]:
    return sorted(result.created_s for result in report.pods)


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        pytest.param({"ready_after": "0s"}, [0, 0, 100, 100], id="ready at once"),
        pytest.param({"ready_after": "30s"}, [0, 0, 100, 130], id="probes that fail at first"),
        pytest.param({"start_delay": "20s"}, [0, 0, 100, 120], id="containers that start late"),
        pytest.param(
            {"image_pull_error": "40s", "ready_after": "5s"},
            [0, 0, 100, 145],
            id="an image that is pulled late",
        ),
        pytest.param(
            {"image_pull_error": "forever"}, [0, 0, 100], id="an image that is never pulled"
        ),
        pytest.param(
            {"duration": "10s", "exit_code": "1", "ready_after": "15s"},
            [0, 0, 100],
            id="a container that crashes before it is ready",
        ),
    ],
)
def test_a_rollout_waits_until_pods_are_ready(given: dict[str, str], steps: list[float]) -> None:
    report = run(make_deployment(), roll_out("100s", **given))

    assert created(report) == steps


def test_the_duration_counts_from_the_start_of_the_containers() -> None:
    pod = {**pod_tree(start_delay="20s", image_pull_error="40s", duration="10s"), "kind": "Pod"}
    pod["metadata"] |= {"name": "p"}

    (result,) = run(decode_object({"apiVersion": "v1", **pod})).pods

    assert result.finished_s == 70


@pytest.mark.parametrize(
    ("policy", "given", "expected"),
    [
        pytest.param("Never", {"exit_code": "0"}, [0], id="success"),
        pytest.param("Never", {"exit_code": "1"}, [0, 15, 40], id="failures, with a back-off"),
        pytest.param("OnFailure", {"exit_code": "1"}, [0], id="restarts within the pod"),
    ],
)
def test_a_job_replaces_failed_pods(
    policy: str, given: dict[str, Any], expected: list[float]
) -> None:
    report = run(make_job(policy, duration="5s", **given))

    assert created(report) == expected


def test_the_pods_of_a_failed_job_have_failed() -> None:
    failing = make_job("Never", duration="5s", exit_code="1", backoff_limit=1)

    simulation = Simulation([make_node("n"), failing])
    simulation.run()

    pods = {pod.status.phase for pod in simulation.cluster.list("Pod")}
    assert pods == {"Failed"}


def test_crashes_go_on_until_the_end_of_the_run() -> None:
    deployment = make_deployment(1, duration="30s", exit_code="1")

    simulation = Simulation([make_node("n"), deployment])
    simulation.run(until_s=86_400)

    (pod,) = simulation.cluster.list("Pod")
    assert simulation.clock.monotonic() == 86_400
    assert pod.status.phase == "Running"


def test_without_an_end_crashes_are_played_for_a_while() -> None:
    simulation = Simulation([make_node("n"), make_deployment(1, duration="30s", exit_code="1")])
    simulation.run()

    (pod,) = simulation.cluster.list("Pod")
    ready = pod.status.condition("Ready")
    assert ready is not None
    assert ready.status == "False"
    assert simulation.clock.monotonic() == 8 * 30 + 0 + 10 + 20 + 40 + 80 + 160 + 300


def test_a_pod_that_is_restarted_after_steady_runs_stays_ready() -> None:
    simulation = Simulation([make_node("n"), make_deployment(1, duration="10m", exit_code="0")])
    simulation.run()

    (pod,) = simulation.cluster.list("Pod")
    ready = pod.status.condition("Ready")
    assert ready is None or ready.status == "True"


def test_a_document_selects_pods_and_annotations_override_it() -> None:
    stages = stage_document(
        selector={"matchLabels": {"app": "web"}}, readyAfter="30s", startDelay="5s"
    )

    report = run(stages, make_deployment(), roll_out("100s", ready_after="10s"))

    assert created(report) == [0, 0, 100, 115]


def test_a_running_pod_of_the_input_is_ready() -> None:
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", **pod_tree(ready_after="1h")}
    pod["metadata"]["name"] = "p"
    pod["spec"]["nodeName"] = "n"
    simulation = Simulation(
        [make_node("n"), decoded(pod), make_object("PodDisruptionBudget", "b", spec=budget)]
    )

    simulation.run()

    (found,) = simulation.cluster.list("PodDisruptionBudget")
    assert found.status.current_healthy == 1


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        pytest.param(
            lambda: make_deployment(exit_code="-1"),
            "spec.template.metadata.annotations[bayplan.dev/exit-code]",
            id="a template",
        ),
        pytest.param(
            lambda: make_object(
                "CronJob",
                "c",
                spec={
                    "schedule": "@daily",
                    "jobTemplate": {"spec": {"template": pod_tree(ready_after="soon")}},
                },
            ),
            "spec.jobTemplate.spec.template.metadata.annotations[bayplan.dev/ready-after]",
            id="the template of a CronJob",
        ),
    ],
)
def test_a_wrong_annotation_is_refused_with_its_path(obj: Any, place: str) -> None:
    with pytest.raises(InputError) as caught:
        run(obj())

    assert place in str(caught.value)


def test_a_wrong_document_is_refused_with_its_path() -> None:
    with pytest.raises(DecodeError) as caught:
        stage_document(readyAfter="soon")

    assert "spec.readyAfter: expected a duration" in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            id="a volume claim",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}, id="a device claim"
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {
                                            "key": "metadata.name",
                                            "operator": "In",
                                            "values": ["n"],
                                        }
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            id="the node pin of a DaemonSet's pod",
        ),
    ],
)
def test_a_pod_with_any_annotation_and_a_spec_that_differs_from_its_template(
    spec: dict[str, Any],
) -> None:
    metadata = {
        "name": "p",
        "namespace": "default",
        "annotations": {"prometheus.io/scrape": "true"},
    }
    pod = decoded({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    Simulation([make_node("n"), pod]).run()
