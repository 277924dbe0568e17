"""The status page as a person has it: opened in a browser by its link, and kept open."""

import json
from urllib.parse import urlsplit

import pytest

from haptera.api.serving.guard import HEADERS
from haptera.cli.main import OK
from haptera.model.answers.views import Condition, ObservedView
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.runtime import clock
from haptera.runtime.identity.tokens import ApiToken, Bearer, Scope
from tests.api.serving import OWN, serving
from tests.cli.rig import client_of, served, typed
from tests.web.chromium import CHROMIUM, browsing

pytestmark = [pytest.mark.slow, *CHROMIUM]

# In how long a cell shows what came; the best of some tries, for others use the machine too.
CHANGES_WITHIN_S = 1.0
TRIES = 5

N1, N2, WEB = node_id("r1n1"), node_id("r2n1"), EntityId("service", "web", "r1n1")
CHANGES = (
    Declare(N1, {"rack": "r1"}, "site"),
    Declare(N2, {"rack": "r2"}, "site"),
    Declare(WEB, {}, "site"),
)
SITE = "cluster: small\nnodes: {'n[1-2]': {rack: '1'}}\nmodules: [service]\n"
GROUPS = "[...document.querySelectorAll('#list [role=group]')].map(e => e.ariaLabel)"
ON = {"power": ObservedView("on", True, "read", "bmc", 500)}


@pytest.fixture
def page(tmp_path):
    with browsing(tmp_path) as one:
        yield one


def cell(name, colour):
    return f"document.querySelector('[data-node={name}]')?.className === 'cell {colour}'"


def words(text):
    """Whether the page says this of its link to the parent."""
    return f"document.getElementById('link')?.textContent.includes({text!r})"


def link(parent, token="read-token"):
    return f"{parent.url}/#token={token}"


def test_its_link_opens_the_page_and_nothing_is_loaded_from_elsewhere(page):
    with serving(*CHANGES) as parent:
        parent.do(parent.backend.say, N1, observed=ON)
        page.go(link(parent))

        assert page.await_(words("live"))
        assert page.await_(cell("r1n1", "converged"))
        assert page.await_(cell("r2n1", "dark"))
        assert page.evaluate("document.title") == "quick \u00b7 haptera"
        assert page.evaluate("location.href") == f"{parent.url}/"  # nothing to look over for
        assert page.evaluate(GROUPS) == ["r1", "r2"]

        own = urlsplit(parent.url)[:2]
        loaded = [urlsplit(one["url"]) for one in page.requests]
        fetched = [one for one in loaded if one.scheme != "data"]  # its icon is in the page itself
        assert {one[:2] for one in fetched} == {own}
        asked = {one.path for one in fetched if not one.path.startswith("/page/")}
        assert asked - {"/v1/brake", "/v1/summary"} == {"/", "/v1/events", "/v1/caller"}
        assert not any("read-token" in one["url"] for one in page.answers)
        policy = HEADERS["Content-Security-Policy"]
        answered = [one for one in page.answers if not one["url"].startswith("data:")]
        assert {headers(one)["content-security-policy"] for one in answered} == {policy}
        assert page.wrong == []


def test_a_cell_changes_within_a_second_of_what_happens(page):
    with serving(*CHANGES) as parent:
        parent.do(parent.backend.say, N1, observed=ON)
        page.go(link(parent))
        page.await_(cell("r1n1", "converged"))

        took_s = []
        for _ in range(TRIES):
            for condition in (Condition.STUCK, Condition.CONVERGED):
                colour = condition.value
                began = clock.now_ns()
                parent.do(parent.backend.say, WEB, condition=condition)
                page.await_(cell("r1n1", colour))
                took_s.append((clock.now_ns() - began) / 1_000_000_000)
        assert min(took_s) <= CHANGES_WITHIN_S, took_s


def test_a_chosen_node_tells_why(page):
    with serving(*CHANGES) as parent:
        parent.do(parent.backend.say, WEB, condition=Condition.STUCK, why="no <b>way</b>")
        page.go(link(parent))
        page.await_(cell("r1n1", "stuck"))
        page.evaluate("document.querySelector('[data-node=r1n1]').click()")

        assert page.await_("document.querySelector('#panel .why')?.textContent") == "no <b>way</b>"
        assert page.await_("location.hash") == "#node=r1n1"


@pytest.mark.parametrize("token", ["wrong", "hp1.t1.gone"])
def test_a_token_that_is_none_is_told_with_what_to_do(page, token):
    with serving(*CHANGES) as parent:
        page.go(link(parent, token))

        assert page.await_(words("open the address that haptera printed"))
        assert page.evaluate("document.querySelectorAll('[data-node]').length") == 0


def test_a_token_that_ended_is_told_where_the_page_would_go_on_with_it(page):
    token, row = "hp1.t1.secret", ApiToken("t1", Bearer("eve", Scope.READ), b"", 1000.0, 4600.0)
    with serving(*CHANGES, host=OWN) as parent:
        parent.backend.tokens.minted[token] = row
        page.go(link(parent, token))
        page.await_(cell("r1n1", "dark"))

    with serving(*CHANGES, host=OWN, port=parent.port):
        assert page.await_(words("open the address that haptera printed"))


def test_without_a_token_the_page_asks_nothing_and_says_where_one_is(page):
    with serving(*CHANGES) as parent:
        page.go(f"{parent.url}/")

        assert page.await_(words("no token: open the address that haptera printed"))
        assert not any("/v1/" in one["url"] for one in page.requests)


def test_it_goes_on_by_itself_once_the_parent_is_there_again(page):
    with serving(*CHANGES, host=OWN) as parent:
        port = parent.port
        page.go(link(parent))
        page.await_(words("live"))
        page.await_(cell("r1n1", "dark"))

    assert page.await_(words("no answer since"))
    with serving(*CHANGES, host=OWN, port=port) as parent:
        parent.do(parent.backend.say, N1, observed=ON)
        assert page.await_(words("live"))
        assert page.await_(cell("r1n1", "converged"))


def test_the_link_of_a_real_parent_opens_its_page_and_outlives_a_restart(page, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "site.yaml").write_text(SITE)
    with served(home, "--site", home / "site.yaml"):
        page.go(json.loads(client_of(home).read_text())["page"])
        page.await_(cell("n1", "dark"))
        assert typed("set", "node:n1", "power=on", folder=home)[0] == OK
        assert page.await_(cell("n1", "stuck"))

    assert page.await_(words("no answer since"))
    with served(home):
        assert page.await_(words("live"))
        assert page.await_(cell("n1", "stuck"))
        assert typed("unset", "node:n1", "power", folder=home)[0] == OK
        assert page.await_(cell("n1", "dark"))


def headers(answer):
    return {name.lower(): value for name, value in answer["headers"].items()}


def test_what_is_old_looks_old_and_says_since_when(page):
    stale = "document.body.classList.contains('stale')"
    parent = serving(*CHANGES)
    with parent as one:
        one.do(one.backend.say, N1, observed=ON)
        page.go(link(one))
        assert page.await_(cell("r1n1", "converged"))
        assert not page.evaluate(stale)
    assert page.await_(stale)
    assert page.await_(words("what is shown is old"))


def test_what_is_frozen_and_how_long_something_lasts_is_told(page):
    with serving(*CHANGES) as parent:
        frozen = "frozen by user:eve: board swap"
        parent.do(parent.backend.say, N1, observed=ON, frozen=frozen)
        parent.do(parent.backend.say, N2, condition=Condition.ACTING, since_ms=120_000)
        page.go(link(parent))
        mark = "document.querySelector('[data-node=r1n1]')?.textContent"
        assert page.await_(f"{mark} === 'r1n1: converged, frozen'")
        # It is the parent that measures, not the page since it was opened.
        lasts = "document.getElementById('elapsed').textContent"
        assert page.await_(f"{lasts} === 'acting for 2 min'")
