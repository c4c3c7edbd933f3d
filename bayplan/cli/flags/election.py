"""Election: the flags of `bayplan run` about the lease, and the elector they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.text.durations import EXPECTED, parse_duration
from ...errors import InputError

if TYPE_CHECKING:
    from ...clock import Clock
    from ...config import LeaderElection, SchedulerConfiguration
    from ...config.gates import FeatureGates
    from ...kube.candidate import LeaseCandidate
    from ...kube.connection import Connection
    from ...kube.leader import ElectionTimes, LeaderElector


def with_election(
    config: SchedulerConfiguration, leader_elect: bool | None, **given: str | None
) -> SchedulerConfiguration:
    """The configuration with the options of the election; InputError if that cannot be.

    `given` are the values of --leader-elect-*, with _ for -; None for those that were not given.
    """
    from msgspec.structs import replace

    changes: dict[str, object] = {} if leader_elect is None else {"leader_elect": leader_elect}
    for name, text in given.items():
        if text is None:
            continue
        option = f"--leader-elect-{name.replace('_', '-')}"
        if name.startswith("resource"):
            if not text:
                raise InputError(f"{option}: expected a name; got none")
            changes[name] = text
            continue
        seconds = parse_duration(text)
        if seconds is None or seconds <= 0:
            raise InputError(f'{option}: {EXPECTED}; got "{text}"')
        changes[f"{name}_s"] = seconds
    election = replace(config.leader_election, **changes)
    problem = _times(election).problem() if election.leader_elect else None
    if problem is not None:
        raise InputError(f"leaderElection.{problem}")
    return replace(config, leader_election=election)


def _times(election: LeaderElection) -> ElectionTimes:
    from ...kube.leader import ElectionTimes

    return ElectionTimes(
        election.lease_duration_s, election.renew_deadline_s, election.retry_period_s
    )


def make_elector(
    connection: Connection, config: SchedulerConfiguration, gates: FeatureGates, clock: Clock
) -> tuple[LeaderElector, LeaseCandidate | None]:
    """The elector for the lease that the configuration names, and a candidate if the API server chooses the holder."""
    from ...kube.leader import LeaderElector, LeaseLock, make_identity

    election = config.leader_election
    times = _times(election)
    component = config.profiles[0].scheduler_name  # as kube-scheduler's events about the lease
    lock = LeaseLock(
        connection, election.resource_namespace, election.resource_name, clock, component
    )
    identity = make_identity()
    if not gates.enabled("CoordinatedLeaderElection"):
        return LeaderElector(lock, identity, clock, times), None
    from ...kube.candidate import CandidateSpec, CoordinatedElector, LeaseCandidate

    spec = CandidateSpec(
        election.resource_namespace,
        election.resource_name,
        identity,
        binary_version=f"{gates.release.version}.0",
        emulation_version=f"{gates.version}.0",
    )
    elector = CoordinatedElector(lock, identity, clock, times)
    return elector, LeaseCandidate(connection, spec, clock)
