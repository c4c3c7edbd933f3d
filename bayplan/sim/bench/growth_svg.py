"""Growth picture: the cost of a pod, and time and memory of a command, by number of nodes; a small chart per workload.

Both axes are logarithmic and the same in all charts of a figure, so that slopes can be compared; the dotted
line shows linear growth with the nodes. Plain SVG; light or dark according to the reader's screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ...errors import InputError
from .measurements import CommandRun, Growth, PodRun

COLUMNS = 4
WIDTH, HEIGHT = 190, 130
"""Size of a chart with its labels."""
LEFT, RIGHT, TOP, BOTTOM = 34, 14, 30, 22
"""Margins around the lines of a chart."""
INSET = 14
"""Distance of the first and last point from the sides, which leaves room for labels."""
MARGIN, HEAD = 16, 48

_STYLE = """
.ground{fill:#ffffff}.halo{stroke:#ffffff}.text{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0}
.line{stroke:#0969da}.dot{fill:#0969da}.linear{stroke:#9198a1}
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}.halo{stroke:#0d1117}.text{fill:#f0f6fc}.faint{fill:#9198a1}
.grid{stroke:#2f3742}.line{stroke:#4493f8}.dot{fill:#4493f8}.linear{stroke:#656c76}}
text{font-family:-apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif;font-size:10px}
.title{font-size:15px;font-weight:600}.name{font-size:11px;font-weight:600}
.halo{stroke-width:3px;paint-order:stroke;stroke-linejoin:round}
.line,.linear,.grid{fill:none}.line{stroke-width:2}.linear{stroke-dasharray:1 3}
"""


class _Figure(NamedTuple):
    """One figure of several workloads at several numbers of nodes."""

    title: str
    lines: Sequence[tuple[str, Sequence[tuple[int, float]]]]
    """Workloads, with numbers of nodes and values."""


def draw_growth(pods: Sequence[Growth[PodRun]], commands: Sequence[Growth[CommandRun]] = ()) -> str:
    """The picture as SVG; raises InputError if there is nothing to draw."""
    figures = [
        _Figure(
            "µs per pod, by number of nodes",
            [(one.workload, [(run.nodes, run.us_per_pod) for run in one.runs]) for one in pods],
        ),
        _Figure(
            "CPU seconds from file to last line, by number of nodes",
            [(one.workload, [(run.nodes, run.cpu_s) for run in one.runs]) for one in commands],
        ),
        _Figure(
            "MiB at the peak, by number of nodes",
            [(one.workload, [(run.nodes, run.peak_mib) for run in one.runs]) for one in commands],
        ),
    ]
    shown = [figure for figure in figures if figure.lines]
    if not shown:
        raise InputError("--svg: expected runs at several numbers of nodes; got none; try --growth")
    width = 2 * MARGIN + COLUMNS * WIDTH
    body: list[str] = []
    height = 0
    for figure in shown:
        body += _draw_figure(figure, width, height)
        height += HEAD + math.ceil(len(figure.lines) / COLUMNS) * HEIGHT
    height += MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img">',
            f"<title>{'; '.join(figure.title for figure in shown)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" width="{width}" height="{height}" rx="6"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _draw_figure(figure: _Figure, width: int, top: int) -> list[str]:
    """The charts of a figure below its title."""
    scale = _Scale(figure)
    parts = [
        f'<text class="text title" x="{MARGIN}" y="{top + 28}">{figure.title}</text>',
        f'<text class="faint" x="{width - MARGIN}" y="{top + 28}" text-anchor="end">'
        "dotted: grows as the nodes do</text>",
    ]
    for i, (name, points) in enumerate(figure.lines):
        row, column = divmod(i, COLUMNS)
        x, y = MARGIN + column * WIDTH, top + HEAD + row * HEIGHT
        parts += [f'<g transform="translate({x},{y})">', *_chart(name, points, scale), "</g>"]
    return parts


class _Scale:
    """Maps nodes and values to positions in a chart."""

    def __init__(self, figure: _Figure) -> None:
        points = [point for _, line in figure.lines for point in line]
        self.nodes = sorted({nodes for nodes, _ in points})
        values = [max(value, 0.1) for _, value in points]
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.decades = range(low, max(high, low + 1) + 1)

    def x(self, nodes: float) -> float:
        first, last = math.log(self.nodes[0]), math.log(self.nodes[-1])
        share = (math.log(nodes) - first) / (last - first)
        return LEFT + INSET + share * (WIDTH - LEFT - RIGHT - 2 * INSET)

    def y(self, value: float) -> float:
        low, high = self.decades[0], self.decades[-1]
        share = (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _chart(name: str, points: Sequence[tuple[int, float]], scale: _Scale) -> list[str]:
    parts = [f'<text class="text name" x="{LEFT}" y="14">{escape(name)}</text>']
    for decade in scale.decades:
        y = scale.y(10.0**decade)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text class="faint" x="{LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">'
            f"{_short(10.0**decade)}</text>"
        )
    for nodes in scale.nodes:
        parts.append(
            f'<text class="faint" x="{scale.x(nodes):.1f}" y="{HEIGHT - BOTTOM + 13}"'
            f' text-anchor="middle">{_short(nodes)}</text>'
        )
    parts.append(f'<path class="linear" d="{_linear(*points[0], scale)}"/>')
    places = [(scale.x(nodes), scale.y(value)) for nodes, value in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline class="line" points="{line}"/>')
    for (_, value), (x, y) in zip(points, places, strict=True):
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
        parts.append(
            f'<text class="text halo" x="{x:.1f}" y="{y - 7:.1f}" text-anchor="middle">'
            f"{_short(value)}</text>"
        )
    return parts


def _linear(first: int, value: float, scale: _Scale) -> str:
    """The line of linear growth from the first point, up to the top of the chart."""
    most = value * scale.nodes[-1] / first
    top = min(most, 10.0 ** scale.decades[-1])
    nodes = first * top / value
    start = f"{scale.x(first):.1f} {scale.y(value):.1f}"
    return f"M{start}L{scale.x(nodes):.1f} {scale.y(top):.1f}"


def _short(number: float) -> str:
    """The number in short form: 0.5, 42, 1.2k, 15k, 3M."""
    for limit, letter in ((1e6, "M"), (1e3, "k")):
        if number >= limit:
            return (
                f"{number / limit:.3g}{letter}"
                if number < 10 * limit
                else f"{number / limit:.0f}{letter}"
            )
    return f"{number:.2g}" if number < 10 else f"{number:.0f}"
