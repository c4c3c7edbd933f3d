"""Recordings: the decisions in a recording, from scripts and notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..answers.judged_replay import JudgedReplay, judge_recording
from ..errors import InputError
from ..sim.recording_file import read_recording
from ..sim.replay import Replay
from ..sim.replay_report import Follow, ReplayReport
from .arguments import expect
from .cluster import PluginLike
from .questions import ConfigSource, Gates, scheduler_settings


def replay(
    recording: str | Path,
    *,
    follow: str = Follow.RECORDED.value,
    config: ConfigSource = None,
    plugins: Iterable[PluginLike] = (),
    feature_gates: Gates = "",
    seed: int | None = None,
    partial: bool = False,
) -> JudgedReplay | ReplayReport:
    """Judge every decision in a recording of `bayplan record`, or schedule its pods again.

    With `follow="recorded"`, each decision is judged in the cluster as it was then; with "own", pods are scheduled
    again in the cluster as our own decisions leave it. `partial` accepts a recording without an end.
    """
    expect("replay", "recording", recording, (str, Path), "a file that bayplan record wrote")
    expect("replay", "follow", follow, str, '"recorded" or "own"')
    if follow not in set(Follow):
        raise InputError(f'replay: follow: expected "recorded" or "own"; got "{follow}"')
    settings = scheduler_settings("replay", config, plugins, feature_gates, seed)
    recorded = read_recording(Path(recording), partial)
    if follow == Follow.RECORDED:
        return judge_recording(recorded, settings)
    return Replay(
        recorded,
        settings.config,
        seed=seed,
        feature_gates=settings.feature_gates,
        plugins=settings.plugins,
    ).run()
