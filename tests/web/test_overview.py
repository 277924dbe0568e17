"""The overview: groups, colours, counts that filter, search, causes; in both themes and widths."""

import json

import pytest

from haptera.model.answers.views import Condition, ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.runtime.identity.tokens import ApiToken, Bearer, Scope
from haptera.selectors.nodeset import fold
from tests.api.serving import serving
from tests.web.chromium import CHROMIUM, browsing
from tests.web.seen import NODES, changes, ends, starts, tell, web

pytestmark = [pytest.mark.slow, *CHROMIUM]

GROUPS = "[...document.querySelectorAll('#list [role=group]')].map(e => e.ariaLabel)"
COUNTS = "[...document.querySelectorAll('#counts button')].map(e => e.textContent)"
CAUSES = "[...document.querySelectorAll('#causes button')].map(e => e.textContent)"
LISTED = "[...document.querySelectorAll('#list [data-node]')].map(e => e.dataset.node)"
SEARCHED = "document.getElementById('searched').textContent"
TOP = "document.getElementById('%s').getBoundingClientRect().top"
LIT = "document.getElementById('lit').textContent"


@pytest.fixture(scope="module")
def parent():
    with serving(*changes(), Declare(web(NODES[0]), {}, "site")) as one:
        one.do(tell, one.backend)
        yield one


@pytest.fixture
def page(browser, parent):
    see(browser, parent)
    yield browser
    assert browser.wrong == []


def see(browser, parent, token="read-token", **looked_at):
    """Open the page anew, with this in its address, and wait until it shows the cluster."""
    more = "".join(f"&{name}={value}" for name, value in looked_at.items())
    leave(browser)
    browser.go(f"{parent.url}/#token={token}{more}")
    browser.await_("document.querySelector('#who')?.textContent.includes(':')")
    browser.await_("document.querySelectorAll('#list [data-node]').length > 0")


def leave(browser):
    """Go on from an empty page; what went wrong before is not this test's."""
    browser.go("about:blank")
    browser.wrong.clear()


def pick(browser, menu, value):
    browser.evaluate(
        f"(() => {{ const it = document.getElementById({menu!r}); it.value = {value!r};"
        " it.dispatchEvent(new Event('change')); })()"
    )


def search(browser, selector):
    browser.evaluate(
        f"(() => {{ const it = document.getElementById('select'); it.value = {selector!r};"
        " it.dispatchEvent(new Event('input')); })()"
    )


def equals(expression, value):
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)  # As JavaScript writes it.
    return f"JSON.stringify({expression}) === {json.dumps(text)}"


def test_nodes_are_grouped_by_rack_unless_something_else_is_asked_for(page):
    assert page.evaluate(GROUPS) == ["rack1", "rack2", "rack3", "rack4"]
    pick(page, "group", "-")
    assert page.await_(equals(GROUPS, ["all nodes"]))
    assert page.evaluate("location.hash") == "#group=-"


def test_counts_tell_of_conditions_and_filter(page):
    told = ["12 converged", "1 waiting", "3 stuck"]
    assert page.await_(equals(COUNTS, told))
    page.evaluate("document.querySelector('#counts .stuck button').click()")
    assert page.await_(equals(LISTED, NODES[3:6]))
    assert page.evaluate(LIT) == "3 of 16 nodes"
    assert page.evaluate("location.hash") == "#only=stuck"


def test_any_variable_colours_and_whose_values_differ(page):
    pick(page, "colour", "variable=power")
    assert page.await_(equals(COUNTS, ["4 off \u2192 on", "11 on", "1 on \u2192 off"]))
    pick(page, "colour", "owner")
    assert page.await_(equals(COUNTS, ["11 as desired", "4 site", "1 user:eve"]))


def test_a_selector_lights_what_it_means_and_a_wrong_one_says_what_is_wrong(page):
    search(page, "rack[1-2]n* and condition=stuck")
    assert page.await_(equals(LISTED, NODES[3:6]))
    search(page, "pwer=on")
    told = page.await_(SEARCHED)
    assert "nothing has a 'pwer'" in told
    page.wrong.clear()  # Chromium notes each answer that is a refusal


@pytest.mark.parametrize(
    "names",
    [
        ["login"],
        ["n10", "n9", "n08", "login", "rack2n1", "rack1n1", "rack1n2", "rack2n2"],
        ["n00", "n99", "n100", "n1-a", "n2-a"],
        [f"r{rack}n{number:02}" for rack in range(9, 12) for number in range(8, 12)],
    ],
)
def test_what_the_parent_folds_the_page_unfolds(page, names):
    expanded = f"import('/page/nodeset.js').then((it) => it.expand({fold(names)!r}))"
    assert sorted(page.evaluate(expanded)) == sorted(names)


def test_what_is_alike_is_one_cause_worst_first_and_leads_to_its_nodes(page):
    assert page.await_(f"{CAUSES}.length === 2")
    assert page.evaluate(CAUSES) == [
        "stuck 3 nodes: switch_on: the BMC of the node does not answer",
        "waiting rack3n1: a budget is spent",
    ]
    assert page.evaluate("document.title") == "3 stuck \u00b7 quick \u00b7 haptera"
    page.evaluate("document.querySelector('#causes button').click()")
    assert page.await_(equals(LISTED, NODES[3:6]))


def test_of_causes_alike_in_weight_the_one_of_most_nodes_comes_first(browser):
    with serving(*changes(NODES[:3])) as parent:
        for name, why in zip(NODES, ("no way", "too hot", "too hot"), strict=False):
            parent.do(parent.backend.say, node_id(name), condition=Condition.STUCK, why=why)
        see(browser, parent)
        told = ["stuck 2 nodes: too hot", f"stuck {NODES[0]}: no way"]
        assert browser.await_(equals(CAUSES, told))


def test_a_cause_that_is_gone_dims_nothing_any_more(browser):
    with serving(*changes(NODES[:2])) as parent:
        parent.do(parent.backend.say, node_id(NODES[0]), condition=Condition.STUCK, why="no way")
        see(browser, parent)
        browser.await_("document.querySelector('#causes button')")
        browser.evaluate("document.querySelector('#causes button').click()")
        assert browser.await_(equals(LISTED, NODES[:1]))
        parent.do(parent.backend.say, node_id(NODES[0]), condition=Condition.CONVERGED, why=None)
        assert browser.await_(equals(LISTED, NODES[:2]))


def test_what_is_on_no_node_has_a_cause_and_many_values_are_told_together(browser):
    names = [f"n{number}" for number in range(60)]
    module = EntityId("module", "ipmi", None)
    one_each = changes(names, lambda name: {"rack": "r1", "bmc": f"at-{name}"})
    with serving(*one_each, Declare(module, {}, "site")) as parent:
        parent.do(parent.backend.say, module, condition=Condition.STUCK, why="it dies at once")
        see(browser, parent, colour="attribute%3Dbmc")
        assert browser.await_(equals(CAUSES, ["stuck module ipmi: it dies at once"]))
        assert browser.evaluate(f"{COUNTS}.at(-1)") == "13 other values"


def test_a_search_by_state_follows_the_state(browser):
    with serving(*changes(NODES[:2])) as parent:
        see(browser, parent)
        search(browser, "condition=stuck")
        assert browser.await_(equals(LIT, "0 of 2 nodes"))
        parent.do(parent.backend.say, node_id(NODES[1]), condition=Condition.STUCK, why="no way")
        assert browser.await_(equals(LISTED, NODES[1:2]))


def test_an_address_that_means_nothing_shows_all(browser, parent):
    see(browser, parent, zoom="1e9", node="nowhere", group="nothing-like-it", colour="so", view="x")
    assert len(browser.await_(LISTED)) == len(NODES)
    told = browser.evaluate("document.getElementById('entity').textContent")
    assert told == "nowhere is not declared, or not for this token to see."


def test_the_address_holds_what_is_looked_at_and_opens_it_again(browser, parent):
    see(browser, parent, colour="owner", only="site", node=NODES[4], view="list")
    assert browser.await_(equals(LISTED, [*NODES[3:6], NODES[8]]))
    assert (
        browser.evaluate("document.querySelector('[aria-selected=true]').dataset.node") == NODES[4]
    )
    assert browser.evaluate("document.body.className") == "as-list"
    assert "token" not in browser.evaluate("location.href")
    assert not any("read-token" in one["url"] for one in browser.answers)


def test_the_arrow_keys_move_as_the_cells_lie_and_a_click_hits_by_arithmetic(page):
    page.evaluate("document.getElementById('list').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End"):
        page.ask("Input.dispatchKeyEvent", type="keyDown", key=key)
    assert page.await_(
        "document.querySelector('#panel h2')?.textContent.startsWith('node:rack4n4')"
    )
    active = "document.getElementById('list').getAttribute('aria-activedescendant')"
    assert page.await_(f"{active} === 'node-15'")

    page.ask("Input.dispatchKeyEvent", type="keyDown", key="/")
    assert page.evaluate("document.activeElement.id") == "select"
    page.evaluate("canvas.scrollIntoView()")
    left, top = page.evaluate(
        "(() => { const {left, top} = canvas.getBoundingClientRect(); return [left, top]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        where = {"x": left + 20, "y": top + 40, "button": "left", "clickCount": 1}
        page.ask("Input.dispatchMouseEvent", type=kind, **where)
    assert page.await_("document.querySelector('#panel h2').textContent.startsWith('node:rack1n1')")


def test_the_panel_shows_the_chain_with_the_present_step_and_who_can_unblock(page):
    page.evaluate(f"document.querySelector('[data-node={NODES[3]}]').click()")
    step = page.await_("document.querySelector('#panel [aria-current=step]')?.textContent")
    assert step == "switches it on redfish.switch_on on the parent disruptivenext"
    text = page.evaluate("document.querySelector('#panel article').innerText")
    for told in (
        "switch_on: the BMC of rack1n4 does not answer",
        "whoever looks after the BMC; tried again in 4.0 s",
        "connection timed out",
        "desired: on, says site",
        "by bmc",
    ):
        assert told in text

    page.evaluate("document.getElementById('history').open = true")
    page.await_("document.querySelector('#history time')")
    lines = page.evaluate("document.getElementById('history').innerText")
    assert "desired power unset \u2192 on by site" in lines


def test_what_is_on_a_node_is_told_worst_first_and_modules_last(browser):
    node = NODES[0]
    on_it = [EntityId(*one, node) for one in (("module", "ipmi"), ("service", "zap"))]
    declared = [Declare(one, {}, "site") for one in (*on_it, web(node))]
    with serving(*changes([node]), *declared) as parent:
        parent.do(parent.backend.say, on_it[1], condition=Condition.STUCK, why="no port")
        see(browser, parent, node=node)
        told = "[...document.querySelectorAll('#panel article')].map((one) => one.dataset.entity)"
        order = [
            f"node:{node}",
            f"service:zap@{node}",
            f"service:web@{node}",
            f"module:ipmi@{node}",
        ]
        assert browser.await_(equals(told, order))


def test_an_image_tells_what_is_desired_to_run_it(browser):
    image = EntityId("image", "debian-b", None)
    systems = [EntityId("system", "login", node) for node in NODES[:3]]
    declared = [Declare(one, {}, "site") for one in (image, *systems)]
    desired = [SetDesired(one, "image", "debian-b", "site") for one in systems]
    told = "document.querySelector('#panel article')?.innerText"
    with serving(*changes(NODES[:3]), *declared, *desired) as parent:
        see(browser, parent, show="image", node=image)
        assert browser.await_(f"{told}?.includes({', '.join(map(str, systems))!r})")
        parent.do(parent.backend.write, SetDesired(systems[1], "image", "debian-c", "site"))
        two = f"What stands on it\n\n{systems[0]}, {systems[2]}"
        assert browser.await_(f"{told}.includes({two!r})")


def test_a_group_tells_its_replicas(browser):
    group = EntityId("group", "db", None)
    replicas = [EntityId("replica", f"db.{rank}", node) for rank, node in enumerate(NODES[:2])]
    others = EntityId("replica", "db.x.0", NODES[2])
    declared = [Declare(one, {}, "site") for one in (group, *replicas, others)]
    told = f"What stands on it\n\n{replicas[0]}, {replicas[1]}\n"
    with serving(*changes(NODES[:3]), *declared) as parent:
        see(browser, parent, show="group", node=group)
        shown = "document.querySelector('#panel article')?.innerText"
        assert browser.await_(f"`${{{shown}}}\n`.includes({told!r})")


def test_stale_cells_look_stale_once_the_parent_is_dead(tmp_path):
    with browsing(tmp_path) as browser:
        with serving(*changes(NODES[:2])) as parent:
            see(browser, parent)
            shown = "getComputedStyle(document.getElementById('map')).opacity"
            assert browser.evaluate(shown) == "1"
        assert browser.await_("document.body.classList.contains('stale')")
        assert browser.evaluate(shown) == "0.5"


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("width", [390, 1280])
def test_both_themes_and_widths_hold_all(browser, parent, tmp_path, theme, width):
    scheme = [{"name": "prefers-color-scheme", "value": theme}]
    browser.ask("Emulation.setEmulatedMedia", features=scheme)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.ask("Emulation.setDeviceMetricsOverride", **size)
    try:
        see(browser, parent, node=NODES[3])
        browser.await_("document.querySelector('#panel article')")
        wide = browser.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "it would have to be scrolled sideways"
        above = browser.evaluate(f"{TOP % 'asking'} < {TOP % 'map'}")
        assert above == (width == 390), "on a telephone what is stuck comes first"
        ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"dark": "rgb(11, 18, 21)", "light": "rgb(243, 246, 245)"}[theme]
        browser.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        shot = browser.screenshot(tmp_path / f"{theme}-{width}.png")
        assert shot.stat().st_size > 10_000
    finally:
        browser.ask("Emulation.clearDeviceMetricsOverride")
        browser.ask("Emulation.setEmulatedMedia", features=[])


def test_ten_thousand_nodes_are_drawn_scrolled_and_changed(browser):
    names = [f"r{rack}n{number}" for rack in range(1, 251) for number in range(1, 41)]
    with serving(*changes(names)) as parent:
        leave(browser)
        browser.go(f"{parent.url}/#token=read-token")
        browser.await_("document.querySelector('#counts')?.textContent === '10000 converged'")
        browser.evaluate("document.getElementById('map').scrollTop = 1e6")
        parent.do(parent.backend.say, node_id(names[-1]), condition="stuck", why="no way")
        assert browser.await_(equals(COUNTS, ["9999 converged", "1 stuck"]))
        assert browser.wrong == []  # Reading pixels back is noted by Chromium.
        assert browser.evaluate(RED)


def test_the_cells_show_which_job_runs_where_and_the_counts_filter(browser):
    with serving(*changes()) as parent:
        (lone,) = starts(parent, "relax", NODES[0])
        starts(parent, "sweep", *NODES[4:7], count=3)
        see(browser, parent, colour="job")
        assert browser.await_(equals(COUNTS, ["1 1 relax", "3 2 sweep", "12 no job"]))
        browser.evaluate("document.querySelectorAll('#counts button')[1].click()")
        assert browser.await_(equals(LISTED, NODES[4:7]))

        starts(parent, "visit", NODES[4])
        ends(parent, lone)
        assert browser.await_(equals(COUNTS, ["2 2 sweep", "13 no job", "1 several jobs"]))
        assert browser.await_(equals(LISTED, NODES[5:7]))


def test_a_job_that_is_filtered_by_and_ends_can_be_taken_back(browser):
    with serving(*changes(NODES[:2])) as parent:
        (job,) = starts(parent, "relax", NODES[0])
        see(browser, parent, colour="job", only="1%20relax")
        assert browser.await_(equals(LISTED, NODES[:1]))
        ends(parent, job)
        assert browser.await_(equals(COUNTS, ["0 1 relax", "2 no job"]))
        browser.evaluate("document.querySelector('#counts button').click()")
        assert browser.await_(equals(LISTED, NODES[:2]))


def test_a_label_without_nodes_makes_room_for_the_next(browser):
    nodes = [f"n{number}" for number in range(50)]
    with serving(*changes(nodes)) as parent:
        jobs = [starts(parent, "early", node)[0] for node in nodes]
        see(browser, parent, colour="job")
        assert browser.await_(f"{COUNTS}.at(-1) === '3 other values'")
        for job in jobs[:10]:
            ends(parent, job)
        starts(parent, "late", nodes[0])
        assert browser.await_(f"{COUNTS}.includes('1 51 late')")


def test_a_token_that_may_not_see_the_jobs_says_so(browser):
    with serving(*changes()) as parent:
        parent.backend.tokens.minted["hp1.t1.x"] = ApiToken(
            "t1", Bearer("eve", Scope.READ, "rack1*"), b"", 1000.0, 1e12
        )
        see(browser, parent, token="hp1.t1.x", colour="job")
        told = browser.await_(SEARCHED)
        assert "the jobs are not known: the token is limited to rack1*" in told
        assert browser.evaluate(COUNTS) == ["4 unknown"]


def test_the_cells_show_the_image_that_is_to_run_and_whether_it_does(browser):
    with serving(*changes()) as parent:
        for number, node in enumerate(NODES[:3]):
            system = EntityId("system", f"role{number}", node)
            parent.do(parent.backend.write, Declare(system, {}, "site"))
            parent.do(parent.backend.write, SetDesired(system, "image", "debian-b", "site"))
            if number:
                applied = ObservedView("current", known=True, method="read", by="image", age_ms=1)
                parent.do(parent.backend.say, system, observed={"applied": applied})
        see(browser, parent)
        pick(browser, "colour", "image")
        assert browser.await_(equals(COUNTS, ["2 debian-b", "1 debian-b, not yet", "13 no image"]))
        browser.evaluate("document.querySelectorAll('#counts button')[1].click()")
        assert browser.await_(equals(LISTED, NODES[:1]))
        assert browser.evaluate("location.hash.includes('colour=image')")


# Once the colour of what is stuck is somewhere on the map.
RED = """
new Promise((found) => {
  const canvas = document.getElementById('canvas');
  const look = () => {
    const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    for (let at = 0; at < all.length; at += 4)
      if (all[at] > 180 && all[at + 1] < 110 && all[at + 3] > 200) return found(true);
    requestAnimationFrame(look);
  };
  look();
})
"""
