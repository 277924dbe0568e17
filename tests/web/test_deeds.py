"""What each button does and who is told to have done it; without a fit token none is there."""

import pytest

from haptera.model.answers.views import BrakeView, ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.runtime.identity.tokens import ApiToken, Bearer, Scope
from tests.api.serving import serving
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes, starts, tell
from tests.web.test_acting import DEEDS, OPEN, STUCK, UNSAID, confirm, press
from tests.web.test_overview import equals, see
from tests.web.test_status_page import words

pytestmark = [pytest.mark.slow, *CHROMIUM]

IMAGE, ROLL = EntityId("image", "debian-b", None), EntityId("roll", "b", None)
LIMITED = "hp1.t1.x"
DIALOG = "document.getElementById('ask').innerText"
DRAIN = "#jobs [data-deed=drain]"
SIGN_IN = "document.getElementById('sign-in')?.hidden === false"
BUTTONS = (
    "[...new Set([...document.querySelectorAll('[data-deed]')].map((e) => e.dataset.deed))].sort()"
)
NODE = {"freeze", "power", "set", "retry"}
PAINTED = "new Promise((all) => requestAnimationFrame(() => requestAnimationFrame(all)))"
# Each view, what is there once it is painted, and what may be done there beside the brake.
VIEWS = [
    ({"node": STUCK}, "#panel article", NODE),
    ({"node": STUCK, "view": "list"}, "#panel article", NODE),
    ({"node": STUCK, "within": "rack1", "alone": "yes"}, "#panel article", NODE),
    ({"show": "image", "node": IMAGE}, "#panel article", {"freeze", "set", "roll"}),
    ({"show": "roll", "node": ROLL}, "#panel article", {"freeze", "set", "pause", "abort", "undo"}),
    ({"show": "jobs", "node": "job:1"}, "#panel article", {"cancel", "drain"}),
    ({"show": "jobs"}, "#jobs tbody tr", {"drain"}),
    ({"show": "haptera"}, "#health tbody tr", set()),
]


@pytest.fixture
def parent():
    wishes = {"image": "debian-c", "wish": "run"}.items()
    with serving(
        *changes(),
        *(Declare(one, {}, "site") for one in (IMAGE, ROLL)),
        *(SetDesired(ROLL, name, value, "user:eve") for name, value in wishes),
    ) as one:
        one.do(tell, one.backend)
        built = ObservedView("built", known=True, method="read", by="image", age_ms=1)
        one.do(one.backend.say, IMAGE, observed={"state": built})
        starts(one, "relax", NODES[0])
        yield one


def audit(parent):
    return [(one.who, one.what, one.why) for one in parent.backend.noted]


def wish(parent):
    held = parent.backend.entity(ROLL).desired["wish"]
    return held.value, held.owner


def test_a_node_is_drained_after_the_jobs_there_were_told(browser, parent):
    see(browser, parent, token="write-token", show="jobs")
    browser.await_(f"document.querySelector('{DRAIN}')")
    browser.evaluate(f"document.querySelector('{DRAIN}').click()")
    browser.await_(OPEN)
    asked = browser.evaluate(DIALOG)
    assert (f"Drain {NODES[0]}?" in asked, "job:1" in asked) == (True, True)
    confirm(browser)
    assert browser.evaluate(UNSAID)  # whoever finds it is to know why
    assert "work" not in parent.backend.entity(node_id(NODES[0])).desired
    browser.evaluate("document.getElementById('span').value = '600'")
    confirm(browser, "a fan")
    browser.await_(f"!{OPEN}")
    desired = parent.backend.entity(node_id(NODES[0])).desired
    said = [(desired[name].value, desired[name].owner) for name in ("work", "work_why")]
    assert said == [("draining", "user:bob"), ("a fan", "user:bob")]
    assert int(desired["work_until"].value) > 600
    assert audit(parent)[-1] == ("user:bob", "3 changes", "a fan")


def test_a_roll_is_paused_gone_on_with_and_undone_under_the_name_of_the_token(browser, parent):
    see(browser, parent, token="write-token", show="roll", node=str(ROLL))
    whose = "user:eve"
    for deed, told in (("pause", "pause"), ("goOn", "run"), ("undo", "undo")):
        press(browser, deed)
        assert f"as {whose} says: that will be yours" in browser.evaluate(DIALOG)
        confirm(browser, f"for {deed}")
        browser.await_(f"!{OPEN}")
        whose = "user:bob"
        assert wish(parent) == (told, whose)
        assert audit(parent)[-1] == ("user:bob", "1 change", f"for {deed}")
    browser.await_("!document.querySelector('#panel [data-deed=undo]')")
    assert browser.evaluate(DEEDS) == f"Freeze {ROLL},Set a value"  # nothing undoes an undo


def test_each_view_has_buttons_for_who_may_and_none_for_who_may_only_read(browser, parent):
    parent.backend.braked = BrakeView("12 of 16 nodes are lost", 90_000)
    for looked_at, there, deeds in VIEWS:
        see(browser, parent, token="write-token", **looked_at)
        browser.await_(equals(BUTTONS, sorted(deeds | {"release"})))
        see(browser, parent, **looked_at)
        browser.await_(f"document.querySelector('{there}')")
        browser.await_("!document.getElementById('brake').hidden")
        browser.evaluate(PAINTED)  # what the token may was told before the brake
        assert browser.evaluate(BUTTONS) == [], looked_at


def test_who_signs_out_leaves_no_token_and_no_cluster_behind(browser, parent):
    see(browser, parent, token="write-token", node=STUCK, within="rack1")
    assert browser.evaluate("sessionStorage.length") == 1
    before = browser.loads
    browser.evaluate("document.getElementById('sign-out').click()")
    browser.await_load(before)
    browser.await_(SIGN_IN)
    assert browser.await_(words("no token: open the address that haptera printed"))
    assert browser.evaluate("sessionStorage.length + localStorage.length") == 0
    assert browser.evaluate("document.cookie") == ""
    visited = [one["url"] for one in browser.ask("Page.getNavigationHistory")["entries"]]
    assert [url for url in visited if url.startswith(parent.url)] == [f"{parent.url}/"]
    assert "quick" not in browser.evaluate("document.title")
    assert (
        browser.evaluate(
            "document.querySelector('[data-node], [data-entity], #sign-out:not([hidden])')"
        )
        is None
    )


def test_a_session_ends_with_its_token_and_goes_on_with_one_that_is_pasted(browser, parent):
    minted, backend = parent.backend.tokens.minted, parent.backend
    minted[LIMITED] = ApiToken("t1", Bearer("eve", Scope.WRITE), b"", 1000.0, 1e12)
    see(browser, parent, token=LIMITED, node=STUCK)
    browser.await_(DEEDS)
    parent.do(minted.pop, LIMITED)
    parent.do(backend.say, EntityId("node", NODES[0], None), why="news")
    browser.await_(SIGN_IN)
    assert browser.await_("!document.querySelector('[data-deed]')")
    assert browser.evaluate("document.getElementById('who').textContent") == ""
    browser.evaluate(
        "(() => { document.getElementById('token').value = ' write-token ';"
        " document.getElementById('sign-in').requestSubmit(); })()"
    )
    assert browser.await_(DEEDS)
    assert browser.evaluate("document.getElementById('token').value") == ""
    assert not any("write-token" in one["url"] for one in browser.requests)
