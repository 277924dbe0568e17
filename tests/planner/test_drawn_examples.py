"""The worked examples, and the tables of the original, drawn: each graph compared whole."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from haptera.core.views.course import course_of
from haptera.model.answers.graph import (
    CourseView,
    DrawingView,
    EdgeView,
    GraphView,
    StateView,
    TakenView,
)
from haptera.model.chain import Chain, Do
from haptera.planner.domain.domain import compile_class
from haptera.planner.explain.drawing import Course, drawing
from haptera.planner.explain.graph import graphs_of
from haptera.planner.explain.problem_json import problem_from_json
from haptera.planner.planner import plan
from tests.core.scenario import NODE, ON, looked, parent, row_of, stored
from tests.planner.test_original_tables import KRAKEN, LAYERCAKE
from tests.planner.test_worked_examples import PROBLEM, SWITCH_OFF, SWITCH_ON

REBOOT = {"name": "reboot", "changes": {"agent": ["*", "up?"]}, "requires": {"power": "on"}}
# Each looked at while the one before it is 2.
IN_A_ROW: dict[str, Any] = {
    "variables": {one: ["unknown", "1", "2"] for one in "abc"},
    "looks": [
        {"name": "look_a", "at": "a", "outcomes": ["1", "2"]},
        {"name": "look_b", "at": "b", "outcomes": ["1", "2"], "requires": {"a": "2"}},
        {"name": "look_c", "at": "c", "outcomes": ["1", "2"], "requires": {"b": "2"}},
    ],
    "steps": [{"name": "lower", "changes": {"a": ["2", "1"]}}],
}
VALUE_BY_VALUE: dict[str, Any] = {
    "variables": {"p": ["unknown", "1", "2"], "v": ["unknown", "1", "2", "3"]},
    "looks": [
        {"name": "look_1", "at": "v", "outcomes": ["1"], "requires": {"p": "1"}},
        {"name": "look_2", "at": "v", "outcomes": ["2"], "requires": {"p": "2"}},
    ],
}


def test_an_agent_on_a_machine() -> None:
    """What may not be done on some memories says so: power is not cut where the agent was up."""
    assert written(drawn(PROBLEM)) == lines("""
# power agent
()
(power off)
(power on)
(power on agent down)
(power on agent up)
() look_power=off if power unknown|off? > (power off)
() look_power=on if power unknown|on? > (power on)
(power off) switch_on costs 2 > (power on)
(power on) switch_off if agent unknown|down? > (power off)
(power on) look_agent=down if agent unknown|down? > (power on agent down)
(power on) look_agent=up if agent unknown|up? > (power on agent up)
(power on agent down) switch_off > (power off)
(power on agent down) start > (power on agent up)
(power on agent up) stop costs 4 > (power on agent down)
""")


def test_a_chain_is_marked_from_its_start_to_its_goal() -> None:
    marked = drawn(
        PROBLEM, observed={"power": "off"}, remembered={"agent": "down"}, desired={"agent": "up"}
    )
    assert [line for line in written(marked) if "@" in line or "#" in line] == lines("""
# power agent
(power off) @0
(power on) @1
(power on agent down) @2
(power on agent up) @3 goal
(power off) switch_on costs 2 > (power on) #1
(power on) look_agent=down if agent unknown|down? > (power on agent down) #2
(power on agent down) start > (power on agent up) #3
""")
    assert marked.course is not None
    states = [(state.known, state.remembered) for state in marked.course.states]
    assert states == [
        ({"power": "off"}, {"agent": "down"}),
        ({"power": "on"}, {"agent": "down"}),
        ({"power": "on", "agent": "down"}, {}),
        ({"power": "on", "agent": "up"}, {}),
    ]


def test_a_boot_leaves_what_only_a_look_can_tell() -> None:
    booted = drawn(
        PROBLEM,
        steps=[SWITCH_ON, SWITCH_OFF, REBOOT],
        observed={"power": "on", "agent": "down"},
        desired={"agent": "up"},
    )
    assert written(booted) == lines("""
# power agent
()
(power off)
(power on) @1
(power on agent down) @0
(power on agent up) @2 goal
() look_power=off if power unknown|off? > (power off)
() look_power=on if power unknown|on? > (power on)
(power off) switch_on costs 2 > (power on)
(power on) switch_off if agent unknown|down? > (power off)
(power on) reboot > (power on) agent up?
(power on) look_agent=down if agent unknown|down? > (power on agent down)
(power on) look_agent=up if agent unknown|up? > (power on agent up) #2
(power on agent down) switch_off > (power off)
(power on agent down) reboot > (power on) agent up? #1
""")


def test_three_in_a_row_are_forgotten_together() -> None:
    assert written(drawn(IN_A_ROW)) == lines("""
# a b c
()
(a 1)
(a 2)
(a 2 b 1)
(a 2 b 2)
(a 2 b 2 c 1)
(a 2 b 2 c 2)
() look_a=1 if a unknown|1? > (a 1)
() look_a=2 if a unknown|2? > (a 2)
(a 2) lower > (a 1)
(a 2) look_b=1 if b unknown|1? > (a 2 b 1)
(a 2) look_b=2 if b unknown|2? > (a 2 b 2)
(a 2 b 1) lower > (a 1)
(a 2 b 2) lower > (a 1)
(a 2 b 2) look_c=1 if c unknown|1? > (a 2 b 2 c 1)
(a 2 b 2) look_c=2 if c unknown|2? > (a 2 b 2 c 2)
(a 2 b 2 c 1) lower > (a 1)
(a 2 b 2 c 2) lower > (a 1)
""")


def test_each_value_by_its_own_look() -> None:
    """Nothing looks at p or changes it: it is in no graph, and what rests on it says so."""
    assert written(drawn(VALUE_BY_VALUE)) == lines("""
# v
v = 1 by look_1 while p 1
v = 2 by look_2 while p 2
()
(v 1)
(v 2)
(v 3)
() look_1=1 while p 1 if v unknown|1?|3? > (v 1)
() look_2=2 while p 2 if v unknown|2?|3? > (v 2)
""")


def test_the_table_of_the_original() -> None:
    """What hangs or has failed is there, though nothing leads to it."""
    assert written(drawn(KRAKEN)) == lines("""
# phys run service
()
(phys off)
(phys on)
(phys on run init)
(phys on run sync)
(phys on run sync service init)
(phys on run sync service stop)
(phys on run sync service run)
(phys on run sync service error)
(phys on run error)
(phys hang)
() power.look=off if phys unknown|off?|hang? > (phys off)
() power.look=on if phys unknown|on?|hang? > (phys on)
(phys off) power.OFFtoON > (phys on)
(phys on) power.ONtoOFF if run unknown|init?|error? > (phys off)
(phys on) sse.look=init if run unknown|init? > (phys on run init)
(phys on) sse.look=sync if run unknown|sync? > (phys on run sync)
(phys on) sse.look=error if run unknown|error? > (phys on run error)
(phys on run init) power.ONtoOFF > (phys off)
(phys on run init) sse.INITtoSYNC > (phys on run sync)
(phys on run sync) service.look=init if service unknown|init? > (phys on run sync service init)
(phys on run sync) service.look=stop if service unknown|stop? > (phys on run sync service stop)
(phys on run sync) service.look=run if service unknown|run? > (phys on run sync service run)
(phys on run sync) service.look=error if service unknown|error? > (phys on run sync service error)
(phys on run sync service stop) service.start > (phys on run sync service run)
(phys on run sync service run) service.stop > (phys on run sync service stop)
(phys on run error) power.ONtoOFF > (phys off)
(phys hang) power.HANGtoOFF > (phys off)
""")


def test_the_tables_of_layercake_are_told_variable_by_variable() -> None:
    """All at once can be known in 91 ways."""
    told = drawn(LAYERCAKE)
    assert (told.form, told.attributes) == ("factored", {"platform": "powerapi"})
    assert written(told) == lines("""
# phys
()
(phys off)
(phys on)
(phys hang)
() power.UKtoOFF=off if phys unknown|off?|hang? > (phys off)
() power.UKtoOFF=on if phys unknown|on?|hang? > (phys on)
(phys off) power.OFFtoON > (phys on)
(phys on) power.ONtoOFF unless run sync unless busy busy > (phys off)
(phys hang) power.HANGtoOFF > (phys off)
# pxe
pxe = none|wait|init by pxe.look while phys on
()
(pxe none)
(pxe wait)
(pxe init)
() pxe.look=none while phys on if pxe unknown|none? > (pxe none)
() pxe.look=wait while phys on if pxe unknown|wait? > (pxe wait)
() pxe.look=init while phys on if pxe unknown|init? > (pxe init)
(pxe none) pxe.NONEtoWAIT while phys on > (pxe wait)
(pxe wait) pxe.WAITtoINIT while phys on and run down > init > (pxe init)
# run
run = down|init|sync|error by sse.look while phys on
()
(run down)
(run init)
(run sync)
(run error)
() sse.look=down while phys on if run unknown|down? > (run down)
() sse.look=init while phys on if run unknown|init? > (run init)
() sse.look=sync while phys on if run unknown|sync? > (run sync)
() sse.look=error while phys on if run unknown|error? > (run error)
(run down) pxe.WAITtoINIT while phys on and pxe wait > init > (run init)
(run init) sse.INITtoSYNC while phys on > (run sync)
(run sync) imageapi.SYNCtoINIT while set idle unless busy busy > (run init)
# set
set = idle|active|update|error|fatal by imageapi.UKtoIDLE while run sync while phys on
()
(set idle)
(set active)
(set update)
(set error)
(set fatal)
() imageapi.UKtoIDLE=idle while run sync while phys on if set unknown|idle? > (set idle)
() imageapi.UKtoIDLE=active while run sync while phys on if set unknown|active? > (set active)
() imageapi.UKtoIDLE=update while run sync while phys on if set unknown|update? > (set update)
() imageapi.UKtoIDLE=error while run sync while phys on if set unknown|error? > (set error)
() imageapi.UKtoIDLE=fatal while run sync while phys on if set unknown|fatal? > (set fatal)
(set idle) imageapi.IDLEtoACTIVE while run sync unless busy busy > (set active)
(set active) imageapi.ACTIVEtoIDLE while run sync unless busy busy > (set idle)
(set update) imageapi.UPDATEtoIDLE while run sync unless busy busy > (set idle)
(set update) imageapi.UPDATEtoACTIVE while run sync unless busy busy > (set active)
(set error) imageapi.ERRORtoIDLE while run sync unless busy busy > (set idle)
(set error) imageapi.ERRORtoACTIVE while run sync unless busy busy > (set active)
# busy
busy = free|busy by freebusy while run sync
()
(busy free)
(busy busy)
() freebusy=free while run sync if busy unknown|free? > (busy free)
() freebusy=busy while run sync if busy unknown|busy? > (busy busy)
""")


def test_an_entity_is_marked_where_its_engine_sees_it() -> None:
    """It was seen off a moment ago, and is to be on."""
    engine = looked("off", power="on")
    row = row_of(engine, NODE)
    domain, course = course_of(row, engine.table.node_of(row), engine.catalog)
    marked = drawing(domain, graphs_of(domain), str(row.id), course)
    assert marked.attributes == {"platform": "test"}
    assert written(marked) == lines("""
# power agent
()
(power off) @0
(power on) @1 goal
(power on agent up) goal
(power hung)
() bmc.look=off if power unknown|off?|hung? > (power off)
() bmc.look=on if power unknown|on?|hung? > (power on)
(power off) bmc.switch_on > (power on) #1
(power on) sync.hear=up > (power on agent up)
""")
    assert marked.course == CourseView(
        goal={"power": "on"},
        states=[StateView({"power": "off"}, {}), StateView({"power": "on"}, {})],
        chain=[TakenView("bmc.switch_on", None, hoped=False)],
        cost=1,
    )


def test_the_engines_own_plan_is_marked_for_as_long_as_it_holds() -> None:
    """It may be one that a worker searched for; of another start or goal it says nothing."""
    engine = looked("off", power="on")
    row = row_of(engine, NODE)
    own = row.stance.plan
    assert isinstance(own, Chain)
    for plan_, holds in (
        (replace(own, cost=7), True),
        (replace(own, states=({"power": "hung"}, *own.states[1:])), False),
        (replace(own, states=(*own.states[:-1], {"power": "off"})), False),
        (replace(own, links=(Do(replace(ON, cost=9)),)), False),
    ):
        row.stance.plan = plan_
        _, course = course_of(row, engine.table.node_of(row), engine.catalog)
        assert course.answer == (plan_ if holds else own)


def test_an_entity_of_which_nothing_is_desired_has_no_goal_and_no_chain() -> None:
    engine = parent(stored(desired={}))
    row = row_of(engine, NODE)
    domain, course = course_of(row, engine.table.node_of(row), engine.catalog)
    marked = drawing(domain, graphs_of(domain), str(row.id), course)
    assert marked.course == CourseView(goal={}, states=[StateView({}, {})])
    assert [line for line in written(marked) if "@" in line or "goal" in line] == ["() @0"]


def drawn(problem: dict[str, Any], **given: Any) -> DrawingView:
    question = problem_from_json(problem | given)
    domain = compile_class(question.problem)
    graphs = graphs_of(domain)
    if not question.desired:
        return drawing(domain, graphs, "example", named=lambda part: part.name)
    start = domain.start(question.observed, question.remembered)
    course = Course(start, question.desired, plan(domain, start, question.desired))
    return drawing(domain, graphs, "example", course, named=lambda part: part.name)


def written(told: DrawingView) -> list[str]:
    """All of it, a line for each state and edge; the marked chain in front."""
    return [line for graph in told.graphs for line in _graph(graph)]


def _graph(graph: GraphView) -> Iterator[str]:
    yield f"# {' '.join(graph.variables)}{'' if graph.exact else ', loose'}"
    for rest in graph.rests:
        outcomes = "|".join(rest.outcomes)
        yield f"{rest.variable} = {outcomes} by {rest.look}{_all(' while', rest.requires)}"
    for place, state in enumerate(graph.states):
        passed = "".join(f" @{number}" for number, one in enumerate(graph.path) if one == place)
        yield f"({_values(state)}){passed}{' goal' if place in graph.goal else ''}"
    for edge in graph.edges:
        yield _edge(graph, edge)


def _edge(graph: GraphView, edge: EdgeView) -> str:
    part = edge.part if edge.expect is None else f"{edge.part}={edge.expect}"
    line = f"({_values(graph.states[edge.source])}) {part}"
    line += "" if edge.cost == 1 else f" costs {edge.cost}"
    line += " disruptive" if edge.disruptive else ""
    line += f"{_all(' while', edge.requires)}{_all(' unless', edge.excludes)}"
    line += f"{_all(' if', edge.memory)}"
    for name, (sources, target) in edge.beside.items():
        line += f" and {name} {'|'.join(sources)} > {target}"
    line += f" > ({_values(graph.states[edge.target])})"
    line += "".join(f" {name} {value}?" for name, value in edge.leaves.items())
    return line + "".join(f" #{number}" for number in edge.links)


def _values(state: Mapping[str, str]) -> str:
    return " ".join(f"{name} {value}" for name, value in state.items())


def _all(word: str, conditions: Mapping[str, list[str]]) -> str:
    return "".join(f"{word} {name} {'|'.join(one)}" for name, one in conditions.items())


def lines(block: str) -> list[str]:
    return block.strip().splitlines()
