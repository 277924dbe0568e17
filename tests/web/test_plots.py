"""What was seen of a node's variables, as strips and lines over time."""

import time

import pytest

from haptera.model.answers.past import Happened, Sort
from haptera.model.entity import node_id
from haptera.model.samples import Point
from tests.api.serving import serving
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes
from tests.web.test_overview import equals, see

pytestmark = [pytest.mark.slow, *CHROMIUM]

NODE, OTHER = NODES[0], NODES[1]
POWER, HEAT = (("power", ("on", "off", "on")), ("celsius", ("20", "30", "25")))
TITLES = "[...document.querySelectorAll('#plots figcaption')].map(e => e.firstChild.textContent)"
COLOURS = "[...document.querySelectorAll('#plots rect')].map(e => e.getAttribute('class'))"
VALUES = "[...document.querySelectorAll('#plots rect title')].map(e => e.textContent)"
LINES = "[...document.querySelectorAll('#plots polyline')].map(e => e.getAttribute('points'))"
HEIGHTS = f"{LINES}.map((one) => one.split(' ').map((at) => Number(at.split(',')[1])))"
TOLD = "document.querySelectorAll('#plots svg')[1].getAttribute('aria-label')"


def look(browser):
    browser.await_("!document.getElementById('plots').hidden")
    browser.evaluate("document.getElementById('plots').open = true")


def test_states_are_a_strip_numbers_a_line_and_what_was_not_known_is_a_gap(browser):
    with serving(*changes()) as parent:
        began = time.time() - 1000
        rows = [
            Happened(began + 100 * number, f"node:{NODE}", Sort.SEEN, name, value)
            for name, values in (POWER, HEAT)
            for number, value in enumerate(values)
        ]
        rows.append(Happened(began + 50, f"node:{OTHER}", Sort.SEEN, "power", "on"))
        rows.append(Happened(began + 250, "", Sort.BEGUN))
        rows.append(Happened(began + 400, f"node:{NODE}", Sort.SEEN, "celsius", "20"))
        parent.backend.happenings = sorted(rows, key=lambda one: one.at_s, reverse=True)
        see(browser, parent, node=NODE)
        look(browser)
        browser.await_(equals(TITLES, [f"node:{NODE} celsius ", f"node:{NODE} power "]))
        assert browser.evaluate(COLOURS) == ["value0", "value1", "value0"]
        assert browser.evaluate(VALUES) == ["on", "off", "on"]
        assert browser.evaluate(HEIGHTS) == [[19, 19, 1, 1, 10, 10], [19, 19]]
        told = browser.evaluate(TOLD)
        assert told.startswith(f"node:{NODE} power: on since ")
        assert ", unknown since " in told
        browser.evaluate(f"location.hash = 'node={OTHER}'")
        browser.await_("!document.getElementById('plots').open")
        look(browser)
        browser.await_(equals(TITLES, [f"node:{OTHER} power "]))
        assert browser.wrong == []


def test_of_what_was_not_seen_yet_that_is_told(browser):
    with serving(*changes()) as parent:
        see(browser, parent, node=NODE)
        look(browser)
        told = "document.querySelector('#plots div')?.innerText"
        assert browser.await_(told) == "nothing was seen yet"


def test_what_is_measured_is_a_line_with_its_unit_and_gaps(browser):
    with serving(*changes()) as parent:
        samples, now = parent.backend.samples, time.time()
        samples.now = {node_id(NODE): {"temp.inlet": 21.5}, node_id(OTHER): {"temp.inlet": 9.0}}
        values = (20.0, 30.0, 25.0)
        samples.told = [
            Point(now - 3600 * (3 - number), value - 1, value, value + 1, 9)
            for number, value in enumerate(values)
        ]
        see(browser, parent, node=NODE)
        look(browser)
        browser.await_(equals(TITLES, [f"node:{NODE} temp.inlet "]))
        assert browser.evaluate(HEIGHTS) == [[19, 19], [1, 1], [10, 10]]
        assert browser.evaluate("document.querySelector('#plots small').textContent") == (
            "25 °C, from 19 to 31 in 6 h"
        )
        assert [asked[1:] for asked in samples.asked] == [("temp.inlet", 21600, 120)]
        assert browser.wrong == []
