"""docs/feature-gates.md lists every gate as it is in the code.

When it fails, `python tests/docs/test_feature_gates_page.py` writes the tables anew.
"""

import re
from pathlib import Path

from bayplan.releases.feature_gates import GATES, STAGE_GATES, Gate
from bayplan.releases.gate_effects import EFFECTS, Effect
from bayplan.releases.release import RELEASES

PAGE = Path(__file__).parents[2] / "docs" / "feature-gates.md"
PART = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end -->)", re.S)


def cell(effect: Effect, value: bool) -> str:
    """The text of one position."""
    text = effect.describe(value)
    return f"refused: {text}" if effect.missing is value else text


def state(gate: Gate, version: str) -> str:
    """Stage and position in one release; a dash for a gate that it does not have."""
    if version not in gate.releases:
        return "–"
    found = gate.at(version)
    position = f"{'on' if found.default else 'off'}{', locked' if found.is_locked else ''}"
    return position if found.stage == "past" else f"{found.stage}, {position}"


def row(gate: Gate, effect: Effect) -> str:
    states = " | ".join(state(gate, version) for version in RELEASES)
    return f"| `{gate.name}` | {cell(effect, True)} | {cell(effect, False)} | {states} |"


def effects() -> str:
    """The table of gates that concern the scheduler."""
    rows = [row(GATES[name], EFFECTS[name]) for name in sorted(EFFECTS)]
    names = ("gate", "on", "off", *RELEASES)
    return "\n".join((f"| {' | '.join(names)} |", "|---" * len(names) + "|", *rows))


def others() -> str:
    """The gates of other components."""
    names = [f"`{name}`" for name in sorted(GATES) if name not in {*EFFECTS, *STAGE_GATES}]
    return ", ".join(names)


def rendered(text: str) -> str:
    """The page with its generated parts from the code."""
    parts = {"effects": effects, "others": others}
    return PART.sub(lambda found: f"{found[1]}{parts[found[2]]()}\n{found[3]}", text)


def test_the_page_has_every_gate() -> None:
    text = PAGE.read_text()

    assert len(PART.findall(text)) == 2
    assert text == rendered(text)


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
