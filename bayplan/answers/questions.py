"""Questions: the consequences of a change, question and answer as data. Nothing is changed in the cluster.

A live page offers them for the cluster that it shows. `try_configuration` places the pods that a controller would
recreate anew, once with the configuration in use and once with another, so that only the configuration differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from ..api.pod import EMPTY_STATUS, Pod
from ..cluster.memory.absent_owners import is_bare, stays_with_node
from ..cluster.memory.pod_index import is_there
from ..config.defaults import default_config
from ..config.load import parse_config
from ..config.types import SchedulerConfiguration
from ..errors import InputError
from ..manifests.timeline import InputObject
from ..sim.settings import Settings
from .stage import Stage
from .what_if import AddNodes, ClusterChange, Drain, PodChange, Where, ask_what_if

MOST_NODES = 1000
"""The most nodes that a question may add."""


class DrainQuestion(msgspec.Struct, frozen=True, tag="drain", tag_field="ask", rename="camel"):
    """What follows when the pods of a node are evicted? The flags are those of kubectl drain."""

    node: str
    force: bool = False
    delete_emptydir_data: bool = False
    disable_eviction: bool = False


class AddNodesQuestion(msgspec.Struct, frozen=True, tag="add-nodes", tag_field="ask"):
    """What follows when nodes like this one are added?"""

    node: str
    number: int


class ConfigurationQuestion(msgspec.Struct, frozen=True, tag="configuration", tag_field="ask"):
    """Where do pods go with another configuration?"""

    text: str
    """A KubeSchedulerConfiguration, as YAML or JSON."""


ClusterQuestion: TypeAlias = DrainQuestion | AddNodesQuestion | ConfigurationQuestion


def answer_question(
    objects: Sequence[InputObject], settings: Settings, body: bytes
) -> dict[str, Any]:
    """The answer to a question in JSON about the cluster of `objects`; raises InputError."""
    try:
        question: ClusterQuestion = msgspec.json.decode(body, type=ClusterQuestion)
    except msgspec.DecodeError as error:
        raise InputError(f"question: {error}") from None
    _check_extenders(settings.config)
    match question:
        case DrainQuestion():
            drain = Drain(
                (question.node,),
                question.force,
                delete_emptydir_data=question.delete_emptydir_data,
                disable_eviction=question.disable_eviction,
            )
            return _consequences(objects, settings, drain)
        case AddNodesQuestion(node, number):
            if not 0 < number <= MOST_NODES:
                raise InputError(f"number: expected 1 to {MOST_NODES} nodes; got {number}")
            return _consequences(objects, settings, AddNodes(number, (node,)))
        case ConfigurationQuestion(text):
            config = parse_config(text, "configuration", settings.feature_gates)
            _check_extenders(config)
            return try_configuration(objects, settings, config)


def _consequences(
    objects: Sequence[InputObject], settings: Settings, change: ClusterChange
) -> dict[str, Any]:
    answer = ask_what_if(objects, [change], settings, as_is=True)
    return {"headline": answer.headline(), **answer.to_dict()}


def try_configuration(
    objects: Sequence[InputObject], settings: Settings, config: SchedulerConfiguration
) -> dict[str, Any]:
    """The pods whose node differs between `config` and the configuration of `settings`."""
    waiting = [_waiting(obj) for obj in objects]
    before = _placed(waiting, settings)
    after = _placed(waiting, msgspec.structs.replace(settings, config=config))
    changes = []
    for name, was in before.items():
        now = after.get(name)
        if now is not None and now.node_name != was.node_name:
            changes.append(PodChange(was.namespace, was.name, Where.of(was), Where.of(now)))
    elsewhere = sum(bool(change.was.node and change.now.node) for change in changes)
    pending = [sum(not pod.node_name for pod in pods.values()) for pods in (before, after)]
    return {
        "changes": ["place pods of controllers anew, with this configuration"],
        "headline": f"{elsewhere} of {len(before)} pods get another node; pending: {pending[0]} with the configuration "
        f"in use, {pending[1]} with this one",
        "pods": [change.to_dict() for change in changes],
        "nodes": {"added": [], "removed": []},
        "notes": [],
    }


def _waiting(obj: InputObject) -> InputObject:
    """A pod that a controller would recreate elsewhere, without its node; any other object as it is."""
    if not isinstance(obj, Pod) or is_bare(obj) or stays_with_node(obj) or not is_there(obj):
        return obj
    return obj.replace(node_name="", status=EMPTY_STATUS)


def _placed(objects: Sequence[InputObject], settings: Settings) -> dict[tuple[str, str], Pod]:
    stage = Stage(objects, settings)
    stage.begin()
    return {key: pod for key, pod in stage.places().pods.items() if is_there(pod)}


def _check_extenders(config: SchedulerConfiguration | None) -> None:
    if (config or default_config()).extenders:
        raise InputError("extenders: expected none, since a question would call them; got some")
