"""A module that changes what it declares concerns the classes of its own kinds, and no other."""

from dataclasses import replace
from typing import Any

import pytest

from haptera.core.modules.catalog import MOVES_MAX, Catalog
from haptera.core.state.allowance import TurnAllowance
from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.model.chain import Chain, NoChain
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.parts import Change, Context, Look, Manifest, Privilege, Step
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.plan_query import query_of

NODE = EntityState(node_id("n01"), KINDS["node"])
WEB = EntityState(EntityId("service", "web", "n01"), KINDS["service"])

POWER = Look("bmc", "look_power", "node", "power", ("off", "on"))
RUN = Look("keeper", "look_run", "service", "run", ("stopped", "running"))
START = Step("keeper", "start", "service", (Change("run", ("stopped",), "running"),))


def manifest(module: str, *looks: Look, steps: tuple[Step, ...] = ()) -> Manifest:
    return Manifest(module, "1", Context.PARENT, looks, steps)


def test_only_classes_of_kinds_whose_parts_change_are_compiled_anew() -> None:
    catalog = Catalog(KINDS, [manifest("bmc", POWER), manifest("keeper", RUN)])
    node, service = catalog.domain(NODE, NODE), catalog.domain(WEB, NODE)

    catalog.replace(manifest("keeper", RUN, steps=(START,)))

    assert catalog.domain(NODE, NODE) is node
    assert catalog.domain(WEB, NODE) is not service
    assert catalog.domain(WEB, NODE).steps == (START,)


def test_a_kind_with_more_parts_than_can_be_compiled_in_time_is_refused() -> None:
    steps = tuple(replace(START, name=f"start{number}") for number in range(MOVES_MAX - 2))
    catalog = Catalog(KINDS, [manifest("keeper", RUN, steps=steps)])

    text = f"has {MOVES_MAX + 1} steps and outcomes of looks; the planner takes"
    with pytest.raises(HapteraError, match=text):
        catalog.replace(manifest("keeper", RUN, steps=(*steps, START)))
    assert catalog.domain(WEB, NODE).steps == tuple(sorted(steps, key=lambda step: step.path))


def test_plans_are_kept_only_where_the_parts_are_the_same() -> None:
    catalog = Catalog(KINDS, [manifest("bmc", POWER), manifest("keeper", RUN)])
    start = catalog.domain(WEB, NODE).start({"run": "stopped"}, {})
    goal = {"run": "running"}

    def planned() -> Chain | NoChain | None:
        domain = catalog.domain(WEB, NODE)
        return catalog.plans.plan(query_of(domain, start, goal, NO_BARS), TurnAllowance())

    before = planned()

    catalog.replace(replace(manifest("keeper", RUN), version="2"))
    assert planned() is before

    catalog.replace(manifest("keeper", RUN, steps=(START,)))
    assert planned() != before


@pytest.mark.parametrize("more", [{"needs": (Privilege.ROOT,)}, {"writes": ("/etc",)}])
def test_a_process_that_needs_more_than_was_granted_does_not_take_over(
    more: dict[str, Any],
) -> None:
    known = replace(manifest("keeper", RUN), needs=(Privilege.PORTS,), writes=("/srv",))
    catalog = Catalog(KINDS, [known])
    with pytest.raises(HapteraError, match="needs more than it did before"):
        catalog.replace(replace(known, **more))

    less = replace(known, needs=(), writes=())
    catalog.replace(less)
    assert catalog.manifests["keeper"] == less
