"""What happened to entities, told from how they were to how they are."""

from haptera.core.state.limits import S
from haptera.core.views.chronicle import Chronicle
from haptera.model.answers.past import Happened, Sort
from haptera.model.changes import Desired, Stored, StoredEntity, Undeclare
from haptera.model.effects import Publish
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Proposed, Ready, Ticked, Written
from tests.core.scenario import ATTRIBUTES, NODE, looked, parent, row_of, stored, told

OFFSET = 1_000 * S


def test_each_thing_that_happens_is_told_once() -> None:
    engine = parent(stored(desired={"power": "on"}))
    chronicle = Chronicle(engine.table)
    node = str(NODE)
    begun = chronicle.begin_again(S, OFFSET)
    assert [one for one in begun if one.entity in ("", node)] == [
        Happened(1001.0, "", Sort.BEGUN),
        Happened(1001.0, node, Sort.STANDS, None, "waiting", "module bmc is starting"),
    ]
    told(engine, 2 * S, Ready("bmc"))
    told(engine, 2 * S, Answered(1, "off", 2 * S))
    seen = chronicle.follow([NODE], 2 * S, OFFSET)
    assert seen == [
        Happened(1002.0, node, Sort.SEEN, "power", "off", "bmc"),
        Happened(1002.0, node, Sort.STANDS, None, "acting", "bmc.switch_on: is about to run"),
    ]
    told(engine, 2 * S, Written(1, 4))
    told(engine, 3 * S, Ended(2))
    told(engine, 4 * S, Answered(3, "on", 4 * S))
    assert chronicle.follow([NODE], 5 * S, OFFSET) == [
        Happened(1005.0, node, Sort.SEEN, "power", "on", "bmc"),
        Happened(1004.0, node, Sort.TRIED, "bmc.switch_on", "worked", "done"),
        Happened(1005.0, node, Sort.STANDS, None, "converged", None),
    ]
    assert chronicle.follow([NODE], 6 * S, OFFSET) == []


def test_what_was_stored_is_told_of_by_the_first_turns() -> None:
    nodes = [node_id(f"n{number:03}") for number in range(100)]  # too many for one turn
    wanted = {"power": Desired("on", "site")}
    entities = [StoredEntity(one, ATTRIBUTES, "site", wanted, 3) for one in nodes]
    engine = parent(Stored(7, 3, entities, [], {}))
    chronicle = Chronicle(engine.table)
    assert chronicle.begin(S, OFFSET) == Happened(1001.0, "", Sort.BEGUN)
    happened: list[Happened] = []
    while engine.deadline() == S or not happened:
        for effect in engine.handle([Ticked()], S):
            if isinstance(effect, Publish):
                happened += chronicle.follow(effect.entities, S, OFFSET)
    told_of = {one.entity for one in happened if one.sort is Sort.STANDS and one.value == "waiting"}
    assert told_of == {str(one) for one in nodes}


def test_what_is_remembered_is_marked_and_what_is_gone_is_told_once() -> None:
    engine = looked("on")
    chronicle = Chronicle(engine.table)
    chronicle.begin_again(S, OFFSET)
    row_of(engine).belief.forget("power", 2 * S)
    (remembered,) = chronicle.follow([NODE], 2 * S, OFFSET)
    assert remembered == Happened(1002.0, str(NODE), Sort.SEEN, "power", "on?", "bmc")

    told(engine, 3 * S, Proposed(1, (Undeclare(NODE),)))
    told(engine, 3 * S, Written(1, 4))
    assert engine.table.get(NODE) is None
    gone = [Happened(1003.0, str(NODE), Sort.GONE)]
    assert chronicle.follow([NODE, EntityId("service", "web", "x")], 3 * S, OFFSET) == gone
    assert chronicle.follow([NODE], 3 * S, OFFSET) == []
