"""Work that is done from time to time has the metrics of client-go's work queues."""

from pathlib import Path

import pytest

from bayplan.observe.families import GaugeFamily, HistogramFamily
from bayplan.observe.series import exponential_buckets
from bayplan.web.tls import WorkQueues

UPSTREAM = Path(__file__).with_name("workqueue_metrics.txt")


def test_names_types_labels_and_buckets_are_those_of_client_go() -> None:
    lines = [line.split() for line in UPSTREAM.read_text().splitlines() if line[0] != "#"]
    families = {family.name: family for family in WorkQueues().families}

    assert sorted(families) == [name for name, *_ in lines]
    for name, kind, labels, *buckets in lines:
        family = families[name]
        assert ",".join(family.label_names) == labels
        assert isinstance(family, GaugeFamily) is (kind == "gauge")
        assert isinstance(family, HistogramFamily) is (kind == "histogram")
        if isinstance(family, HistogramFamily):
            first, factor, number = buckets[0].split(",")
            assert family.bounds == exponential_buckets(float(first), float(factor), int(number))


def test_work_is_counted_and_timed_also_when_it_fails() -> None:
    queues = WorkQueues()

    with queues.working("files"):
        pass
    with pytest.raises(OSError, match="gone"), queues.working("files"):
        raise OSError("gone")
    queues.retried("files")

    assert queues.adds.read() == {("files",): 2}
    assert queues.retries.read() == {("files",): 1}
    assert queues.worked.counts() == queues.waited.counts() == {("files",): 2}
    assert queues.waited.read()["files",].sum == 0
    assert queues.depth.read() == queues.unfinished.read() == {("files",): 0}
