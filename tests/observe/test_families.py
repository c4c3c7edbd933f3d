import pytest

from bayplan.observe.families import CounterFamily, GaugeFamily, HistogramFamily, ReadCounter


def make_counters() -> CounterFamily:
    return CounterFamily("pods_total{result,profile}", "Pods.")


def test_a_series_is_the_same_object_each_time() -> None:
    family = make_counters()

    family.labels("scheduled", "a").count += 1
    family.labels("scheduled", "a").count += 1
    family.labels("scheduled", "b").count += 1

    assert family.read() == {("scheduled", "a"): 2, ("scheduled", "b"): 1}


def test_labels_must_all_have_a_value() -> None:
    with pytest.raises(AssertionError, match=r"pods_total has the labels .*'result', 'profile'"):
        make_counters().labels("scheduled")


def test_a_series_is_exposed_from_its_first_count() -> None:
    family = make_counters()
    series = family.labels("error", "a")

    assert family.read() == {}
    series.count += 1
    assert family.read() == {("error", "a"): 1}


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(CounterFamily("a_total", "A."), id="a counter"),
        pytest.param(HistogramFamily("a", "A.", [1.0]), id="a histogram"),
    ],
)
def test_a_metric_without_labels_is_always_exposed(family: CounterFamily | HistogramFamily) -> None:
    assert list(family.read()) == [()]


def test_a_gauge_is_always_exposed() -> None:
    family = GaugeFamily("work{kind}", "Work.")

    family.labels("binding")

    assert family.read() == {("binding",): 0}


def test_a_tally_counts_for_several_series() -> None:
    family = make_counters()
    both = family.together([("scheduled", "a"), ("scheduled", "b")])
    family.labels("scheduled", "a").count += 1

    both.count += 2

    assert family.read() == {("scheduled", "a"): 3, ("scheduled", "b"): 2}
    assert family.together([("scheduled", "a"), ("scheduled", "b")]) is both


def test_a_tally_in_a_histogram_counts_zeros() -> None:
    family = HistogramFamily("seconds{point}", "Seconds.", [1.0, 2.0])
    family.labels("Permit").observe(1.5)

    family.together([("Permit",), ("PostBind",)]).count += 3

    found = family.read()
    assert found["Permit",].counts == [3, 1, 0]
    assert found["Permit",].sum == 1.5
    assert found["PostBind",].counts == [3, 0, 0]
    assert family.counts() == {("Permit",): 4, ("PostBind",): 3}


def test_a_callback_counter_is_read_when_exposed() -> None:
    family = ReadCounter("pods_total{queue}", "Pods.")
    assert family.read() == {}

    counts = {("active",): 1}
    family.source = lambda: counts
    counts["active",] += 1

    assert family.read() == {("active",): 2}
