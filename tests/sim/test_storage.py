"""Simulations with claims: when pods with storage are bound, the trace, and termination."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.cluster.memory.provisioners import Provisioning
from bayplan.errors import InputError
from bayplan.sim import Simulation, SimulationReport, TraceEntry, read_manifests
from bayplan.testing.builders import make_node, make_object, make_pod
from bayplan.testing.storage import claim_volume, make_claim, make_storage_class, make_volume

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "storage"
DRIVER = "disk.example.com"
FAILED = (
    'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "claim"'
)


def make_class(mode: str = "WaitForFirstConsumer", **annotations: str) -> Any:
    notes = {f"bayplan.dev/provision-{k.replace('_', '-')}": v for k, v in annotations.items()}
    return make_object(
        "StorageClass",
        "late",
        metadata={"annotations": notes},
        provisioner=DRIVER,
        volumeBindingMode=mode,
    )


def uses_claim(name: str = "pod", **fields: Any) -> Any:
    return make_pod(name, spec={"volumes": [claim_volume()]}, **fields)


def run(*objects: Any, **options: Any) -> SimulationReport:
    return Simulation([make_node("n", zone="a"), *objects], **options).run()


def test_a_pod_is_bound_when_its_volume_exists() -> None:
    told: list[TraceEntry] = []

    report = run(make_class(delay="5s"), make_claim(), uses_claim(), trace=told.append)

    (result,) = report.placed
    assert (result.time_s, result.attempts) == (5, 1)
    lines = [(entry.time_s, entry.what, entry.kind) for entry in told]
    assert lines == [
        (0, "created", "Pod"),
        (0, "popped", "Pod"),
        (0, "selected", "PersistentVolumeClaim"),
        (5, "added", "PersistentVolume"),
        (5, "bound", "PersistentVolumeClaim"),
        (5, "bound", "Pod"),
    ]
    assert told[2].details == "n: a volume is to be made there"


def test_a_pod_with_an_immediate_claim_is_retried_when_that_is_bound() -> None:
    report = run(make_class("Immediate", delay="30s"), make_claim(), uses_claim())

    (result,) = report.placed
    assert (result.time_s, result.attempts) == (30, 2)


def test_an_existing_volume_is_bound_by_scheduler_and_controller() -> None:
    told: list[TraceEntry] = []
    volume = make_volume("v", zones=["a"], phase="Pending")

    report = run(make_storage_class(), volume, make_claim(), uses_claim(), trace=told.append)

    assert report.is_complete
    words = [(entry.what, entry.details) for entry in told if entry.kind != "Pod"]
    assert words == [("reserved", "for default/claim"), ("bound", "to v")]


def test_settings_for_all_classes_come_with_the_simulation() -> None:
    slow = Provisioning(delay_s=7, failures=1)

    report = run(make_class(), make_claim(), uses_claim(), provisioning=slow)

    (result,) = report.placed
    assert result.attempts == 2
    assert result.time_s > 14


@pytest.mark.parametrize("delay", ["0s", "3m"])
def test_a_provisioner_that_always_fails_ends_the_simulation(delay: str) -> None:
    report = run(make_class(delay=delay, failures="100%"), make_claim(), uses_claim())

    (result,) = report.pending
    assert result.attempts > 2
    assert result.attempt.message == FAILED


def test_a_provisioner_that_never_answers_ends_with_the_timeout() -> None:
    never = make_class(failures="100%", on_failure="retry")

    (result,) = run(never, make_claim(), uses_claim()).pending

    assert result.attempt.message.endswith("binding volumes: context deadline exceeded")


def test_slow_attempts_are_waited_for() -> None:
    report = run(make_class(delay="3m", failures="3"), make_claim(), uses_claim())

    (result,) = report.placed
    assert result.attempts == 4


def test_a_pod_waits_for_a_missing_claim() -> None:
    later = make_claim(annotations={"bayplan.dev/created-at": "1m"})

    (result,) = run(make_class(), later, uses_claim()).placed

    assert result.time_s == pytest.approx(61, abs=1)


@pytest.mark.parametrize(
    ("notes", "problem"),
    [
        ({"delay": "soon"}, 'expected a duration such as 90s, 5m or 1h30m; got "soon"'),
        ({"failures": "2x"}, 'a number of attempts such as 2, or a share such as 30%; got "2x"'),
        ({"on_failure": "stop"}, 'expected reschedule or retry; got "stop"'),
    ],
)
def test_invalid_annotations_are_rejected(notes: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        run(make_class(**notes))

    name = "-".join(notes).replace("_", "-")
    assert f"storageclass late: metadata.annotations[bayplan.dev/provision-{name}]" in str(
        caught.value
    )
    assert problem in str(caught.value)


def test_the_example_replica_with_data_in_a_full_zone_waits() -> None:
    simulation = Simulation(read_manifests([EXAMPLE]).objects)
    report = simulation.run()

    zones = {r.pod.name: r.attempt.node_name[:-1] for r in report.placed}
    assert (zones["orders-0"], zones["orders-1"]) == ("worker-a", "worker-b")
    assert {zones["orders-3"], zones["orders-4"]} == {"worker-a", "worker-b"}
    assert {r.time_s for r in report.placed} == {0, 20}
    (waiting,) = report.pending
    assert waiting.pod.name == "orders-2"
    assert waiting.attempt.message.startswith(
        "0/6 nodes are available: 2 Insufficient cpu, "
        "4 node(s) didn't match PersistentVolume's node affinity."
    )
    rooms = {r.name: r.capacity for r in simulation.cluster.list("CSIStorageCapacity")}
    assert rooms == {"zonal-ssd-a": "300Gi", "zonal-ssd-b": "300Gi", "zonal-ssd-c": "400Gi"}
