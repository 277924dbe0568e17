"""The live view: cells by rack, what colour each has, and plain lines without a terminal."""

import asyncio
import contextlib
import io

import pytest
from msgspec import structs

from haptera.cli.output.live.cells import Board, Cell
from haptera.cli.output.live.live import Screen, show
from haptera.cli.output.words import printable
from haptera.client import Access
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.walltime import duration
from haptera.rest.schemas import Event
from tests.api.fake_backend import FakeBackend
from tests.api.serving import WITHIN_S, serving
from tests.lab.rig import until

N1, N2, N10 = (node_id(f"r1n{number}") for number in (1, 2, 10))
R2N1 = node_id("r2n1")
WEB1 = EntityId("service", "web", "r1n1")


def filled():
    backend = FakeBackend()
    racks = ((N10, "1"), (N1, "1"), (N2, "1"), (R2N1, "2"))
    backend.write(*(Declare(node, {"rack": rack}, "site") for node, rack in racks))
    backend.write(Declare(WEB1, {}, "site"), SetDesired(N1, "power", "on", "site"))
    return backend


def racks_of(backend):
    board = Board({})
    board.take(asyncio.run(backend.entities([])), [], fresh=True)
    return board.racks()


def test_nodes_stand_in_their_racks_in_the_order_of_their_numbers():
    assert racks_of(filled()) == {
        "1": [("r1n1", Cell.GREEN), ("r1n2", Cell.DARK), ("r1n10", Cell.DARK)],
        "2": [("r2n1", Cell.DARK)],
    }


@pytest.mark.parametrize(
    ("condition", "cell"),
    [
        (Condition.ACTING, Cell.ACTING),
        (Condition.WAITING, Cell.WAITING),
        (Condition.STUCK, Cell.STUCK),
        (Condition.CONVERGED, Cell.GREEN),
    ],
)
def test_a_service_colours_its_nodes_cell(condition, cell):
    backend = filled()
    backend.say(WEB1, condition=condition)
    assert racks_of(backend)["1"][0] == ("r1n1", cell)


def test_a_node_that_is_off_as_desired_is_dark():
    backend = filled()
    backend.write(SetDesired(N1, "power", "off", "site"))
    assert racks_of(backend)["1"][0] == ("r1n1", Cell.DARK)


def test_what_is_gone_leaves_the_board():
    board = Board({})
    board.take(asyncio.run(filled().entities([])), [], fresh=True)
    board.take([], ["node:r2n1"], fresh=False)
    assert list(board.racks()) == ["1"]


def test_how_long_something_lasts_is_what_the_parent_says_not_since_when_it_is_shown():
    times, hours = [7.0], {N1: 5, N2: 30, N10: 2}

    def shown(*acting):
        views = [
            structs.replace(
                view,
                condition=Condition.ACTING if view.name in acting else Condition.CONVERGED,
                since_ms=hours[node_id(view.name)] * 3_600_000,
            )
            for view in asyncio.run(filled().entities([]))
            if node_id(view.name) in hours
        ]
        screen = Screen(lambda: times[-1])
        screen.take(Event("c", views, []), fresh=True)
        times.append(times[-1] + 3_600)
        return screen.lasting()

    assert (shown("r1n1"), shown("r1n1", "r1n2"), shown()) == (
        "acting for 6 h",
        "acting for 1 d",
        "at rest for 3 h",
    )
    assert Screen(lambda: 7.0).lasting() == ""


@pytest.mark.net
def test_without_a_terminal_the_counts_and_what_is_stuck_are_lines():
    with serving(Declare(N1, {}, "site"), SetDesired(N1, "power", "on", "site")) as one:
        out = io.StringIO()

        async def run():
            async with asyncio.timeout(WITHIN_S):
                showing = asyncio.ensure_future(show(Access(one.url, "read-token")))
                await until(lambda: "1 converged" in out.getvalue())
                await asyncio.to_thread(
                    one.do, one.backend.say, N1, condition=Condition.STUCK, why="a refusal"
                )
                await until(lambda: "stuck for 1.5 s: a refusal" in out.getvalue())
                showing.cancel()

        with contextlib.redirect_stdout(out):
            asyncio.run(run())
    assert "  1 stuck\n" in out.getvalue()


@pytest.mark.net
def test_a_wrong_token_ends_the_view_with_the_servers_words():
    with serving() as one, pytest.raises(HapteraError, match="no valid token"):
        asyncio.run(show(Access(one.url, "wrong")))


def test_words_from_afar_cannot_steer_the_terminal():
    assert printable("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"


def test_durations_are_told_as_a_person_would():
    assert [duration(ms) for ms in (0, 950, 59_999, 60_000, 90_000_000)] == [
        "0.0 s",
        "0.9 s",
        "59 s",
        "1 min",
        "1 d",
    ]
