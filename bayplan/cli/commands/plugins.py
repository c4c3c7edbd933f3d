"""Plugins: `bayplan config plugins`, the plugins that a configuration can name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..options.option_groups import option
from ..render.plain_data import AnswerForm, print_in_form

if TYPE_CHECKING:
    from rich.console import Console

    from ...scheduler import PluginDescription


def plugins(
    output: AnswerForm = option(
        "-o, --output FORM",
        f"How to print it: {', '.join(AnswerForm)}. Wide adds JUDGED and the args.",
        default=AnswerForm.TABLE,
    ),
    plugin_files: list[Path] | None = option(
        "--plugins FILE",
        "Python file, or module, with plugins of your own. May be given several times.",
    ),
    config: Path | None = option(
        "--config FILE", "List only the plugins that this scheduler configuration runs."
    ),
) -> None:
    """List every plugin: extension points, arguments with defaults, and its origin.

    Plugins of installed packages are listed, too. A plugin without "yes" under DEFAULT runs only if a configuration
    enables it. WEIGHT is empty for plugins that do not score. With -o wide, JUDGED shows the nodes a plugin is called
    for, and WOULD BE FASTER the declarations or methods that a plugin of your own could add. A second table lists
    when cached answers do not decide, with the labels of the metric bayplan_reference_decisions_total.

    Example: bayplan config plugins -o wide
    """
    from ...config.load import load_config
    from ...scheduler import describe_plugins

    settings = None if config is None else load_config(config)
    described = describe_plugins([str(path) for path in plugin_files or ()], settings)
    print_in_form(
        output,
        lambda: _document(described),
        lambda console: _print_table(console, described, wide=output is AnswerForm.WIDE),
        lambda: [plugin.name for plugin in described],
        "PluginList",
    )


def _document(described: tuple[PluginDescription, ...]) -> dict[str, Any]:
    return {
        "items": [
            {
                "name": plugin.name,
                "summary": plugin.summary,
                "source": plugin.source,
                "extensionPoints": list(plugin.points),
                "default": plugin.is_default,
                "weight": plugin.weight if "score" in plugin.points else None,
                "args": plugin.args,
                "judged": plugin.judging.how,
                "advice": plugin.judging.advice,
                "customResources": list(plugin.custom_resources),
            }
            for plugin in described
        ],
    }


def _print_table(console: Console, described: tuple[PluginDescription, ...], *, wide: bool) -> None:
    import msgspec

    from ...scheduler import Reason
    from ..render.table_layout import Listing, show_listing

    more = ("JUDGED", "WOULD BE FASTER", "ARGS") if wide else ()
    table = Listing(
        ("NAME", "DEFAULT", "WEIGHT", "EXTENSION POINTS", "FROM", *more),
        text=("EXTENSION POINTS", *more),
        spare=("FROM",),
    )
    for plugin in described:
        weight = str(plugin.weight) if plugin.is_default and "score" in plugin.points else ""
        row = [plugin.name, "yes" if plugin.is_default else "", weight, " ".join(plugin.points)]
        row.append(plugin.source)
        if wide:
            row += [plugin.judging.how, "" if plugin.source == "in-tree" else plugin.judging.advice]
            row.append("" if plugin.args is None else msgspec.json.encode(plugin.args).decode())
        table.add(*row)
    show_listing(console, table)
    if wide:
        console.print()
        reasons = ((reason.label, reason.when) for reason in Reason)
        show_listing(console, Listing(("REASON", "ALL PLUGINS ARE CALLED FOR A POD WHEN"), reasons))
