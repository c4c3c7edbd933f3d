"""DefaultPreemption with the filters that it runs on changed nodes."""

from collections.abc import Sequence

from bayplan.framework import FilterPlugin, Handle, PreFilterPlugin
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.runtime import Filtering


def equip(plugin: DefaultPreemption, handle: Handle, filters: Sequence[FilterPlugin]) -> Filtering:
    """Give the plugin and its filters their handle, in the form in which a profile runs them."""
    for made in (plugin, *filters):
        made.handle = handle
    prepared = [made for made in filters if isinstance(made, PreFilterPlugin)]
    handle.filters = filtering = Filtering(prepared, filters, (), handle.nominator)
    return filtering
