"""The trace of Google (2019): events of collections, instances and machines."""

import gzip
from pathlib import Path

from tests.sim.traces.published import (
    CREATED_AT,
    DURATION,
    GOOGLE,
    HALF,
    allocatable,
    event,
    fill,
    google,
    lines,
    notes,
    requests,
    selector,
    split,
)


class TestGoogle2019:
    def test_shares_of_the_largest_machine_become_amounts(self, tmp_path: Path) -> None:
        nodes, pods = split(google(fill(tmp_path, GOOGLE)))

        assert list(nodes) == ["machine-5"]  # the other one has no capacity
        assert allocatable(nodes["machine-5"]) == {
            "cpu": "64000m",
            "memory": "131072Mi",
            "pods": "110",
        }
        assert requests(pods["instance-77-0-0"]) == {"cpu": "32000m", "memory": "65536Mi"}
        assert pods["instance-77-0-0"]["spec"]["priority"] == 200
        labels = pods["instance-77-0-0"]["metadata"]["labels"]
        assert labels["bayplan.dev/scheduling-class"] == "2"

    def test_each_submission_is_a_pod_that_runs_from_scheduling_to_its_end(
        self, tmp_path: Path
    ) -> None:
        _, pods = split(google(fill(tmp_path, GOOGLE)))

        assert notes(pods["instance-77-0-0"]) == {CREATED_AT: "1m", DURATION: "30s"}
        assert notes(pods["instance-77-0-1"]) == {CREATED_AT: "1m40s"}  # its end is after the trace
        assert requests(pods["instance-77-0-1"]) == requests(pods["instance-77-0-0"])
        # Scheduled and finished in the same microsecond: a second at least.
        assert notes(pods["instance-77-1-0"]) == {CREATED_AT: "1m30s", DURATION: "1s"}

    def test_tasks_within_allocs_are_left_out(self, tmp_path: Path) -> None:
        _, pods = split(google(fill(tmp_path, GOOGLE)))

        assert sorted(pods) == ["instance-77-0-0", "instance-77-0-1", "instance-77-1-0"]

    def test_the_limit_per_machine_is_a_spread_constraint(self, tmp_path: Path) -> None:
        _, pods = split(google(fill(tmp_path, GOOGLE)))

        [spread] = pods["instance-77-0-0"]["spec"]["topologySpreadConstraints"]
        assert (spread["maxSkew"], spread["topologyKey"]) == (2, "kubernetes.io/hostname")
        assert spread["labelSelector"] == {"matchLabels": {"bayplan.dev/collection": "77"}}

    def test_machines_come_go_and_change_if_asked_for(self, tmp_path: Path) -> None:
        objects = list(google(fill(tmp_path, GOOGLE), machine_events=True).objects())
        [timeline] = [item for item in objects if item["kind"] == "Timeline"]

        assert [sorted(each) for each in timeline["events"]] == [
            ["at", "remove"],
            ["add", "at"],
            ["at", "change"],
        ]
        assert [each["at"] for each in timeline["events"]] == ["9s", "20s", "30s"]
        assert timeline["events"][2]["change"][0]["status"]["allocatable"]["cpu"] == "32000m"

    def test_constraints_are_expressions_about_attributes(self, tmp_path: Path) -> None:
        fill(tmp_path, GOOGLE)
        constraints = [
            {"name": "os", "value": "a+b", "relation": "0"},
            {"name": "cores", "value": "4", "relation": "GREATER_THAN_EQUAL"},
            {"name": "gone", "relation": 7},
        ]
        fill(
            tmp_path,
            {
                "machine_attributes.json": lines(
                    {"time": "0", "machine_id": "5", "name": "os", "value": "a+b"}
                ),
                "instance_events-000000000000.json": lines(
                    event(5, 0, constraint=constraints, **HALF)
                ),
            },
        )
        nodes, pods = split(google(tmp_path))
        [pod] = pods.values()
        os, cores, gone = selector(pod)

        assert os["values"] == [
            nodes["machine-5"]["metadata"]["labels"]["attribute.bayplan.dev/os"]
        ]
        assert (cores["operator"], cores["values"]) == ("Gt", ["3"])
        assert gone == {"key": "attribute.bayplan.dev/gone", "operator": "DoesNotExist"}

    def test_without_attributes_constraints_are_left_out_with_a_note(self, tmp_path: Path) -> None:
        fill(tmp_path, GOOGLE)
        wants = event(5, 0, constraint=[{"name": "os", "value": "x", "relation": "0"}], **HALF)
        fill(tmp_path, {"instance_events-000000000000.json": lines(wants)})
        trace = google(tmp_path)

        _, pods = split(trace)

        assert [selector(pod) for pod in pods.values()] == [[]]
        assert trace.notes == [f"{tmp_path}: no machine_attributes: constraints are left out"]

    def test_constraints_that_labels_cannot_express_are_left_out_with_a_note(
        self, tmp_path: Path
    ) -> None:
        fill(tmp_path, GOOGLE)
        wants = [{"name": "speed", "value": "2.5", "relation": "GREATER_THAN"}]
        fill(
            tmp_path,
            {
                "machine_attributes.json": lines(
                    {"time": "0", "machine_id": "5", "name": "speed", "value": "3"}
                ),
                "instance_events-000000000000.json": lines(event(5, 0, constraint=wants, **HALF)),
            },
        )
        trace = google(tmp_path)

        _, pods = split(trace)

        assert [selector(pod) for pod in pods.values()] == [[]]
        assert trace.notes == [
            f"{tmp_path}: 1 pods have constraints that labels cannot express: left out"
        ]

    def test_flat_tables_as_csv_are_the_same(self, tmp_path: Path) -> None:
        fill(tmp_path, GOOGLE)
        expected = list(google(tmp_path).objects())
        (tmp_path / "instance_events-000000000000.json").unlink()
        (tmp_path / "instance_events").mkdir()
        names = (
            "time,type,collection_id,instance_index,priority,scheduling_class,alloc_collection_id,"
        )
        rows = (
            "70000000,3,77,0,,,,,\n60000000,0,77,0,200,2,,0.5,0.25\n100000000,4,77,0,,,,,\n100000000,0,77,0,,,,,\n"
            "100000000,3,77,1,,,,,\n90000000,0,77,1,,,0,0.5,0.25\n100000000,6,77,1,,,,,\n0,0,77,2,,,55,0.5,0.25\n"
        )
        table = f"{names}resource_request_cpus,resource_request_memory\n{rows}"
        (tmp_path / "instance_events" / "instance_events-0.csv.gz").write_bytes(
            gzip.compress(table.encode())
        )

        assert list(google(tmp_path).objects()) == expected
