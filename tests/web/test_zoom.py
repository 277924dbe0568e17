"""Zooming from the site to a rack and to one node: by pointer, keys and address, on a telephone."""

import pytest

from tests.api.serving import serving
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes, tell
from tests.web.test_overview import COUNTS, GROUPS, equals, see

pytestmark = [pytest.mark.slow, *CHROMIUM]

CRUMBS = "[...document.querySelectorAll('#zoom button')].map(e => e.textContent)"
HERE = "document.querySelector('#zoom [aria-current]')?.textContent"
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
TITLE, FIRST = (20, 12), (20, 40)  # of the first group, and its first cell
STUCK = NODES[3]  # of rack1, as two more are of rack2


@pytest.fixture(scope="module")
def parent():
    with serving(*changes()) as one:
        one.do(tell, one.backend)
        yield one


def key(page, name):
    page.ask("Input.dispatchKeyEvent", type="keyDown", key=name)


def press(page, x, y, times=1):
    """At this place of the map, in CSS pixels; a tap is a press for what lies there."""
    page.evaluate("document.getElementById('map').scrollIntoView()")
    left, top = page.evaluate(
        "(() => { const {left, top} = canvas.getBoundingClientRect(); return [left, top]; })()"
    )
    where = {"x": left + x, "y": top + y, "button": "left"}
    for number in range(1, times + 1):
        for kind in ("mousePressed", "mouseReleased"):
            page.ask("Input.dispatchMouseEvent", type=kind, clickCount=number, **where)


def test_keys_lead_from_the_site_to_a_rack_to_a_node_and_back(browser, parent):
    see(browser, parent, node=STUCK)
    assert browser.await_(equals(CRUMBS, ["quick", "rack1", STUCK]))
    assert browser.evaluate(HERE) == "quick"
    browser.evaluate("document.getElementById('list').focus()")
    key(browser, "Enter")
    assert browser.await_(equals(GROUPS, ["rack1"]))
    assert browser.evaluate(COUNTS) == ["3 converged", "1 stuck"]
    assert browser.evaluate("location.hash") == f"#node={STUCK}&within=rack1"

    key(browser, "Enter")
    assert browser.await_("document.getElementById('overview').hidden")
    assert browser.await_(f"document.activeElement.textContent === '{STUCK}'")
    assert browser.evaluate(HERE) == STUCK
    assert STUCK in browser.evaluate("document.querySelector('#panel article').innerText")

    for level in (equals(GROUPS, ["rack1"]), f"{GROUPS}.length === 4"):
        key(browser, "Escape")
        assert browser.await_(f"document.activeElement.id === 'list' && {level}")
    assert browser.evaluate("location.hash") == f"#node={STUCK}"
    assert browser.wrong == []


def test_a_title_is_pressed_to_show_its_rack_and_a_cell_twice_to_show_its_node(browser, parent):
    see(browser, parent)
    press(browser, *TITLE)
    assert browser.await_(equals(GROUPS, ["rack1"]))
    assert browser.await_(equals(CRUMBS, ["quick", "rack1"]))
    press(browser, *FIRST, times=2)
    assert browser.await_(f"{HERE} === '{NODES[0]}'")
    browser.evaluate("document.querySelector('#zoom button').click()")
    assert browser.await_(f"{GROUPS}.length === 4")
    assert browser.wrong == []


def test_a_search_is_counted_in_the_group_that_is_shown_by_whatever_it_is_grouped(browser):
    rows = {name: {"rack": "1", "switch": f"s{number % 2}"} for number, name in enumerate(NODES)}
    with serving(*changes(attributes=rows.__getitem__)) as parent:
        parent.do(tell, parent.backend)
        see(browser, parent, group="switch", within="s1", node=STUCK, select="condition%3Dstuck")
        lit = "document.getElementById('lit').textContent"
        assert browser.await_(f"{lit} === '2 of {len(NODES) // 2} nodes'")
        assert browser.evaluate(CRUMBS) == ["quick", "s1", STUCK]


@pytest.mark.long
def test_a_telephone_zooms_by_a_title_a_cell_and_a_name(browser, parent):
    browser.ask("Emulation.setDeviceMetricsOverride", **PHONE)
    try:
        see(browser, parent)
        press(browser, *TITLE)
        assert browser.await_(equals(GROUPS, ["rack1"]))
        press(browser, *FIRST)
        assert browser.await_(equals(CRUMBS, ["quick", "rack1", NODES[0]]))
        browser.evaluate("document.querySelector('#zoom [data-key=node]').click()")
        assert browser.await_(f"{HERE} === '{NODES[0]}'")
        assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    finally:
        browser.ask("Emulation.clearDeviceMetricsOverride")


@pytest.mark.long
def test_the_address_of_a_rack_or_a_node_opens_it_and_one_that_is_wrong_shows_all(browser, parent):
    see(browser, parent, within="rack2")
    assert browser.evaluate(GROUPS) == ["rack2"]
    browser.evaluate("document.querySelector('#causes button').click()")
    assert browser.await_(equals(GROUPS, ["rack1", "rack2"]))  # where the stuck ones are
    see(browser, parent, within="rack1", alone="yes", node=STUCK)
    assert browser.await_("document.getElementById('overview').hidden")
    see(browser, parent, within="cellar", alone="yes", node=NODES[5])
    assert len(browser.await_(GROUPS)) == 4
