"""What lies in contrib/ for Prometheus and Grafana: loaded, tried, true to the reference page."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

CONTRIB = Path("contrib")
RULES = CONTRIB / "prometheus" / "haptera.rules.yaml"
DASHBOARD: dict[str, Any] = json.loads((CONTRIB / "grafana" / "haptera.json").read_text())
METRIC = re.compile(r"\bhaptera_\w+")
# What a histogram has beside its name.
SUFFIX = re.compile(r"_(bucket|count|sum)$")
COLUMNS = 24

promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def alerts() -> list[dict[str, Any]]:
    return [one for group in yaml.safe_load(RULES.read_text())["groups"] for one in group["rules"]]


def queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def told(*arguments: Any, where: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["promtool", *arguments], cwd=where, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout + done.stderr


@promtool
def test_each_alert_is_raised_by_what_it_is_for_and_by_nothing_else() -> None:
    code, said = told("test", "rules", "haptera.test.yaml", where=RULES.parent)
    assert code == 0, said
    tried = (RULES.parent / "haptera.test.yaml").read_text()
    assert [one["alert"] for one in alerts() if f'"{one["alert"]}"' not in tried] == []


def test_each_alert_names_the_section_that_says_what_to_do() -> None:
    page = "docs/reference/alerts.md"
    sections = re.findall(r"^## (\w+)$", Path(page).read_text(), re.MULTILINE)
    named = {one["alert"]: one["annotations"]["runbook"] for one in alerts()}
    assert named == {name: f"{page}#{name.lower()}" for name in sections}


@promtool
def test_prometheus_understands_each_query_of_the_dashboard(tmp_path: Path) -> None:
    records = [
        {"record": f"panel:{number}", "expr": expr.replace("$instance", ".*")}
        for number, expr in enumerate(queries())
    ]
    rules = {"groups": [{"name": "dashboard", "rules": records}]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    code, said = told("check", "rules", "rules.yaml", where=tmp_path)
    assert code == 0, said


def test_all_that_they_ask_for_is_on_the_reference_page() -> None:
    page = METRIC.findall(Path("docs/reference/metrics.md").read_text())
    asked = METRIC.findall(" ".join([*queries(), *(one["expr"] for one in alerts())]))
    assert asked
    assert {SUFFIX.sub("", one) for one in asked} - set(page) == set()


# Of a metric with its selector, as `haptera_entities{instance=~"$instance",condition="stuck"}`.
SELECTED = re.compile(r"\b(haptera_\w+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)(?==)")
BY = re.compile(r"\bby \(([^)]*)\)")
ROW = re.compile(r"^\| `(haptera_\w+)` \|([^|]*)\|", re.MULTILINE)
SCRAPED = {"instance", "job", "le"}  # What Prometheus adds, and histograms have


def test_each_label_that_they_ask_for_is_one_of_its_metric() -> None:
    """A misspelt label selects nothing, and nobody is told."""
    page = Path("docs/reference/metrics.md").read_text()
    known = {
        name: set(re.findall(r"`(\w+)`", labels)) | SCRAPED for name, labels in ROW.findall(page)
    }
    asked = [*queries(), *(one["expr"] for one in alerts())]
    for expr in asked:
        metrics = {SUFFIX.sub("", one) for one in METRIC.findall(expr)}
        told = set().union(*(known[one] for one in metrics)) | SCRAPED
        for name, selector in SELECTED.findall(expr):
            assert set(LABEL.findall(selector)) <= known[SUFFIX.sub("", name)], expr
        for labels in BY.findall(expr):
            assert {one.strip() for one in labels.split(",")} <= told, expr


# What Grafana's model of a dashboard has for these panels; it drops what it does not know.
PANEL = {
    *("id", "title", "description", "type", "gridPos", "datasource"),
    *("fieldConfig", "options", "targets"),
}
OPTIONS = {"stat": {"reduceOptions", "colorMode"}, "timeseries": set(), "table": set()}
UNITS = {"short", "s", "ops", "reqps", "bytes"}


def test_each_panel_says_all_that_grafana_draws_it_by_and_nothing_else() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    for one in DASHBOARD["panels"]:
        assert set(one) == PANEL, one["title"]
        assert set(one["gridPos"]) == {"x", "y", "w", "h"}
        assert all(type(place) is int for place in one["gridPos"].values()), one["title"]
        assert set(one["options"]) == OPTIONS[one["type"]], one["title"]
        assert set(one["fieldConfig"]) == {"defaults", "overrides"}
        defaults = one["fieldConfig"]["defaults"]
        assert defaults["unit"] in UNITS, one["title"]
        assert set(defaults) <= {"unit", "thresholds", "custom"}
        steps = defaults.get("thresholds", {"steps": [{"value": None}]})["steps"]
        assert steps[0]["value"] is None, "the first colour is that of all that is lower"
        assert one["datasource"] == source
        names = [target["refId"] for target in one["targets"]]
        assert names == list("ABC"[: len(names)]) != []
        for target in one["targets"]:
            assert set(target) - {"format", "instant"} == {
                "refId",
                "expr",
                "legendFormat",
                "datasource",
            }
            assert target["datasource"] == source


def test_each_alert_tells_what_to_do() -> None:
    for one in alerts():
        assert set(one["annotations"]) == {"summary", "description", "runbook"}, one["alert"]
        assert one["labels"]["severity"] in ("warning", "critical")


# What Grafana's model of dashboards asks of panels: without these it shows them on top of each
# other, or not at all.
# The reader of grafana-foundation-sdk asks for less: a text passes there for a width.
def test_no_two_panels_share_a_number_or_a_place() -> None:
    panels = DASHBOARD["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    taken = [
        (x, y)
        for one in panels
        for x in range(one["gridPos"]["x"], one["gridPos"]["x"] + one["gridPos"]["w"])
        for y in range(one["gridPos"]["y"], one["gridPos"]["y"] + one["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < COLUMNS
    known = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__all"} <= known
