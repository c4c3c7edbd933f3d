"""DemandsOf: what pods need free by one filter that adds up, worked out once per spec where that settles it."""

from __future__ import annotations

from ..api.pod import Pod, PodSpec
from ..framework import AdditiveFilter, Demands

MOST_SPECS = 4096


class DemandsOf:
    """The demands of pods as `plugin` says them, with its name."""

    def __init__(self, plugin: AdditiveFilter) -> None:
        self._plugin = plugin
        self._known: dict[PodSpec, Demands] = {}

    def get(self, pod: Pod) -> Demands:
        """What `pod` needs free."""
        known = self._known.get(pod.spec)
        if known is not None:
            return known
        said = self._plugin.demands(pod)
        demands = Demands(said.amounts, said.reasons, self._plugin.name)
        if self._plugin.key_is_spec:
            if len(self._known) >= MOST_SPECS:
                self._known.clear()
            self._known[pod.spec] = demands
        return demands

    def clear(self) -> None:
        """Forget what was said: it depends on something that changed."""
        self._known.clear()
