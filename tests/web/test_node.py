"""The panel of a node: what is told there beside its entities."""

import time

import pytest

from haptera.queue.entry import Moment
from haptera.queue.job import JobState
from haptera.runtime.identity.tokens import ApiToken, Bearer, Scope
from tests.api.serving import serving
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes, ends, starts
from tests.web.test_overview import equals, see

pytestmark = [pytest.mark.slow, *CHROMIUM]

JOBS = "[...document.querySelectorAll('#held li')].map(e => e.innerText.replaceAll('\\n', ' '))"
TOLD = f"{JOBS}.map((one) => one.replace(/\\d\\d:\\d\\d:\\d\\d/, 'TIME'))"


@pytest.fixture(scope="module")
def parent():
    with serving(*changes()) as one:
        yield one


def test_a_node_tells_of_its_jobs_and_leads_to_each(browser, parent):
    late = Moment(0, time.time())
    relax, broken, sweep = (starts(parent, name, NODES[0])[0] for name in ("relax", "bad", "sweep"))
    starts(parent, "elsewhere", NODES[1])
    see(browser, parent, node=NODES[0])
    browser.await_(f"{JOBS}.length === 3")
    ends(parent, relax, late)
    ends(parent, broken, late, JobState.FAILED, status=3)
    told = [
        f"{sweep.id} sweep locked 1 CPU, user:bob",
        f"{broken.id} bad failed ended TIME, 1 CPU, user:bob: on {NODES[0]}: status 3",
        f"{relax.id} relax complete ended TIME, 1 CPU, user:bob",
    ]
    browser.await_(equals(TOLD, told))
    browser.evaluate("document.querySelectorAll('#held button')[1].click()")
    panel = "document.querySelector('#panel article')?.innerText"
    assert "failed" in browser.await_(f"{panel}?.startsWith('job:{broken.id}') && {panel}")
    browser.await_("document.getElementById('held').hidden")
    assert browser.evaluate("location.hash") == f"#node=job%3A{broken.id}&show=jobs"
    assert browser.wrong == []


def test_of_a_node_without_jobs_none_are_told_and_of_the_next_its_own(browser, parent):
    starts(parent, "visit", NODES[5])
    see(browser, parent, node=NODES[5])
    browser.await_(f"{JOBS}.length === 1")
    browser.evaluate(f"location.hash = 'node={NODES[6]}'")
    browser.await_("document.querySelector('#panel h2').textContent.includes('" + NODES[6] + "')")
    assert browser.evaluate("document.getElementById('held').hidden")


def test_a_token_that_may_not_see_jobs_says_so_in_the_panel(browser, parent):
    bearer = Bearer("eve", Scope.READ, "rack1*")
    parent.backend.tokens.minted["hp1.t1.x"] = ApiToken("t1", bearer, b"", 1000.0, 1e12)
    see(browser, parent, token="hp1.t1.x", node=NODES[0])
    told = browser.await_("document.querySelector('#held p')?.textContent")
    assert told.startswith("not known: the token is limited to rack1*")


def test_an_old_job_is_shown_though_two_hundred_came_after_it(browser, parent):
    (first,) = starts(parent, "old", NODES[7])
    for _ in range(201):
        starts(parent, "later", NODES[8])
    see(browser, parent, show="jobs", node=f"job:{first.id}")
    browser.await_("document.querySelector('#panel article')?.innerText.includes('old')")
