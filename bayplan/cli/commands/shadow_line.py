"""Shadow line: the state of `bayplan shadow` in one line."""

from __future__ import annotations

from ...answers.judged_decision import Agreement
from ...shadow.live_shadow import LiveShadow


def line_of(live: LiveShadow) -> str:
    """`312 pods seen, 290 same, 22 sampled, 0 other state, 0 different, lag 0.1s`."""
    if live.run is None:
        return "reading the cluster"
    account = live.run.account
    parts = [f"{live.run.follower.pods:,} pods seen"]
    parts += [f"{account.count_of(one):,} {one}" for one in Agreement]
    if account.skipped_decisions:
        parts.append(f"{account.skipped_decisions:,} not judged")
    parts.append(f"lag {live.lag_s:.1f}s")
    if live.interrupted:
        parts.append(f"interrupted: {', '.join(sorted(live.interrupted))}")
    elif live.is_behind:
        parts.append("behind")
    return ", ".join(parts)
