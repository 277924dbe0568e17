"""When an agent moves to the next parent on its list."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.side import PARENT, Side
from haptera.daemon.tree.moving import UNHEARD_MAX, Mover
from haptera.kinds import KINDS
from haptera.model.changes import Stored
from haptera.model.events import Enrolled
from haptera.model.parts import Context
from haptera.runtime.enrolment.enrol import Enrolment
from haptera.runtime.store.sessions import SavedSession
from haptera.wire.seal import Agreement

PARENTS = ("127.0.0.11", "127.0.0.12", "127.0.0.13")
H_NS = 1_000_000
AGREEMENT = Agreement(bytes(range(32)), UUID(int=1), UUID(int=2), 3, 1, 0)
SESSION = SavedSession(PARENT, AGREEMENT, (PARENTS[0], 4271))
ENROLMENT = Enrolment("n1", SESSION, b"", b"", 1, (), parents=PARENTS)


class EnoughError(Exception):
    """Nothing more is to be seen."""


def agent() -> Engine:
    """One whose parent is there, as far as it was heard."""
    side = Side(Context.SELF, node="n1", instance=1, kernel_boot="-", hello_ns=H_NS)
    engine = Engine(side, Catalog(KINDS, []), Stored(1, 0, [], [], {}), 0, now=1)
    engine.handle([Enrolled(PARENT, 1)], 1)
    return engine


def moves_while(heard: Sequence[int]) -> list[str]:
    """Where an agent moves while its parents show to have heard these datagrams, one each H."""
    moves: list[str] = []
    shown = iter(heard)

    def confirmed() -> int:
        if (number := next(shown, None)) is None:
            raise EnoughError
        return number

    async def nobody(_: str) -> bool:
        return False

    with pytest.raises(EnoughError):
        asyncio.run(Mover(ENROLMENT, agent(), moves.append, nobody, confirmed).run())
    return moves


def test_who_is_heard_now_and_then_stays() -> None:
    assert moves_while([n for n in range(1, 9) for _ in range(UNHEARD_MAX)]) == []


def test_who_hears_its_parent_and_is_not_heard_moves_on_until_it_is() -> None:
    first, second = [7] * (UNHEARD_MAX + 1), [0] * (UNHEARD_MAX + 1)
    heard = range(1, 9)

    assert moves_while([*first, *second, *heard]) == [*PARENTS[1:]]
