"""Checks: findings about a cluster, from its facts and the scheduler that answers are given for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..api.pod import Pod
from ..config.releases import choose_release, release_warning
from ..sim.settings import Settings
from .cluster_facts import ClusterFacts, Finding
from .configuration_checks import configuration_findings

CONTROLLERS = {
    "descheduler": "evicts pods by its own policy: pods move although no question says so",
    "karpenter": "adds nodes for waiting pods and consolidates others: pods may get nodes that are not there yet",
    "cluster-autoscaler": "adds nodes for waiting pods and removes empty ones",
    "kueue": "holds pods or jobs back until there is quota: waiting pods may be held by it, not by the scheduler",
    "volcano": "brings a scheduler of its own, whose rules are not these",
    "yunikorn": "brings a scheduler of its own, and changes the schedulerName of pods at admission",
    "keda": "changes the number of pods",
}
"""Controllers by a word of their image."""
SIMULATED = {
    "karpenter": "bayplan plan, bayplan simulate --pools",
    "cluster-autoscaler": "bayplan simulate --pools",
}


def find_all(facts: ClusterFacts, settings: Settings, has_config: bool) -> list[Finding]:
    """All findings; those that may make answers differ come first."""
    found = [
        *_version(facts),
        *_permissions(facts),
        *configuration_findings(facts, settings, has_config),
        *object_findings(facts.objects, settings),
        *_admission(facts),
    ]
    return sorted(found, key=lambda one: not one.differs)


def object_findings(objects: Sequence[object], settings: Settings) -> Iterator[Finding]:
    """The findings for which the objects of a question are enough."""
    pods = [obj for obj in objects if isinstance(obj, Pod) and not obj.is_finished]
    yield from _schedulers(pods, settings)
    yield from _controllers(pods)
    yield from _gates(pods)


def short_note(objects: Sequence[object], settings: Settings) -> str:
    """One line for an answer: the findings that its own objects show; "" if there are none."""
    found = [one.text for one in object_findings(objects, settings) if one.differs]
    return f"answers may differ: {'; '.join(found)}. See: bayplan doctor" if found else ""


def _version(facts: ClusterFacts) -> Iterator[Finding]:
    if not facts.version:
        yield Finding(
            subject="version",
            text="the version of Kubernetes is not known",
            means=f"the rules of {choose_release('').patch} are used",
            command="--kubernetes-version 1.35",
            differs=True,
        )
        return
    release, warning = choose_release(facts.version), release_warning(facts.version)
    yield Finding(
        subject="version",
        text=f"Kubernetes {facts.version}: the rules of {release.patch} are used",
        means=warning,
        differs=bool(warning),
    )


def _permissions(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.unreadable_kinds:
        yield Finding(
            subject="permissions",
            text=f"may not be listed: {', '.join(facts.unreadable_kinds)}",
            means="questions about the live cluster end with an error; what these objects require is not known",
            command="kubectl apply -f deploy/10-rbac.yaml has a role with these permissions",
            differs=True,
        )
    if facts.unreadable_places:
        yield Finding(
            subject="permissions",
            text=f"not checked, as they may not be listed: {', '.join(facts.unreadable_places)}",
            means="configurations and webhooks there are not found by this command; answers do not read them",
        )
    if not facts.is_live:
        yield Finding(
            subject="permissions",
            text="files have no webhooks, no config maps and no flags of the scheduler",
            means="these were not checked",
            command="bayplan doctor, without -f, checks a live cluster",
        )


def _schedulers(pods: Sequence[Pod], settings: Settings) -> Iterator[Finding]:
    profiles = {profile.scheduler_name for profile in settings.effective_config.profiles}
    counts = Counter(pod.scheduler_name for pod in pods)
    known = {name: number for name, number in counts.items() if name in profiles}
    unknown = {name: number for name, number in counts.items() if name not in profiles}
    if known:
        yield Finding(subject="schedulers", text=f"schedulers with a profile: {_counted(known)}")
    if unknown:
        yield Finding(
            subject="schedulers",
            text=f"schedulers without a profile: {_counted(unknown)}",
            means="questions about pods of these are refused; in other answers their pods stay where they are",
            command="--config FILE with a profile of that name; bayplan shadow judges them with the default profile",
            differs=True,
        )


def _controllers(pods: Sequence[Pod]) -> Iterator[Finding]:
    images = {c.image for pod in pods for c in pod.spec.containers or ()}
    for word, effect in CONTROLLERS.items():
        if any(word in image for image in images):
            yield Finding(
                subject="controllers",
                text=f"{word} runs in the cluster",
                means=effect,
                command=SIMULATED.get(word, ""),
                differs=True,
            )


def _gates(pods: Sequence[Pod]) -> Iterator[Finding]:
    waiting = [pod for pod in pods if not pod.node_name]
    gates = Counter(g.name for pod in waiting for g in pod.spec.scheduling_gates or ())
    if gates:
        yield Finding(
            subject="gates",
            text=f"pods with scheduling gates: {_counted(gates)}",
            means="they are not scheduled until the owner of the gate removes it; answers leave them waiting",
        )


def _admission(facts: ClusterFacts) -> Iterator[Finding]:
    mutating = [hook.name for hook in facts.webhooks if hook.mutates and not hook.at_binding]
    if mutating:
        yield Finding(
            subject="admission",
            text=f"webhooks or policies that change new pods: {', '.join(sorted(set(mutating)))}",
            means="pods in manifests become other pods in the cluster; pods that exist are read as they were changed."
            " Concerns simulate, what-if, capacity and plan with -f",
            command="kubectl apply --dry-run=server -o yaml -f FILE prints the objects as they would be stored",
            differs=True,
        )
    binding = [hook.name for hook in facts.webhooks if hook.at_binding]
    if binding:
        yield Finding(
            subject="admission",
            text=f"webhooks that see bindings: {', '.join(sorted(set(binding)))}",
            means="a binding may be refused after the decision; the pod is then tried again",
            differs=True,
        )


def _counted(counts: dict[str, int] | Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{name} ({n:,} {'pod' if n == 1 else 'pods'})" for name, n in ordered)
