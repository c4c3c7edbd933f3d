"""Metric values: values of measures in their units, as tables show them."""

from __future__ import annotations

from ...api.text.durations import format_duration
from ...sim.measures import Measure, MeasureUnit, Metric

ARROWS = {1: " ↑", -1: " ↓"}
"""Whether more or less is better."""


def titled(measure: Measure) -> str:
    """The title of a measure, and whether more or less is better."""
    return f"{measure.title}{ARROWS.get(measure.direction, '')}"


def shown_metric(metric: Metric) -> str:
    """The mean, with several seeds with the margin of its confidence interval."""
    mean = _value(metric.measure, metric.mean)
    return mean if metric.margin is None else f"{mean} ±{_value(metric.measure, metric.margin)}"


def _value(measure: Measure, value: float) -> str:
    match measure.unit:
        case MeasureUnit.COUNT | MeasureUnit.AMOUNT:
            return f"{value:,.1f}".removesuffix(".0")
        case MeasureUnit.SECONDS if measure.is_repeatable:
            return format_duration(value)
        case MeasureUnit.SECONDS:
            return f"{value * 1e6:,.0f}µs"
        case MeasureUnit.RATIO | MeasureUnit.PRICE:
            return f"{value:,.2f}"
    return f"{value * 100:.1f}%"
