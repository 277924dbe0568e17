"""A roll of an image is begun from the page, after it said what it would disrupt; and aborted."""

import pytest

from haptera.model.answers.views import ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId
from tests.api.serving import serving
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes
from tests.web.test_acting import confirm, press
from tests.web.test_overview import see

pytestmark = [pytest.mark.slow, *CHROMIUM]

IMAGE = EntityId("image", "debian-b", None)
ROLL = EntityId("roll", "debian-b", None)
SYSTEMS = [EntityId("system", "login", node) for node in NODES[:3]]
WRONG = "document.querySelector('#ask .wrong[role=alert]').textContent"
DIALOG = "document.getElementById('ask').innerText"
NEXT = "document.querySelector('#ask .go')?.textContent"


@pytest.fixture
def parent():
    declared = [Declare(one, {}, "site") for one in (IMAGE, *SYSTEMS)]
    images = [SetDesired(one, "image", "debian-a", "user:eve") for one in SYSTEMS]
    with serving(*changes(), *declared, *images) as one:
        built = ObservedView("built", known=True, method="read", by="image", age_ms=1)
        one.do(one.backend.say, IMAGE, observed={"state": built})
        yield one


def desired(parent, entity):
    return {name: held.value for name, held in parent.backend.entity(entity).desired.items()}


def test_a_roll_begins_after_what_it_disrupts_was_seen_and_is_aborted(browser, parent):
    see(browser, parent, token="write-token", show="image", node=str(IMAGE))
    press(browser, "roll")
    confirm(browser)
    assert "no controller of rolls runs" in browser.await_(f"{WRONG} && {WRONG}")
    controller = EntityId("module", "roll", None)
    parent.do(parent.backend.write, Declare(controller, {}, "site"))
    confirm(browser)
    browser.await_(f"{NEXT} === 'Begin'")
    told = browser.evaluate(DIALOG)
    assert "3 systems, 1 first, at most 10% away at once" in told
    assert "their images are desired by user:eve; they will be yours" in told
    assert browser.evaluate("document.querySelectorAll('#ask .plan li').length") > 0
    assert parent.backend.entity(SYSTEMS[0]).desired["image"].owner == "user:eve"

    browser.evaluate(
        "(() => { const it = document.getElementById('canary'); it.value = '2';"
        " it.dispatchEvent(new Event('input')); })()"
    )
    assert browser.evaluate(NEXT) == "Show what it disrupts"
    confirm(browser)
    browser.await_(f"{NEXT} === 'Begin'")
    confirm(browser, "the new kernel")
    browser.await_("!document.getElementById('ask').open")
    order = desired(parent, ROLL)
    assert order.pop("deadline") > 0
    assert order == {
        "image": "debian-b",
        "select": "system:*",
        "canary": 2,
        "unavailable": "10%",
        "on_failure": "give-back",
        "wish": "run",
    }
    beside = {"image": "debian-a", "spare": "debian-b", "roll": "debian-b", "attempt": 1}
    assert [desired(parent, one) for one in SYSTEMS] == [beside] * 3
    assert parent.backend.entity(SYSTEMS[0]).desired["image"].owner == "user:bob"

    see(browser, parent, token="write-token", show="roll", node=str(ROLL))
    press(browser, "abort")
    confirm(browser, "too many fail")
    browser.await_("!document.querySelector('#panel [data-deed=abort]')")
    assert desired(parent, ROLL)["wish"] == "abort"


@pytest.mark.long
def test_a_system_of_another_roll_is_not_taken(browser, parent):
    other = EntityId("roll", "c", None)
    for entity in (EntityId("module", "roll", None), other):
        parent.do(parent.backend.write, Declare(entity, {}, "site"))
    parent.do(parent.backend.write, SetDesired(other, "image", "debian-c", "user:eve"))
    for name, value in (("roll", "c"), ("spare", "debian-c")):
        parent.do(parent.backend.write, SetDesired(SYSTEMS[1], name, value, "user:eve"))
    see(browser, parent, token="write-token", show="image", node=str(IMAGE))
    press(browser, "roll")
    confirm(browser)
    assert "roll c has some of them: wait for it" in browser.await_(f"{WRONG} && {WRONG}")
