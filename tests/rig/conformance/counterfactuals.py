"""Conformance of counterfactuals: the changes reported for a pending pod let it run.

For every pod of a recorded case without a node, and every node: the reported changes are made in
the manifests, a scheduler is built from those, and the pod is judged again in the ordinary way. It
must fit on that node, and must not when any change is left out.

`python -m tests.rig.conformance.counterfactuals FILES...` does so for whole files.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bayplan.answers.account import Counterfactual
from bayplan.answers.counterfactual import find_counterfactual, nearest_nodes
from bayplan.answers.manifest_changes import ObjectChange, apply_changes
from bayplan.api.dra import DeviceClass, ResourceClaim
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.clock import ManualClock
from bayplan.config.types import SchedulerConfiguration
from bayplan.errors import InputError
from bayplan.scheduler import FirstByName, Scheduler, build_scheduler
from bayplan.sim.settings import Settings
from bayplan.trials import TrialCluster

from .cases import CaseCluster, ClaimBinding, NoBinding, case_config, decide
from .cli import case_files, is_placement, read_cases
from .long_run import is_long_run
from .pod_groups import is_group_case

ALL_NODES_UP_TO = 20
"""In larger clusters only the nearest nodes are checked, as the command does."""
FULL = 20


@dataclass
class CounterfactualTally:
    """The result."""

    pods: int = 0
    nodes: int = 0
    fitting: int = 0
    """Nodes that would accept the pod unchanged: kube-scheduler counted volumes as used that no
    manifest shows."""
    changes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Number of handled rejections, by plugin."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Nodes without a counterfactual, by rejection."""
    faults: list[str] = field(default_factory=list)


def check_case(
    case: Mapping[str, Any], tally: CounterfactualTally, all_nodes_up_to: int = ALL_NODES_UP_TO
) -> None:
    """Compute and verify the counterfactuals of every pod of a case that gets no node."""
    config = case_config(case["config"])
    for world, pod in _pending(case, config):
        view = TrialCluster(_objects(world, pod), Settings(config))
        tally.pods += 1
        names = view.node_names()
        if len(names) > all_nodes_up_to:
            names = nearest_nodes(view, pod, 5)
        for name in names:
            found = find_counterfactual(view, pod, name)
            _check(CounterfactualTrial(case["id"], config, world, pod), found, tally)


def check_run(case: Mapping[str, Any], tally: CounterfactualTally) -> None:
    """Check the pods of a long run, each at its first failed attempt, on the nearest node.

    These clusters are large and the pods many, so only the fit is verified.
    """
    config = case_config(case["config"])
    for world, pod in _pending_in_run(case):
        view = TrialCluster(_objects(world, pod), Settings(config))
        tally.pods += 1
        for name in nearest_nodes(view, pod, 1):
            found = find_counterfactual(view, pod, name)
            _check(
                CounterfactualTrial(case["id"], config, world, pod), found, tally, thorough=False
            )


@dataclass(frozen=True)
class CounterfactualTrial:
    """A pod without a node, and the manifests of the cluster at that time."""

    case: str
    config: SchedulerConfiguration
    world: Sequence[dict[str, Any]]
    pod: Pod

    def fits(self, node: str, changes: Sequence[ObjectChange]) -> bool:
        """Whether the pod fits on the node once the changes are made."""
        return fits(self.config, self.world, self.pod, node, changes)


def _check(
    trial: CounterfactualTrial,
    found: Counterfactual,
    tally: CounterfactualTally,
    thorough: bool = True,
) -> None:
    """Record the counterfactual and its faults; `thorough`: no change is superfluous, and every
    alternative helps."""
    tally.nodes += 1
    where = f"{trial.case}: {trial.pod.key} on {found.node}"
    if not found.fits:
        for refusal in found.unknown:
            tally.unknown[f"{refusal.plugin}: {', '.join(refusal.reasons)}"] += 1
        return
    changes = found.changes
    if not changes:
        tally.fitting += 1
    tally.changes += len(changes)
    tally.kinds.update(step.plugin for step in found.steps)
    if not trial.fits(found.node, changes):
        tally.faults.append(f"{where}: does not fit after {_texts(changes)}")
    if not thorough:
        return
    for change in changes:
        rest = [other for other in changes if other is not change]
        if trial.fits(found.node, rest):
            tally.faults.append(f"{where}: fits without {_texts([change])}")
    for step in found.steps:
        for other in step.alternatives:
            instead = [c for s in found.steps for c in (other.changes if s is step else s.changes)]
            tally.changes += len(other.changes)
            if not trial.fits(found.node, instead):
                tally.faults.append(f"{where}: does not fit after {_texts(instead)}")


def _texts(changes: Iterable[ObjectChange]) -> str:
    return "; ".join(change.text for change in changes)


def fits(
    config: SchedulerConfiguration,
    world: Sequence[dict[str, Any]],
    pod: Pod,
    node: str,
    changes: Sequence[ObjectChange],
) -> bool:
    """Whether the pod fits on the node once the changes are made in the manifests, judged by the scheduler alone."""
    try:
        manifests = apply_changes(world, changes)
    except InputError:
        return False
    objects = [decode_object(manifest) for manifest in manifests]
    subject: Any = next(o for o in objects if isinstance(o, Pod) and o.key == pod.key)
    waiting = _waiting(world) - {subject.key}
    cluster = CaseCluster(objects)
    scheduler = _scheduler(config, cluster)
    for obj in objects:
        if isinstance(obj, Pod) and (obj is subject or obj.key in waiting or not obj.node_name):
            continue
        scheduler.on_add(obj)
    for obj in objects:
        if isinstance(obj, Pod) and (obj is subject or not obj.node_name):
            scheduler.queue.nominator.add(obj)
    record = decide(scheduler, subject)
    verdicts = record.get("filter")
    return verdicts is not None and node in verdicts and verdicts[node] is None


def _scheduler(config: SchedulerConfiguration, cluster: CaseCluster) -> Scheduler:
    return build_scheduler(
        config,
        cluster,
        clock=ManualClock(),
        executor=ClaimBinding() if cluster.list(DeviceClass.kind) else NoBinding(),
        ties=FirstByName(),
        explain=True,
    )


WAITING = "conformance.bayplan/waiting"
"""Marks pending pods although their spec names a node."""


def _waiting(world: Iterable[Mapping[str, Any]]) -> set[str]:
    found = set()
    for manifest in world:
        metadata = manifest.get("metadata") or {}
        if WAITING in (metadata.get("annotations") or {}):
            found.add(f"{metadata.get('namespace', '')}/{metadata['name']}")
    return found


def _objects(world: Sequence[Mapping[str, Any]], subject: Pod) -> list[Any]:
    """The objects of the world; pending pods have no node, regardless of their spec."""
    waiting = _waiting(world) | {subject.key}
    objects: list[Any] = []
    for manifest in world:
        obj: Any = decode_object(dict(manifest))
        if isinstance(obj, Pod) and obj.key in waiting:
            obj = obj.with_node("")
        objects.append(obj)
    return objects


def _pending(
    case: Mapping[str, Any], config: SchedulerConfiguration
) -> Iterator[tuple[list[dict[str, Any]], Pod]]:
    """Each pod that gets no node, and the manifests of the cluster at that time."""
    world = {_key(manifest): manifest for manifest in (*case["objects"], *case["pods"])}
    for manifest in case["pods"]:
        if (manifest.get("spec") or {}).get("nodeName"):
            world[_key(manifest)] = _with(manifest, ("metadata", "annotations", WAITING), "yes")
    objects: list[Any] = [decode_object(manifest) for manifest in case["objects"]]
    pods: list[Any] = [decode_object(manifest) for manifest in case["pods"]]
    cluster = CaseCluster([*objects, *pods])
    scheduler = _scheduler(config, cluster)
    for obj in objects:
        if not isinstance(obj, Pod) or obj.node_name:
            scheduler.on_add(obj)
    for pod in (*pods, *(o for o in objects if isinstance(o, Pod) and not o.node_name)):
        scheduler.queue.nominator.add(pod)
    for pod in pods:
        before = list(world.values())
        record = decide(scheduler, pod)
        if not record.get("host"):
            yield before, pod
        _go_on(world, pod, record, cluster)


def _go_on(
    world: dict[tuple[str, str, str], dict[str, Any]],
    pod: Pod,
    record: Mapping[str, Any],
    cluster: CaseCluster,
) -> None:
    """Update the manifests: the pod's node, nominations, and allocations."""
    key = ("Pod", pod.namespace, pod.name)
    told = record.get("postFilter") or {}
    if record.get("host"):
        world[key] = _with(world[key], ("spec", "nodeName"), record["host"])
        world[key] = _with(world[key], ("status", "nominatedNodeName"), "")
        annotations = world[key]["metadata"].get("annotations") or {}
        kept = {k: v for k, v in annotations.items() if k != WAITING}
        world[key] = _with(world[key], ("metadata", "annotations"), kept)
    elif told.get("nominatedNode") is not None or not record.get("preEnqueue"):
        nominated = told.get("nominatedNode", "")
        if nominated is not None:
            world[key] = _with(world[key], ("status", "nominatedNodeName"), nominated)
    for name in told.get("clearedNominations", ()):
        namespace, _, plain = name.partition("/")
        rival = ("Pod", namespace, plain)
        world[rival] = _with(world[rival], ("status", "nominatedNodeName"), "")
    claims = {("ResourceClaim", c.namespace, c.name): c for c in cluster.list(ResourceClaim.kind)}
    for known in [k for k in world if k[0] == "ResourceClaim" and k not in claims]:
        del world[known]
    world.update({k: to_dict(claim) for k, claim in claims.items()})


def _pending_in_run(case: Mapping[str, Any]) -> Iterator[tuple[list[dict[str, Any]], Pod]]:
    """Each pod of a long run at its first failed attempt, and the manifests at that time."""
    world = {_key(manifest): manifest for manifest in case["objects"]}
    records, seen = iter(case["expected"]["pods"]), set[str]()
    nothing = CaseCluster(())
    for step in case["steps"]:
        if "apply" in step:
            world[_key(step["apply"])] = step["apply"]
        elif "delete" in step:
            gone = step["delete"]
            world.pop((gone["kind"], gone.get("namespace", ""), gone["name"]), None)
        else:
            record, manifest = next(records), step["schedule"]
            world[_key(manifest)] = manifest
            pod: Any = decode_object(manifest)
            if not record["host"] and pod.key not in seen:
                seen.add(pod.key)
                yield list(world.values()), pod
            _go_on(world, pod, record, nothing)
            if record["host"]:
                world[_key(manifest)] = _with(world[_key(manifest)], ("status", "phase"), "Running")


def _with(manifest: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    copy = dict(manifest)
    if len(path) == 1:
        copy[path[0]] = value
    else:
        copy[path[0]] = _with(copy.get(path[0]) or {}, path[1:], value)
    return copy


def _key(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def main(names: list[str]) -> int:
    """Verify the counterfactuals of all cases in files and folders; return the exit status."""
    tally, left_out = CounterfactualTally(), 0
    try:
        for path in case_files(names):
            for case in read_cases(path):
                if is_group_case(case):
                    left_out += 1
                elif is_placement(case):
                    check_case(case, tally)
                elif is_long_run(case):
                    check_run(case, tally)
    except (InputError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for fault in tally.faults[:FULL]:
        print(fault)
    if left_out:
        print(f"left out: {left_out} cases of pod groups")
    for refusal, count in tally.unknown.most_common():
        print(f"nothing known on {count} nodes against {refusal}")
    met = ", ".join(f"{plugin} {count}" for plugin, count in tally.kinds.most_common())
    print(f"refusals met: {met}")
    print(
        f"{tally.pods} pending pods, {tally.nodes} nodes, {tally.changes} changes, "
        f"{sum(tally.unknown.values())} nodes without, {tally.fitting} that fit as it is, {len(tally.faults)} wrong"
    )
    return 0 if tally.pods and not tally.faults else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
