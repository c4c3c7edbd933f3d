"""Falsified decisions of kube-scheduler v1.36.4 are not called agreements: 350 pods in bursts on 36 nodes."""

from pathlib import Path

from bayplan.sim.recording_file import read_recording

from .falsification import KINDS, falsify

BURSTS = Path(__file__).parent / "recordings" / "bursts.jsonl.gz"


def test_a_moved_binding_is_found() -> None:
    moved = list(falsify(read_recording(BURSTS), most=6))

    assert {one.kind for one in moved} == set(KINDS)
    assert [one.decision.pod.name for one in moved if one.passes] == []
