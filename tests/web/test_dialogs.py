"""Every dialog and form of the page, in both themes and widths: nothing serious, no scroll."""

import time
from importlib.resources import files

import pytest

from haptera.model.answers.past import Happened, Sort
from haptera.model.answers.views import BrakeView, ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from tests.api.serving import serving
from tests.cli.drawing.examples import EXAMPLES
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes, starts, tell
from tests.web.test_acting import OPEN
from tests.web.test_overview import leave, see

pytestmark = [pytest.mark.long, *CHROMIUM]

IMAGE, ROLL = EntityId("image", "debian-b", None), EntityId("roll", "c", None)
STUCK, DRAINED = NODES[3], NODES[6]
NODE_DEEDS = ("freeze", "power", "set", "retry")
# What is looked at, and the button that opens a dialog there.
DIALOGS = [
    *(({"node": STUCK}, f"#panel [data-deed={deed}]") for deed in NODE_DEEDS),
    ({"show": "image", "node": IMAGE}, "#panel [data-deed=roll]"),
    *(
        ({"show": "roll", "node": ROLL}, f"#panel [data-deed={d}]")
        for d in ("pause", "abort", "undo")
    ),
    *(({"show": "jobs"}, f"#jobs [data-deed={deed}]") for deed in ("drain", "resume")),
    ({"show": "jobs", "node": "job:1"}, "#panel [data-deed=cancel]"),
    ({}, "#brake [data-deed=release]"),
]
# Everything that a person sees, in both themes: what is serious by the rules of WCAG is none.
SEEN = [
    {},
    {"node": STUCK},
    {"view": "list"},
    {"colour": "job"},
    {"show": "group", "node": "group:ledger"},
    {"show": "jobs"},
    {"show": "haptera"},
]
FINDINGS = """
axe.run().then(({violations}) => violations
  .filter(({impact}) => ['serious', 'critical'].includes(impact))
  .map(({id, nodes}) => `${id}: ${nodes.map(({html}) => html.slice(0, 120)).join(' | ')}`))
"""
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def parent():
    others = (EntityId("module", "roll", None), EntityId("group", "ledger", None))
    declared = [Declare(one, {}, "site") for one in (IMAGE, ROLL, *others)]
    orders = {"image": "debian-c", "wish": "run"}.items()
    desired = [SetDesired(ROLL, name, value, "user:eve") for name, value in orders]
    with serving(*changes(), *declared, *desired) as one:
        one.do(tell, one.backend)
        built = ObservedView("built", known=True, method="read", by="image", age_ms=1)
        one.do(one.backend.say, IMAGE, observed={"state": built})
        one.do(one.backend.write, SetDesired(node_id(DRAINED), "work", "held", "user:eve"))
        starts(one, "relax", NODES[0])
        one.do(one.backend.graphs.update, {node_id(STUCK): EXAMPLES["chain"]})
        began = time.time() - 1000
        one.backend.happenings = [
            Happened(began + 100 * number, f"node:{STUCK}", Sort.SEEN, name, value)
            for number, values in ((2, ("off", "30")), (1, ("on", "20")))
            for name, value in zip(("power", "celsius"), values, strict=True)
        ]
        one.backend.braked = BrakeView("12 of 16 nodes are lost", 90_000)
        yield one


@pytest.fixture
def page(browser):
    yield browser
    browser.ask("Emulation.clearDeviceMetricsOverride")
    browser.ask("Emulation.setEmulatedMedia", features=[])


def holds_all(page, what):
    """Under axe's rules, and without scrolling sideways, in each width."""
    page.evaluate((files("axe_core_python") / "axe.min.js").read_text("utf-8"))
    for width in WIDTHS:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.ask("Emulation.setDeviceMetricsOverride", **size)
        assert page.evaluate(FINDINGS) == [], (what, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (what, width)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_nothing_serious_in_any_dialog(page, parent, theme):
    scheme = [{"name": "prefers-color-scheme", "value": theme}]
    page.ask("Emulation.setEmulatedMedia", features=scheme)
    for looked_at, button in DIALOGS:
        see(page, parent, token="write-token", **looked_at)
        page.await_(f"document.querySelector('{button}')")
        page.evaluate(f"document.querySelector('{button}').click()")
        page.await_(OPEN)
        holds_all(page, button)
    page.evaluate("sessionStorage.clear()")
    leave(page)
    page.go(parent.url)
    page.await_("document.getElementById('sign-in')?.hidden === false")
    holds_all(page, "sign-in")


UNFOLD = "document.querySelectorAll('details:not([hidden])').forEach((one) => { one.open = true; })"
# What is there of a node once all is unfolded: its graph, and its plots.
UNFOLDED = ("#graph .state", "#plots polyline", "#plots rect")


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_nothing_serious_in_any_view_with_all_unfolded(page, parent, theme):
    scheme = [{"name": "prefers-color-scheme", "value": theme}]
    page.ask("Emulation.setEmulatedMedia", features=scheme)
    for looked_at in SEEN:
        see(page, parent, token="write-token", **looked_at)
        page.evaluate(UNFOLD)
        if looked_at.get("node") == STUCK:
            for part in UNFOLDED:
                page.evaluate(UNFOLD)
                page.await_(f"document.querySelector('{part}')")
        holds_all(page, looked_at)


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize(
    "looked_at",
    [
        {"node": STUCK, "within": "rack1"},
        {"node": STUCK, "within": "rack1", "alone": "yes"},
        {"show": "roll", "node": ROLL},
    ],
)
def test_axe_finds_nothing_serious_at_any_level(page, parent, theme, looked_at):
    scheme = [{"name": "prefers-color-scheme", "value": theme}]
    page.ask("Emulation.setEmulatedMedia", features=scheme)
    see(page, parent, token="write-token", **looked_at)
    page.await_("document.querySelector('#panel article')")
    holds_all(page, looked_at)
