"""docs/releases.md lists every fact of the releases as it is in the code.

When it fails, `python tests/docs/test_releases_page.py` writes the table anew.
"""

import ast
import enum
import inspect
import re
from pathlib import Path

from bayplan.answers.release_changes import NO_FACTS
from bayplan.releases import release as module
from bayplan.releases.release import RELEASES, Release

PAGE = Path(__file__).parents[2] / "docs" / "releases.md"
PART = re.compile(r"(<!-- begin: facts -->\n).*?(<!-- end -->)", re.S)


def texts() -> dict[str, str]:
    """The sentence after each field of a class, by its name; of a field without one, that of its type."""
    tree = ast.parse(inspect.getsource(module))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: dict[str, str] = {}
    body = classes["Release"].body
    for field, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = str(after.value.value)
            elif isinstance(field.annotation, ast.Name) and field.annotation.id in classes:
                text = ast.get_docstring(classes[field.annotation.id]) or ""
            found[field.target.id] = " ".join(text.split())
    return found


def cell(value: object) -> str:
    """A value in a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, frozenset):
        words = (one if isinstance(one, str) else " ".join(one) for one in value)
        return ", ".join(sorted(words)) or "none"
    return str(value.value if isinstance(value, enum.Enum) else value)


def table() -> str:
    """The facts of all releases."""
    sentences = texts()
    names = ("fact", "meaning", *RELEASES)
    rows = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for fact in Release.__struct_fields__:
        if fact not in NO_FACTS:
            values = " | ".join(cell(getattr(release, fact)) for release in RELEASES.values())
            rows.append(f"| `{fact}` | {sentences[fact]} | {values} |")
    return "\n".join(rows)


def rendered(text: str) -> str:
    """The page with its table from the code."""
    return PART.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text)


def test_the_page_has_every_fact() -> None:
    text = PAGE.read_text()

    assert all(texts()[fact] for fact in Release.__struct_fields__)
    assert text == rendered(text)


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
