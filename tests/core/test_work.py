"""A node's `work`: the queue's word counts, unless a module serves it."""

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.kinds.node import AS_DESIRED
from haptera.model.answers.views import Condition
from haptera.model.changes import UnsetDesired
from haptera.model.declared.desired_check import check_desired
from haptera.model.effects import Call
from haptera.model.errors import UnknownNameError
from haptera.model.events import Answered, Noticed, Proposed, Ready, Written
from haptera.model.parts import Change, Look, Manifest, Step
from tests.core.scenario import NODE, PARENT, SIDE, WHERE, row_of, stored, told
from tests.core.scenario import parent as without_module

CLOSED = ("draining", "drained", "held")
LOOK = Look("batch", "look", "node", "work", ("open", *CLOSED, "failed"), WHERE, context=PARENT)


def step(name: str, sources: tuple[str, ...], to: str) -> Step:
    return Step("batch", name, "node", (Change("work", sources, to),), WHERE, context=PARENT)


STEPS = step("drain", ("open", "draining", "held"), "drained"), step("resume", CLOSED, "open")
BATCH = Manifest("batch", "1", PARENT, (LOOK,), STEPS)


def of_a_batch_system(value: str, note: str | None = None, **desired: str) -> Engine:
    """A parent whose module of a batch system has read this of the node."""
    engine = Engine(SIDE, Catalog(KINDS, [BATCH]), stored(desired=desired), 0, S)
    told(engine, S, Ready("batch"))
    told(engine, S, Answered(1, value, S, note))
    return engine


def called(engine: Engine) -> list[str]:
    """The steps that are called once what was decided is written."""
    effects = [*told(engine, 2 * S, Written(1, 4)), *told(engine, 2 * S, Written(2, 5))]
    return [one.part for one in effects if isinstance(one, Call)]


def known(engine: Engine) -> tuple[str, str] | None:
    fact = row_of(engine).belief.known.get("work")
    return None if fact is None else (fact.value, fact.by)


def test_the_queue_s_word_is_known_until_it_knows_the_node_no_more() -> None:
    engine = without_module(stored(desired={"work": "draining"}))
    told(engine, S, Noticed({"n01": "draining", "gone": "open"}))
    assert known(engine) == ("draining", "queue")
    # The queue heeds it: no part is missed that would bring it about.
    assert row_of(engine).stance.condition is Condition.IDLE

    told(engine, S, Noticed({"n01": None}))
    assert known(engine) is None
    assert row_of(engine).belief.remembered["work"].value == "draining"


def test_where_a_module_serves_it_the_queue_has_no_say() -> None:
    engine = of_a_batch_system("open")
    told(engine, S, Noticed({"n01": "drained"}))
    assert known(engine) == ("open", "batch")


@pytest.mark.parametrize("wish", ["draining", "drained"])
def test_who_desires_draining_has_it_once_it_reads_drained(wish: str) -> None:
    assert called(of_a_batch_system("open", work=wish)) == ["drain"]
    engine = of_a_batch_system("drained", AS_DESIRED, work=wish)
    assert row_of(engine).stance.condition is Condition.CONVERGED


def test_what_was_closed_as_desired_is_opened_once_nothing_is_desired_any_more() -> None:
    engine = of_a_batch_system("drained", AS_DESIRED, work="draining")
    told(engine, S, Proposed(9, (UnsetDesired(NODE, "work"),)))
    assert called(engine) == ["resume"]


def test_what_somebody_else_closed_is_left_as_it_is() -> None:
    assert called(of_a_batch_system("drained", "bad disk")) == []


def test_who_writes_what_it_was_called_once_is_told_what_to_write() -> None:
    with pytest.raises(UnknownNameError) as refused:
        check_desired(KINDS["node"], "slurm.use", "drained")
    assert refused.value.do == KINDS["node"].former["slurm.use"]
