"""Expand: the plugins of each extension point, with order and weight.

Mirrors NewFramework of pkg/scheduler/framework/runtime/framework.go. The error texts are those of
kube-scheduler, which people search for.
"""

from collections.abc import Callable, Collection, Mapping

from ..errors import ConfigError
from .defaults import ALL
from .types import PLACEMENT_POINTS, PluginRef, Plugins, PluginSet, Profile

Implements = Callable[[str, str], bool]
ExpandedPlugins = dict[str, tuple[PluginRef, ...]]

# Names of extension points in messages, in the order in which points are checked: of several
# mistakes the first by this order is reported.
_INTERFACES: dict[str, str] = {
    point: f"{point.title().replace('_', '')}Plugin"
    for point in (
        *("pre_filter", "filter", "post_filter", "reserve", "pre_score", "score", "pre_bind"),
        *("bind", "post_bind", "permit", "pre_enqueue", "queue_sort"),
        *PLACEMENT_POINTS,
    )
}
_WEIGHED_POINTS = {"score": "score", "placement_score": "placement score"}

_SPARE_SORTS = frozenset({"Coscheduling"})
"""Plugins that order the queue only if no other plugin of the profile does.

scheduler-plugins' scheduler refuses a profile with `Coscheduling` in multiPoint and no word about queueSort.
"""

_MAX_SCORE = 100
_MAX_TOTAL_SCORE = 2**63 - 1


def expand_plugins(
    profile: Profile, registered: Collection[str], implements: Implements
) -> ExpandedPlugins:
    """Return the plugins of every extension point in order of execution.

    `registered` has the names of all plugins; `implements(plugin, point)` is true if a registered plugin implements a
    point. Weights are the effective ones at the points that have weights, 0 at all others. Raises ConfigError when
    the lists contradict each other.
    """
    plugins = profile.plugins
    for point in _INTERFACES:
        _check_listed(point, plugins.at(point), registered, implements)
    expanded = {
        point: _expand_point(point, plugins, registered, implements) for point in _INTERFACES
    }
    _check_counts(profile.scheduler_name, expanded)
    for point in _WEIGHED_POINTS:
        weights = _score_weights(point, plugins, implements)
        expanded[point] = tuple(PluginRef(ref.name, weights[ref.name]) for ref in expanded[point])
    return expanded


def check_same_queue_sort(
    profiles: Collection[Profile], expanded: Mapping[str, ExpandedPlugins]
) -> None:
    """Raise ConfigError unless all profiles, whose plugins `expanded` has by scheduler name, sort
    the queue in the same way; there is only one queue."""
    first: Profile | None = None
    for profile in profiles:
        name = expanded[profile.scheduler_name]["queue_sort"][0].name
        if first is None:
            first, first_name = profile, name
        elif name != first_name:
            raise ConfigError(
                f'different queue sort plugins for profile "{profile.scheduler_name}": '
                f'"{name}", first: "{first_name}"'
            )
        elif profile.plugin_config.get(name) != first.plugin_config.get(name):
            raise ConfigError(
                f'different queue sort plugin args for profile "{profile.scheduler_name}"'
            )


def _check_listed(
    point: str, listed: PluginSet, registered: Collection[str], implements: Implements
) -> None:
    """Raise unless the plugins enabled at `point` itself exist, implement it and are distinct."""
    seen: set[str] = set()
    for ref in listed.enabled:
        if ref.name not in registered:
            raise ConfigError(f'{_INTERFACES[point]} "{ref.name}" does not exist')
        if not implements(ref.name, point):
            raise ConfigError(f'plugin "{ref.name}" does not extend {_INTERFACES[point]} plugin')
        if ref.name in seen:
            raise ConfigError(f'plugin "{ref.name}" already registered as "{_INTERFACES[point]}"')
        seen.add(ref.name)


def _expand_point(
    point: str, plugins: Plugins, registered: Collection[str], implements: Implements
) -> tuple[PluginRef, ...]:
    """Returns the plugins of one point: those listed both here and in multiPoint in the order
    listed here, then those of multiPoint alone, then those listed here alone."""
    here = plugins.at(point)
    listed = [ref.name for ref in here.enabled]
    if ALL in here.disabled:
        return tuple(PluginRef(name) for name in listed)
    overridden: set[str] = set()
    from_multi_point: list[str] = []
    for ref in plugins.multi_point.enabled:
        if ref.name not in registered:
            raise ConfigError(f'{_INTERFACES[point]} "{ref.name}" does not exist')
        if not implements(ref.name, point) or ref.name in here.disabled:
            continue
        if ref.name in listed:
            overridden.add(ref.name)
        elif ref.name in from_multi_point:
            raise ConfigError(f'plugin "{ref.name}" already registered as "{_INTERFACES[point]}"')
        else:
            from_multi_point.append(ref.name)
    if point == "queue_sort" and len(from_multi_point) > 1:
        from_multi_point = [name for name in from_multi_point if name not in _SPARE_SORTS]
    first = [name for name in listed if name in overridden]
    last = [name for name in listed if name not in overridden]
    return tuple(PluginRef(name) for name in (*first, *from_multi_point, *last))


def _check_counts(scheduler_name: str, expanded: ExpandedPlugins) -> None:
    """Raise unless there is one queue sort, a binder and at most one generator."""
    suffix = f'for profile with scheduler name "{scheduler_name}"'
    queue_sorts = len(expanded["queue_sort"])
    if queue_sorts != 1:
        raise ConfigError(f"only one queue sort plugin required {suffix}, but got {queue_sorts}")
    if not expanded["bind"]:
        raise ConfigError(f"at least one bind plugin is needed {suffix}")
    if len(expanded["placement_generate"]) > 1:
        raise ConfigError(f"at most one placement generate plugin is allowed {suffix}")


def _score_weights(point: str, plugins: Plugins, implements: Implements) -> dict[str, int]:
    """Returns the weight of every plugin that can score at `point`, the point's own list first."""
    weights: dict[str, int] = {}
    total = 0
    for ref in (*plugins.at(point).enabled, *plugins.multi_point.enabled):
        # A plugin that does not exist gets here only if every point disables "*".
        if ref.name in weights or not implements(ref.name, point):
            continue
        weights[ref.name] = ref.weight or 1
        most = weights[ref.name] * _MAX_SCORE
        # The subtraction wraps around upstream, so that any weight after a negative one is
        # rejected.
        if most > wrap_int64(_MAX_TOTAL_SCORE - total):
            raise ConfigError(
                f"{_WEIGHED_POINTS[point]} plugins: total score of Score plugins could overflow"
            )
        total = wrap_int64(total + most)
    return weights


def wrap_int64(value: int) -> int:
    """Return `value` wrapped to 64 bits."""
    return (value + 2**63) % 2**64 - 2**63
