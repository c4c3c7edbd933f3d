"""Config: `bayplan config`, to look at configuration files, check them, update them, and list plugins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from ...errors import ConfigError
from ..command_table import CommandApp
from ..failures import BAD_INPUT, print_error
from ..options.config_options import (
    FEATURE_GATES,
    KUBERNETES_VERSION,
    PLUGIN_FILES,
    PROVIDER,
    read_configuration,
    read_file,
    read_gates,
    source_name,
)
from ..options.option_groups import argument, option
from ..render.consoles import print_notes
from ..render.plain_data import (
    REPORT_FORM,
    AnswerForm,
    ReportForm,
    print_in_form,
    print_yaml_document,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ...config.expand import ExpandedPlugins
    from ...config.internal_form import Reading
    from ...releases.feature_gates import FeatureGates
    from ...scheduler import PluginDescription

app = CommandApp(
    name="config",
    no_args_is_help=True,
    help="Show configuration files, check them, and convert old ones.",
    epilog="Example: bayplan config show --config scheduler.yaml",
)


class Effective(NamedTuple):
    """A configuration and the plugins each of its profiles runs."""

    reading: Reading
    expanded: tuple[ExpandedPlugins, ...]


@app.command(short_help="Show the effective configuration, with every default.")
def show(
    config: Path | None = option(
        "--config FILE",
        "A KubeSchedulerConfiguration, Policy or ConfigMap; - is standard input. "
        "Default: the default configuration.",
        allow_dash=True,
    ),
    output: ReportForm = REPORT_FORM,
    algorithm_provider: str | None = PROVIDER,
    kubernetes_version: str = KUBERNETES_VERSION,
    feature_gates: str = FEATURE_GATES,
    plugins: list[Path] | None = PLUGIN_FILES,
) -> None:
    """Show the effective configuration: every default, and every plugin in order with its weight.

    Exit status: 0, or 2 when the configuration is wrong.

    Example: bayplan config show --config scheduler.yaml -o yaml
    """
    effective = _effective(
        config, algorithm_provider, read_gates(feature_gates, kubernetes_version), plugins
    )
    print_in_form(
        output,
        lambda: effective_document(effective),
        lambda console: _print_tables(console, effective),
        kind="EffectiveConfiguration",
    )
    print_notes(effective.reading.notes)


@app.command(short_help="Name all problems of configuration files.")
def check(
    files: list[Path] = argument(
        "FILE", "Configuration of any version; - is standard input.", allow_dash=True
    ),
    kubernetes_version: str = KUBERNETES_VERSION,
    feature_gates: str = FEATURE_GATES,
    plugins: list[Path] | None = PLUGIN_FILES,
) -> None:
    """Name all problems of configuration files, each with its path and what was expected.

    Exit status: 0 when all files are good, 2 when one is not.

    Example: bayplan config check scheduler.yaml old-policy.json
    """
    from ...answers.release_changes import metric_notes
    from ...releases.release import DEFAULT_RELEASE
    from ...scheduler import notes_on_plugins, plugin_faults

    gates = read_gates(feature_gates, kubernetes_version)
    plugin_files = [str(plugin) for plugin in plugins or ()]
    find_faults = plugin_faults(plugin_files, gates.release)
    faulty = False
    for path in files:
        try:
            reading = read_file(path, gates, find_faults)
        except ConfigError as error:
            faulty = True
            sys.stdout.flush()
            print_error(str(error))
        else:
            print(f"{source_name(path)}: good")
            notes = (*reading.notes, *notes_on_plugins(reading.config, plugin_files, gates))
            print_notes([f"{source_name(path)}: {note}" for note in notes])
    print_notes([*metric_notes(DEFAULT_RELEASE, gates.release)])
    if faulty:
        raise typer.Exit(BAD_INPUT)


@app.command(short_help="Write a configuration in the current format.")
def convert(
    file: Path | None = argument(
        "FILE", "Configuration of any version; - is standard input.", default=None, allow_dash=True
    ),
    algorithm_provider: str | None = PROVIDER,
    kubernetes_version: str = KUBERNETES_VERSION,
    feature_gates: str = FEATURE_GATES,
    plugins: list[Path] | None = PLUGIN_FILES,
) -> None:
    """Write a configuration in the current format, kubescheduler.config.k8s.io/v1, as YAML.

    Notes on standard error name settings without an equivalent.

    Exit status: 0, or 2 when the file is wrong.

    Example: bayplan config convert old-policy.json > scheduler.yaml
    """
    from ...config.encode import convert_config

    if file is None and algorithm_provider is None:
        raise ConfigError("expected a FILE or --algorithm-provider; got neither")
    reading, expanded = _effective(
        file, algorithm_provider, read_gates(feature_gates, kubernetes_version), plugins
    )
    converted = convert_config(reading, expanded)
    print_yaml_document(converted.document)
    print_notes(converted.notes)


def effective_document(effective: Effective) -> dict[str, Any]:
    """The configuration with its defaults, and the resulting plugins of each profile, as plain data."""
    from ...config.encode import encode_args, encode_config
    from ...config.extender_order import extender_order, with_ignored_resources
    from ...config.types import POINT_NAMES

    config = with_ignored_resources(effective.reading.config)
    return {
        "configuration": encode_config(effective.reading.config, effective.reading.entries),
        "profiles": [
            {
                "schedulerName": profile.scheduler_name,
                "percentageOfNodesToScore": config.percentage_for(profile),
                "plugins": {
                    written: [
                        {"name": ref.name, "weight": ref.weight}
                        if ref.weight
                        else {"name": ref.name}
                        for ref in expanded.get(point, ())
                    ]
                    for point, written in POINT_NAMES.items()
                },
                "pluginConfig": {
                    name: encode_args(name, args) for name, args in profile.plugin_config.items()
                },
            }
            for profile, expanded in zip(config.profiles, effective.expanded, strict=True)
        ],
        "extenders": [extender.url_prefix for extender in extender_order(config.extenders)],
    }


def _effective(
    config: Path | None, provider: str | None, gates: FeatureGates, plugins: list[Path] | None
) -> Effective:
    """The configuration in a file, of a provider or, with neither, the default, and the plugins that run."""
    from msgspec.structs import replace

    from ...scheduler import effective_plugins, notes_on_plugins, plugin_faults

    files, release = [str(plugin) for plugin in plugins or ()], gates.release
    reading = read_configuration(config, provider, gates, plugin_faults(files, release))
    notes = (*reading.notes, *notes_on_plugins(reading.config, files, gates))
    expanded = effective_plugins(reading.config, files, release)
    return Effective(replace(reading, notes=notes), expanded)


def _print_tables(console: Console, effective: Effective) -> None:
    """Print the settings, and for each profile its plugins point by point and their arguments."""
    from ..render.table_layout import Listing, show_listing

    document = effective_document(effective)
    settings = (
        (name, _shown(value))
        for name, value in _flat(document["configuration"])
        if not name.startswith(("profiles", "extenders"))
    )
    show_listing(console, Listing(("SETTING", "VALUE"), settings, text=("VALUE",)))
    for profile in document["profiles"]:
        console.print(f"\nPROFILE {profile['schedulerName']}", style="bold", markup=False)
        plugins = (
            (point if i == 0 else "", ref["name"], str(ref.get("weight", "")))
            for point, refs in profile["plugins"].items()
            for i, ref in enumerate(refs)
        )
        show_listing(console, Listing(("POINT", "PLUGIN", "WEIGHT"), plugins))
        if profile["pluginConfig"]:
            console.print("")
            rows = _argument_rows(profile["pluginConfig"])
            show_listing(console, Listing(("PLUGIN", "ARGUMENT", "VALUE"), rows, text=("VALUE",)))
    if document["extenders"]:
        console.print("\nEXTENDERS", style="bold")
        for url in document["extenders"]:
            console.print(url, markup=False)


def _argument_rows(plugin_config: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for plugin, args in plugin_config.items():
        rows = _flat(args) if isinstance(args, dict) else [("", args)]
        shown = [(name, value) for name, value in rows if name not in ("apiVersion", "kind")]
        for i, (name, value) in enumerate(shown):
            yield plugin if i == 0 else "", name, _shown(value)


def _flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """The members of plain data with their paths."""
    if isinstance(value, dict) and value:
        return [
            item
            for name, member in value.items()
            for item in _flat(member, f"{path}.{name}" if path else name)
        ]
    if isinstance(value, list):
        return [item for i, member in enumerate(value) for item in _flat(member, f"{path}[{i}]")]
    return [(path, value)]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


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
        lambda: _plugin_list(described),
        lambda console: _print_plugins(console, described, wide=output is AnswerForm.WIDE),
        lambda: [plugin.name for plugin in described],
        "PluginList",
    )


def _plugin_list(described: tuple[PluginDescription, ...]) -> dict[str, Any]:
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


def _print_plugins(
    console: Console, described: tuple[PluginDescription, ...], *, wide: bool
) -> None:
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
