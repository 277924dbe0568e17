"""Freezing, thawing and retrying from the page: with a token that may, and only with one."""

import json

import pytest

from haptera.cli.main import OK
from haptera.model.entity import node_id
from haptera.runtime.identity.tokens import ApiToken, Bearer, Scope
from tests.api.serving import serving
from tests.cli.rig import client_of, served, typed
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes, tell

pytestmark = [pytest.mark.slow, *CHROMIUM]

STUCK = NODES[3]
DEEDS = "[...document.querySelectorAll('#panel [data-deed]')].map(e => e.textContent).join()"
TEXT = "document.querySelector('#panel article')?.innerText"
OPEN = "document.getElementById('ask').open"
UNSAID = (
    "document.querySelector('#ask[open] #why:invalid') !== null"  # the browser sends no such form
)
FOUR = "cluster: small\nnodes: {'n[1-4]': {rack: '1'}}\nmodules: [service]\n"
WRONG = "document.querySelector('#ask .wrong').textContent"
SAVED = "document.querySelector('#saved div').innerText"
SITE = "cluster: small\nnodes: {'n[1-2]': {rack: '1'}}\nmodules: [service]\n"


def choose(browser, url, token, node=STUCK):
    browser.go("about:blank")
    browser.go(f"{url}/#token={token}&node={node}")
    browser.await_("document.querySelector('#who')?.textContent.includes(':')")
    browser.await_("document.querySelector('#panel article')")


def press(browser, deed):
    browser.await_(f"document.querySelector('#panel [data-deed={deed}]')")
    browser.evaluate(f"document.querySelector('#panel [data-deed={deed}]').click()")
    browser.await_(OPEN)


def confirm(browser, why=None):
    if why is not None:
        browser.evaluate(f"document.getElementById('why').value = {why!r}")
    browser.evaluate("document.querySelector('#ask .go').click()")


def test_a_limited_token_may_retry_and_freeze_what_is_its_own(browser):
    with serving(*changes()) as parent:
        parent.do(tell, parent.backend)
        bearer = Bearer("eve", Scope.WRITE, "rack1*")
        parent.backend.tokens.minted["hp1.t1.x"] = ApiToken("t1", bearer, b"", 1000.0, 1e12)
        choose(browser, parent.url, "hp1.t1.x")
        deeds = f"Freeze {STUCK},Switch off,Set a value,Retry now"
        assert browser.await_(DEEDS) == deeds
        press(browser, "freeze")
        confirm(browser, "board swap")
        assert browser.await_("document.getElementById('done').textContent")
        frozen = [one for one in parent.backend.store.values() if one.entity.kind == "freeze"]
        assert [(one.owner, one.desired["reason"].value) for one in frozen] == [
            ("user:eve", "board swap")
        ]


def test_a_retry_names_what_it_affects_and_is_asked_for_once(browser):
    with serving(*changes()) as parent:
        parent.do(tell, parent.backend)
        choose(browser, parent.url, "write-token")
        press(browser, "retry")
        assert f"node:{STUCK}" in browser.evaluate("document.getElementById('ask').innerText")
        assert parent.backend.asked == []
        confirm(browser, "the cable is in again")
        assert browser.await_("document.getElementById('done').textContent")
        assert parent.backend.asked == [node_id(STUCK)]
        noted = parent.backend.noted[-1]
        assert (noted.who, noted.what) == ("user:bob", f"retry node:{STUCK}")


def test_a_freeze_that_is_cancelled_or_has_no_reason_is_none(browser):
    with serving(*changes()) as parent:
        choose(browser, parent.url, "write-token")
        press(browser, "freeze")
        confirm(browser)
        assert browser.evaluate(UNSAID)
        browser.evaluate("document.querySelector('#ask [type=button]').click()")
        assert not browser.evaluate(OPEN)
        assert not any(one.kind == "freeze" for one in parent.backend.store)


def test_freezing_and_thawing_reach_a_real_parent_under_the_name_of_the_token(browser, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "site.yaml").write_text(SITE)
    with served(home, "--site", home / "site.yaml"):
        url = json.loads(client_of(home).read_text())["url"]
        text = typed("token", "make", "eve", "--scope", "write", folder=home)[1].split()[-1]
        choose(browser, url, text, "n1")
        press(browser, "freeze")
        confirm(browser, "board swap")
        told = browser.await_(f"{TEXT}.includes('board swap') && {TEXT}")
        assert "frozen by user:eve" in told
        press(browser, "thaw")
        asked = browser.evaluate("document.getElementById('ask').innerText")
        assert "node:n1: frozen by user:eve: board swap" in asked
        confirm(browser)
        assert browser.await_("!document.querySelector('#panel [data-deed=thaw]')")
        assert "board swap" not in typed("freeze", folder=home)[1]


@pytest.mark.campaign
def test_a_saved_plan_is_applied_once_after_it_said_whom_it_disrupts(browser, tmp_path):
    home, site, plan = tmp_path / "home", tmp_path / "site.yaml", tmp_path / "night.plan"
    home.mkdir()
    site.write_text(FOUR)
    with served(home, "--site", site):
        site.write_text(FOUR.replace("n[1-4]", "n1"))
        assert typed("plan", site, "--save", plan, folder=home)[0] == OK
        url = json.loads(client_of(home).read_text())["url"]
        for scope in ("read", "write"):
            text = typed("token", "make", scope, "--scope", scope, folder=home)[1].split()[-1]
            choose(browser, url, text, "n1")
            open_plan(browser, plan)
            told = browser.await_(f"{SAVED}.includes('disrupts') && {SAVED}")
            assert "forgets node on n[2-4] (3)" in told
            assert "disrupts up to 3 of 4 nodes: n[2-4]" in told
            assert ("Apply" in told) == (scope == "write")
        browser.evaluate("document.querySelector('#saved [data-deed=apply]').click()")
        browser.await_(OPEN)
        asked = browser.evaluate("document.getElementById('ask').innerText")
        assert "disrupts up to 3 of 4 nodes: n[2-4]" in asked
        # Somebody else takes one of these, after it was read and before it is applied.
        assert typed("set", "node:n2", "power=on", folder=home)[0] == OK
        confirm(browser, "the hall is too warm")
        assert "its power belongs to user:cli" in browser.await_(WRONG)
        assert "n2" in typed("get", "node:*", folder=home)[1]
        assert typed("unset", "node:n2", "power", folder=home)[0] == OK
        confirm(browser)
        browser.await_(f"!{OPEN}")
        browser.await_(f"{SAVED}.includes('is applied')")
        assert browser.evaluate("document.querySelector('#saved [data-deed]')") is None
        assert "user:write" in typed("history", "--audit", folder=home)[1]
        assert "n2" not in typed("get", "node:*", folder=home)[1]
        open_plan(browser, plan)
        browser.await_(f"{SAVED}.includes('is out of date')")
        assert browser.evaluate("document.querySelector('#saved [data-deed]')") is None
        open_plan(browser, site)
        browser.await_(f"{SAVED}.includes('site.yaml is not a plan: choose a file')")


def open_plan(browser, path):
    browser.evaluate("document.getElementById('saved').open = true")
    document = browser.ask("DOM.getDocument")["root"]["nodeId"]
    node = browser.ask("DOM.querySelector", nodeId=document, selector="#saved input")["nodeId"]
    browser.ask("DOM.setFileInputFiles", files=[str(path)], nodeId=node)
