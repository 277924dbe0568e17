"""Time on the page: when things happened, and the cluster as it was."""

import time

import pytest

from haptera.model.answers.past import Happened, PastView, Sort
from tests.api.serving import serving
from tests.web.chromium import CHROMIUM, browsing
from tests.web.seen import NODES, changes, tell
from tests.web.test_overview import COUNTS, equals, search, see

pytestmark = [pytest.mark.slow, *CHROMIUM]

LABEL = "document.querySelector('#time output').textContent"
BUTTONS = "document.querySelectorAll('#panel button').length"
AGO_S = 1200
EXPECTED = ("network", "rendering")
THEN_COUNTS = ["15 converged", "1 stuck"]


class TwoTimes(dict):
    """One past before the last half hour, and another one after it, whenever it is asked for."""

    def get(self, at_s, _other):
        return self["early" if at_s < time.time() - 1800 else "late"]


def past(broken):
    for name in NODES:
        condition = "stuck" if name == broken else "converged"
        why = "it burnt" if name == broken else None
        attributes = {"rack": name.partition("n")[0]}
        yield PastView(f"node:{name}", attributes, {"power": "on"}, {"power": "on"}, condition, why)


@pytest.fixture(scope="module")
def parent():
    with serving(*changes()) as one:
        one.do(tell, one.backend)
        at_s = time.time() - AGO_S
        one.backend.happenings = [
            Happened(at_s, f"node:{NODES[0]}", Sort.STANDS, None, "stuck", "it burnt"),
            Happened(at_s - 1, f"node:{NODES[0]}", Sort.TRIED, "ipmi.boot", "failed", "no answer"),
        ]
        one.backend.pasts = TwoTimes(early=list(past(NODES[1])), late=list(past(NODES[0])))
        yield one


@pytest.fixture
def page(tmp_path, parent):
    with browsing(tmp_path) as browser:
        yield browser
        # Refusals are meant here, and so is reading pixels back.
        assert [one for one in browser.wrong if one.get("source") not in EXPECTED] == []


def slide(page, position):
    page.evaluate(
        "(() => { const it = document.querySelector('#time input');"
        f" it.value = '{position}'; it.dispatchEvent(new Event('input')); }})()"
    )


def test_the_slider_leads_to_how_it_was_and_back(page, parent):
    see(page, parent, token="write-token", node=NODES[3])
    page.await_(f"{COUNTS}.length > 1")
    now = page.evaluate(COUNTS)
    assert page.await_(f"{BUTTONS} > 0")
    page.evaluate("document.getElementById('time').open = true")
    page.await_("document.querySelectorAll('#time ol time').length >= 2")
    assert page.evaluate(FAILED) == ["is stuck: it burnt", "ipmi.boot failed: no answer"]

    slide(page, 80)
    page.await_(equals(COUNTS, THEN_COUNTS))
    assert page.evaluate(LABEL).startswith("as it was at ")
    assert page.evaluate("location.hash.includes('at=')")
    assert page.await_(f"{BUTTONS} === 0")  # What was is not acted on.
    text = page.evaluate("document.querySelector('#panel article').innerText")
    assert "desired: on\n" in f"{text}\n"

    page.evaluate("document.querySelector('#time button').click()")
    page.await_(equals(COUNTS, now))
    assert page.evaluate(LABEL) == "now"
    assert not page.evaluate("location.hash.includes('at=')")
    assert page.await_(f"{BUTTONS} > 0")


FAILED = "[...document.querySelectorAll('#time ol .failed span')].map((one) => one.innerText)"
DIFFERENCES = "[...document.querySelectorAll('#differences li')].map((one) => one.innerText)"
HEADING = "document.getElementById('compared').textContent"
KEEP = "document.getElementById('keep').click()"


def test_differences_to_now_are_told_alike_together_and_lead_to_their_nodes(page, parent):
    see(page, parent, at=int(time.time()) - AGO_S)
    page.await_(equals(COUNTS, THEN_COUNTS))
    assert page.evaluate(HEADING).endswith(" and now")
    told = page.evaluate(DIFFERENCES)
    assert told == [
        "4 nodes observed power: on \u2192 off",
        "3 nodes condition: converged \u2192 stuck",
        "rack3n1 condition: converged \u2192 waiting",
        "rack1n1 condition: stuck \u2192 converged",
        "rack3n2 desired power: on \u2192 off",
    ]
    page.evaluate("document.querySelectorAll('#differences button')[1].click()")
    page.await_("document.getElementById('lit').textContent === '3 of 16 nodes'")


def test_a_kept_time_is_compared_with_another_and_with_now_again(page, parent):
    see(page, parent, at=int(time.time()) - 3000)
    page.await_(f"{DIFFERENCES}.length > 1")
    page.evaluate(KEEP)
    page.await_(equals(DIFFERENCES, ["nothing"]))  # The time that is shown is the kept one.
    assert page.evaluate("location.hash.includes('since=')")
    page.await_("Number(document.querySelector('#time input').value) < 100")
    slide(page, 100)
    page.await_(
        equals(
            DIFFERENCES,
            [
                "rack1n1 condition: converged \u2192 stuck",
                "rack1n2 condition: stuck \u2192 converged",
            ],
        )
    )
    page.evaluate(KEEP)
    page.await_(f"{HEADING}.endsWith(' and now')")
    assert not page.evaluate("location.hash.includes('since=')")


def test_what_failed_is_seen_on_the_strip(page, parent):
    see(page, parent)
    page.evaluate("document.getElementById('time').open = true")
    red = (
        "(() => { const it = document.querySelector('#time canvas'); if (!it.width) return 0;"
        " const all = it.getContext('2d').getImageData(0, 0, it.width, it.height).data;"
        " let found = 0; for (let at = 0; at < all.length; at += 4)"
        " if (all[at] > 180 && all[at + 1] < 110 && all[at + 3] > 200) found += 1;"
        " return found; })()"
    )
    assert page.await_(f"{red} > 0")


def test_an_address_leads_to_its_time_and_the_past_is_searched_by_names(page, parent):
    at_s = int(time.time()) - AGO_S
    see(page, parent, at=at_s)
    page.await_(equals(COUNTS, THEN_COUNTS))
    search(page, "rack2*")
    page.await_("document.getElementById('lit').textContent === '4 of 16 nodes'")
    search(page, "power=on")
    told = "document.getElementById('searched').textContent"
    assert page.await_(f"{told}.includes('past states are selected by names')")
    assert page.evaluate(LABEL).startswith("as it was at ")


def test_a_time_that_the_parent_refuses_is_told_and_the_present_stays(page, parent):
    see(page, parent, at=99999999999)
    told = "document.getElementById('searched').textContent"
    assert page.await_(told)
    assert page.evaluate(f"{COUNTS}.some((one) => one.startsWith('3 stuck'))")
