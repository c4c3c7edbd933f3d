"""Hooks of the site: pages from the repository's root, parts made from the code, links that lead out of `docs/`.

Pages stay readable without the site: a generated part has a sentence in its place, and all links are relative paths in
the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
FROM_ROOT = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh/index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages of the site, under this name."""
PATH_OF = {page: source for source, page in FROM_ROOT.items()}
GENERATED = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end -->", re.S)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are kept in the root of the repository."""
    for source, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated, and make links to files of the repository links of the site."""
    markdown = GENERATED.sub(lambda found: PARTS[found[1]](), markdown)
    return outside_code(markdown, lambda text: resolve_links(text, page.file.src_uri, config))


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """`markdown` with `change` applied to everything that is not a fenced block."""
    parts, position = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [change(markdown[position : fence.start()]), fence[0]]
        position = fence.end()
    return "".join([*parts, change(markdown[position:])])


def resolve_links(text: str, page: str, config: MkDocsConfig) -> str:
    """Links of a page as the site has them; what is not on the site becomes plain text, or a link to `repo_url`."""
    path = PATH_OF.get(page, f"docs/{page}")

    def resolve(found: re.Match[str]) -> str:
        mark, label, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        file, _, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if there in FROM_ROOT:
            there = FROM_ROOT[there]
        elif there.startswith("docs/"):
            there = there.removeprefix("docs/")
        elif config.repo_url:
            return f"{mark}[{label}]({config.repo_url.rstrip('/')}/blob/main/{there})"
        else:
            return label if label != there else f"`{there}`"
        relative = posixpath.relpath(there, posixpath.dirname(page) or ".")
        return f"{mark}[{label}]({relative}{'#' + anchor if anchor else ''})"

    return LINK.sub(resolve, text)


def cell(text: str) -> str:
    """`text` for a cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def command_line() -> str:
    """Every command with its help, arguments and options, from the commands themselves."""
    import typer

    from bayplan.cli.main import app

    root = typer.main.get_command(app)
    return "\n\n".join(describe_command(root, typer.Context(root, info_name="bayplan"), 2))


def describe_command(command: Any, context: Any, level: int) -> Iterator[str]:
    import typer

    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    if context.parent is not None:
        yield f"{'#' * level} {context.command_path}"
    yield f"```text\n{' '.join(command.get_usage(context).split())}\n```"
    yield from describe_help(command.help or "")
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(f"`{cell(name)}`", cell(text)) for name, text in filter(None, records)]
    if rows:
        yield table(("argument or option", "meaning"), iter(rows))
    for name in names:
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            inner = typer.Context(below, info_name=name, parent=context)
            yield from describe_command(below, inner, level + 1 if context.parent else level)


def describe_help(text: str) -> Iterator[str]:
    """The paragraphs of a help text; an example becomes a block."""
    for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        words = " ".join(paragraph.split())
        if words.startswith("Example: "):
            yield f"```\n{words.removeprefix('Example: ')}\n```"
        elif words:
            yield words.replace("<", "&lt;")


def metrics() -> str:
    """Every metric of the scheduler, from `bayplan.observe`."""
    from bayplan.observe.scheduler_metrics import SchedulerMetrics

    kinds = {"Histogram": "histogram", "Gauge": "gauge", "Counter": "counter"}

    def rows() -> Iterator[tuple[str, ...]]:
        for family in SchedulerMetrics().families:
            kind = next(word for part, word in kinds.items() if part in type(family).__name__)
            labels = ", ".join(f"`{label}`" for label in family.label_names)
            yield f"`{family.name}`", kind, labels or "-", cell(family.help)

    return table(("metric", "type", "labels", "meaning"), rows())


def plugins() -> str:
    """Every plugin with its extension points and arguments, as `bayplan config plugins` lists them."""
    import json

    from typer.testing import CliRunner

    from bayplan.cli.main import app

    listed = json.loads(CliRunner().invoke(app, ["plugins", "-o", "json"]).stdout)["items"]

    def rows() -> Iterator[tuple[str, ...]]:
        for plugin in listed:
            weight = plugin["weight"] or ("on" if plugin["default"] else "-")
            args = "<br>".join(
                f"`{key}: {cell(json.dumps(value))}`"
                for key, value in (plugin["args"] or {}).items()
            )
            points = ", ".join(plugin["extensionPoints"])
            yield plugin["name"], str(weight), points, cell(plugin["summary"]), args

    head = (
        "plugin",
        "default (weight)",
        "extension points",
        "what it does",
        "arguments with defaults",
    )
    return table(head, rows())


PARTS = {"cli": command_line, "metrics": metrics, "plugins": plugins}
