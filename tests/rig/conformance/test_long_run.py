"""The runner of long runs: a wrong expectation is reported, and an omitted step makes a difference."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayplan.errors import InputError
from tests.rig.conformance.cli import RUNNERS, read_cases
from tests.rig.conformance.long_run import digest, is_long_run, run_long_run

FILE = Path(__file__).parents[2] / "conformance" / "cases" / "long-run.jsonl"
ROOM, PREEMPTION, NEIGHBOURS = read_cases(FILE)
Record = dict[str, Any]
NO_HELP = {"nominatedNode": "", "victims": [], "evicted": [], "clearedNominations": []}
NOTHING = {
    "apply": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "none"}, "spec": {}}
}


def disagreements(case: Record) -> list[str]:
    return [f"{one.pod}: {one.field}" for _, found in run_long_run(case) for one in found]


def set_post_filter(name: str, value: Any) -> Callable[[Record], None]:
    return lambda record: record["postFilter"].update({name: value})


def set_field(name: str, value: Any) -> Callable[[Record], None]:
    return lambda record: record.update({name: value})


@pytest.mark.parametrize(
    ("case", "position", "change", "told"),
    [
        pytest.param(ROOM, 0, set_field("hostTotal", 76), "hostTotal", id="the total of the host"),
        pytest.param(ROOM, 1, set_field("feasible", 1), "feasible", id="how many nodes fit"),
        pytest.param(ROOM, 2, set_field("digest", "0" * 16), "digest", id="the digest"),
        pytest.param(
            ROOM, 3, set_field("hostFromNomination", True), "hostFromNomination", id="a nomination"
        ),
        pytest.param(ROOM, 4, set_field("fitError", "no"), "fitError", id="the fit error"),
        pytest.param(ROOM, 4, set_field("hostTotal", 0), "hostTotal", id="a total without a host"),
        pytest.param(
            PREEMPTION,
            2,
            set_post_filter("victims", ["default/low0"]),
            "postFilter",
            id="a victim",
        ),
        pytest.param(PREEMPTION, 3, set_post_filter("evicted", []), "postFilter", id="an eviction"),
        pytest.param(ROOM, 4, set_field("postFilter", NO_HELP), "postFilter", id="a PostFilter"),
        pytest.param(NEIGHBOURS, 6, set_field("pod", "default/q"), "pod", id="another pod"),
    ],
)
def test_one_wrong_expectation_is_reported(
    case: Record, position: int, change: Callable[[Record], None], told: str
) -> None:
    changed = copy.deepcopy(case)
    change(changed["expected"]["pods"][position])

    assert [line.split(": ")[2:] for line in disagreements(changed)] == [[told]]


def test_after_a_difference_the_run_continues_as_recorded() -> None:
    """The first pod is recorded on b: the second then finds a empty, and agrees only with its
    record."""
    case = copy.deepcopy(ROOM)
    first, second = case["expected"]["pods"][:2]
    first["host"] = "b"
    second.update(host="a", hostTotal=75, digest=digest({"a": 75, "b": 50}))
    del case["steps"][2:], case["expected"]["pods"][2:]

    assert disagreements(case) == ["step 0: default/p0: host"]


def test_a_recorded_nomination_is_kept() -> None:
    """If high did not preempt low1, mid would stay nominated to b, and no less important pod would get b."""
    case = copy.deepcopy(PREEMPTION)
    low = copy.deepcopy(case["steps"][0])
    low["schedule"]["metadata"].update(name="low2", uid="pod-low2")
    records = case["expected"]["pods"]
    records[3]["postFilter"] = NO_HELP
    records[4] = {**records[2], "pod": "default/low2", "postFilter": NO_HELP}
    case["steps"][5:], records[5:] = [low], []

    assert disagreements(case) == ["step 3: default/high: postFilter"]


def test_a_pod_recorded_without_a_node_holds_nothing() -> None:
    case = copy.deepcopy(ROOM)
    records = case["expected"]["pods"]
    records[0] = {**records[4], "pod": "default/p0"}
    records[1] = {**case["expected"]["pods"][1], "host": "a", "digest": digest({"a": 75, "b": 75})}
    del case["steps"][2:], records[2:]

    assert {line.split(": ")[1] for line in disagreements(case)} == {"default/p0"}


@pytest.mark.parametrize(
    ("case", "number"),
    [
        pytest.param(case, number, id=f"{case['id']}, step {number}")
        for case in (ROOM, PREEMPTION, NEIGHBOURS)
        for number, step in enumerate(case["steps"])
        if "schedule" not in step
    ],
)
def test_an_omitted_change_makes_a_difference(case: Record, number: int) -> None:
    changed = copy.deepcopy(case)
    changed["steps"][number] = NOTHING

    assert disagreements(changed)


def test_deleting_a_missing_object_is_an_error() -> None:
    case = copy.deepcopy(NEIGHBOURS)
    case["steps"][1]["delete"]["name"] = "nowhere"

    with pytest.raises(InputError, match=r'of a namespace that changes: Node "/nowhere": expected'):
        disagreements(case)


def test_the_digest_of_the_format() -> None:
    assert digest({"node-2": 310, "node-10": 295}) == "7ec9ba3ef0cf8d23"


def test_the_command_runs_this_kind() -> None:
    assert [is_kind(ROOM) for is_kind, _ in RUNNERS].count(True) == 1
    assert not is_long_run({"id": "x", "steps": [], "initial": {}})
