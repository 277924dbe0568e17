"""Two nodes that a module would take for one machine are not declared."""

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import Change, Declare, Stored, StoredEntity, Undeclare
from haptera.model.effects import Reply
from haptera.model.entity import node_id
from haptera.model.events import Proposed
from haptera.modules import load
from tests.core.scenario import SIDE

N1, N2, N3 = map(node_id, ("n1", "n2", "n3"))
LAB = {"platform": "labnode", "bmc": "10.0.0.1"}


def refusal(*changes: Change) -> str | None:
    """Why these are refused where n1 is there already."""
    stored = Stored(7, 3, [StoredEntity(N1, LAB, "site", {}, 3)], [], {})
    engine = Engine(SIDE, Catalog(KINDS, [load("labnode").manifest()]), stored, 0, S)
    effects = engine.handle([Proposed(9, changes)], S)
    return next((one.refusal for one in effects if isinstance(one, Reply)), None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((Declare(N2, LAB, "user:eve"),), "node:n2: bmc '10.0.0.1' is node:n1's already"),
        (
            (Declare(N2, {**LAB, "bmc": "b"}, "site"), Declare(N3, {**LAB, "bmc": "b"}, "site")),
            "node:n3: bmc 'b' is node:n2's already",
        ),
    ],
)
def test_what_another_node_has_is_refused(changes: tuple[Change, ...], said: str) -> None:
    assert refusal(*changes) == f"{said}: it must be unique"


@pytest.mark.parametrize(
    "changes",
    [
        (Declare(N1, {**LAB, "rack": "r1"}, "site"),),
        (Declare(N2, {**LAB, "platform": "other"}, "site"),),
        (Undeclare(N1), Declare(N2, LAB, "site")),
        (Declare(N1, {**LAB, "bmc": "b"}, "site"), Declare(N2, LAB, "site")),
        (
            Declare(N2, {"platform": "labnode"}, "site"),
            Declare(N3, {"platform": "labnode"}, "site"),
        ),
    ],
)
def test_what_each_has_for_itself_is_written(changes: tuple[Change, ...]) -> None:
    assert refusal(*changes) is None
