"""The dashboard and the alerts name metrics and labels that exist."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bayplan.clock import ManualClock
from bayplan.kube.leader import LeaderElector
from bayplan.kube.request_metrics import RequestMetrics
from bayplan.observe.families import HistogramFamily
from bayplan.observe.scheduler_metrics import SchedulerMetrics

from .promql import names_in

MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
RULES = [
    rule
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
OF_THE_TARGET = {"job", "instance", "namespace", "pod"}
"""Labels that Prometheus adds to every series when it scrapes."""
SEVERITIES = {"critical", "warning", "info"}


def exported() -> dict[str, set[str]]:
    """The labels of every series that `bayplan run` serves on /metrics, by its name."""
    metrics = SchedulerMetrics()
    lock = SimpleNamespace(name="kube-system/bayplan-scheduler")
    for family in LeaderElector(lock, "replica-0", ManualClock()).families():
        metrics.add(family)
    for family in RequestMetrics().families:
        metrics.add(family)
    found: dict[str, set[str]] = {}
    for family in metrics.families:
        labels = set(family.label_names)
        if isinstance(family, HistogramFamily):
            found[f"{family.name}_bucket"] = labels | {"le"}
            found[f"{family.name}_sum"] = found[f"{family.name}_count"] = labels
        else:
            found[family.name] = labels
    of_process = SchedulerMetrics().render(process=True)
    for metric in text_string_to_metric_families(of_process):
        for sample in metric.samples:
            found.setdefault(sample.name, set(sample.labels))
    return found


def panels(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every panel, also those within rows."""
    for item in items:
        yield item
        yield from panels(item.get("panels", []))


PANELS = list(panels(DASHBOARD["panels"]))
QUERIES = [
    pytest.param(target["expr"], target["legendFormat"], id=f"panel {panel['title']}")
    for panel in PANELS
    for target in panel.get("targets", [])
] + [pytest.param(rule["expr"], "", id=f"alert {rule['alert']}") for rule in RULES]


@pytest.mark.parametrize(("expression", "legend"), QUERIES)
def test_metrics_and_labels_exist(expression: str, legend: str) -> None:
    known = exported()
    named = names_in(expression)

    assert named.metrics, f"no metric in {expression}"
    assert named.metrics <= known.keys()
    labels = set.union(OF_THE_TARGET, *(known[name] for name in named.metrics))
    assert named.labels <= labels
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= labels


@pytest.mark.parametrize(("expression", "legend"), QUERIES)
def test_only_the_job_of_this_scheduler_is_selected(expression: str, legend: str) -> None:
    selectors = re.findall(r"\{([^}]*)\}", expression)

    assert len(selectors) == len(re.findall(r"\b(?:scheduler|leader|process)_\w+", expression))
    assert all(re.match(r'job(=~"\$job"|="bayplan-scheduler")', each) for each in selectors)


def test_every_metric_of_the_variables_exists() -> None:
    queries = [
        variable["query"]["query"]
        for variable in DASHBOARD["templating"]["list"]
        if variable["type"] == "query"
    ]

    named = {name for query in queries for name in re.findall(r"label_values\((\w+),", query)}

    assert named
    assert named <= exported().keys()


def test_no_two_panels_have_an_id() -> None:
    counts = Counter(panel["id"] for panel in PANELS)

    assert [number for number, count in counts.items() if count > 1] == []


def test_no_two_panels_lie_on_each_other() -> None:
    cells = Counter(
        (panel["gridPos"]["x"] + column, panel["gridPos"]["y"] + line)
        for panel in PANELS
        for column in range(panel["gridPos"]["w"])
        for line in range(panel["gridPos"]["h"])
    )

    assert max(cells.values()) == 1
    assert max(x for x, _ in cells) < 24


def test_no_two_alerts_have_a_name() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule["alert"]) for rule in RULES])
def test_an_alert_says_what_is_wrong_and_how_bad_it_is(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in SEVERITIES
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["description"].endswith(".")


@pytest.mark.parametrize(
    ("expression", "metrics", "labels"),
    [
        pytest.param("up", {"up"}, set(), id="a metric alone"),
        pytest.param('a{b="c", d=~"e"} / f', {"a", "f"}, {"b", "d"}, id="matchers"),
        pytest.param("sum by (le, b) (rate(a_bucket[5m]))", {"a_bucket"}, {"le", "b"}, id="by"),
        pytest.param("a > 1 unless on (b) c == bool 0", {"a", "c"}, {"b"}, id="operators"),
        pytest.param('a{b="x{y}[z] by (w)"}', {"a"}, {"b"}, id="a string is not parsed"),
        pytest.param("histogram_quantile(0.99, a) > 1e3", {"a"}, set(), id="numbers"),
    ],
)
def test_names_in_an_expression(expression: str, metrics: set[str], labels: set[str]) -> None:
    assert names_in(expression) == (metrics, labels)
