"""Families: all series of one metric, distinguished by label values.

`labels` is for set-up code, which keeps the series it gets. A series is exposed once it has data;
one without labels, and a gauge, always are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from .series import CounterSeries, Distribution, Gauge, Histogram, Tally

LabelValues: TypeAlias = tuple[str, ...]
Values: TypeAlias = Mapping[LabelValues, float]
Source: TypeAlias = Callable[[], Mapping[Any, float]]
"""Returns numbers by LabelValues; any tuple of strings of the right length is valid."""
S = TypeVar("S")
F = TypeVar("F", bound="Family")


class Family(ABC):
    """One metric: its name with its labels, written as `name{label,label}`, and its help text."""

    def __init__(self, name: str, help: str) -> None:
        self.name, _, labels = name.removesuffix("}").partition("{")
        self.help = help
        self.label_names = tuple(filter(None, labels.split(",")))

    @abstractmethod
    def read(self) -> Mapping[LabelValues, Any]:
        """The exposed data, by label values."""


class Recorded(Family, Generic[S]):
    """A metric whose series belong to other code, which changes them."""

    def __init__(self, name: str, help: str, make: Callable[[], S]) -> None:
        super().__init__(name, help)
        self._make = make
        self._series: dict[LabelValues, S] = {}
        self._tallies: dict[tuple[LabelValues, ...], Tally] = {}
        if not self.label_names:
            self.labels()

    def labels(self, *values: str) -> S:
        """The series with these values, in the order of the labels; always the same object."""
        series = self._series.get(values)
        if series is None:
            assert len(values) == len(self.label_names), (
                f"{self.name} has the labels {self.label_names}; got {values}"
            )
            series = self._series[values] = self._make()
        return series

    def together(self, several: Iterable[LabelValues]) -> Tally:
        """One counter for several series that always grow together; always the same object."""
        key = tuple(several)
        for values in key:
            self.labels(*values)
        return self._tallies.setdefault(key, Tally())

    def _tallied(self) -> dict[LabelValues, int]:
        """Amounts that tallies add to each series."""
        counts = dict.fromkeys(self._series, 0)
        for key, tally in self._tallies.items():
            for values in key:
                counts[values] += tally.count
        return counts


class CounterFamily(Recorded[CounterSeries]):
    """A metric that only grows."""

    def __init__(self, name: str, help: str) -> None:
        super().__init__(name, help, CounterSeries)

    def read(self) -> Values:
        found = {}
        for values, tallied in self._tallied().items():
            count = self._series[values].count + tallied
            if count or not values:
                found[values] = count
        return found


class HistogramFamily(Recorded[Histogram]):
    """A metric that is a distribution."""

    def __init__(self, name: str, help: str, bounds: list[float]) -> None:
        self.bounds = bounds
        super().__init__(name, help, lambda: Histogram(bounds))

    def read(self) -> dict[LabelValues, Distribution]:
        found = {}
        for values, zeros in self._tallied().items():
            seen = self._series[values].read()
            seen.counts[0] += zeros
            if seen.count or not values:
                found[values] = seen
        return found

    def counts(self) -> Values:
        """The number of observations per series, usable as a counter at no extra cost."""
        return {values: seen.count for values, seen in self.read().items()}


class GaugeFamily(Recorded[Gauge]):
    """A metric that goes up and down."""

    def __init__(self, name: str, help: str) -> None:
        super().__init__(name, help, Gauge)

    def read(self) -> Values:
        return {values: gauge.value for values, gauge in self._series.items()}


class ReadCounter(Family):
    """A counter maintained elsewhere, read when it is exposed. Its `source` may be set later."""

    def __init__(self, name: str, help: str, source: Source = dict) -> None:
        super().__init__(name, help)
        self.source = source

    def read(self) -> Values:
        return self.source()


class ReadGauge(ReadCounter):
    """A gauge maintained elsewhere."""


class MetricRegistry:
    """Metrics that are exposed together, in the order in which they were added."""

    def __init__(self) -> None:
        self.families: list[Family] = []
        self._hidden: set[str] = set()

    def add(self, family: F) -> F:
        """Expose one more metric; for plugins with their own."""
        if family.name not in self._hidden:
            self.families.append(family)
        return family

    def histogram(self, name: str, help: str, bounds: list[float]) -> HistogramFamily:
        """Expose a new histogram."""
        return self.add(HistogramFamily(name, help, bounds))

    def read_gauge(self, name: str, help: str) -> ReadGauge:
        """Expose a new gauge that is maintained elsewhere."""
        return self.add(ReadGauge(name, help))

    def read_counter(self, name: str, help: str, source: Source = dict) -> ReadCounter:
        """Expose a new counter that is maintained elsewhere."""
        return self.add(ReadCounter(name, help, source))

    def counter(self, name: str, help: str) -> CounterFamily:
        """Expose a new counter."""
        return self.add(CounterFamily(name, help))

    def hide(self, names: Collection[str]) -> None:
        """Leave metrics out of the output, also those that are added later."""
        self._hidden |= set(names)
        self.families[:] = [family for family in self.families if family.name not in names]
