"""What tells of all entities at once does it over many turns of the loop: others have theirs."""

import asyncio
import contextlib

import pytest

from haptera.core.state.allowance import READING_EACH, TURN_WORK_MAX
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.token_scope import Scope
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.tokens import Bearer
from haptera.runtime.over_turns import over_turns
from tests.api.asking import app_of, asked
from tests.api.fake_backend import FakeBackend
from tests.api.real_backend import AUTHOR, real_backend

NODES = 2_000
FREEZE = EntityId("freeze", "f", None)
ALL = (
    *(Declare(node_id(f"n{number}"), {}, "site") for number in range(NODES)),
    Declare(FREEZE, {}, "user:eve"),
    SetDesired(FREEZE, "of", "n*", "user:eve"),
    SetDesired(FREEZE, "reason", "swap", "user:eve"),
)
ANSWERED = 200


@contextlib.asynccontextmanager
async def counted():
    """How many turns the loop takes meanwhile."""
    turns = [0]

    async def count():
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    yield turns
    counting.cancel()


async def turns_of(backend, token, method, path, body=b""):
    app = app_of(backend)
    async with counted() as turns:
        answer = await asked(app, method, path, token, body, {"host": "127.0.0.1:4270"})
    assert answer.status == ANSWERED, answer.body
    return turns[0]


def in_turns(reads):
    """How many turns it takes at least to read each entity so often."""
    return reads * NODES * READING_EACH // TURN_WORK_MAX


def test_a_question_about_all_reads_few_entities_in_a_turn(tmp_path):
    """`asks` has how often each entity is read for its answer."""
    asks = {
        "/v1/status": 2,
        "/v1/status?select=condition!=converged": 3,
        "/v1/summary": 1,
        "/metrics": 1,
        "/v1/entities": 4,
        "/v1/freezes": 4,
        "/v1/parents": 3,
    }

    async def ask():
        async with real_backend(tmp_path, *ALL) as backend:
            token = (await backend.tokens.mint(Bearer("ada", Scope.ADMIN), 60.0)).text
            turns = {path: await turns_of(backend, token, "GET", path) for path in asks}
            async with counted() as stored:
                await backend.desires.stored()
            return turns | {"stored": stored[0]}

    took = asyncio.run(ask())
    assert {
        path for path, reads in (asks | {"stored": 1}).items() if took[path] < in_turns(reads)
    } == set()


@pytest.mark.parametrize(
    ("method", "path", "body", "reads"),
    [
        ("POST", "/v1/freezes", b'{"selector": "n*", "reason": "x"}', 6),
        ("DELETE", "/v1/freezes?selector=n1", b"", 11),
        ("DELETE", "/v1/freezes?selector=*", b"", 6),
    ],
)
def test_what_is_frozen_and_thawed_is_read_over_many_turns_too(method, path, body, reads):
    backend = FakeBackend()
    backend.write(*ALL)
    took = asyncio.run(turns_of(backend, "write-token", method, path, body))
    assert took >= in_turns(reads)


def test_how_it_was_is_told_alike_whatever_is_written_while_it_is_read(tmp_path):
    async def write(backend):
        for number in range(NODES):
            change = SetDesired(node_id(f"n{number}"), "power", "on", "site")
            await backend.desires.propose((change,), None, AUTHOR)

    async def ask():
        async with real_backend(tmp_path, *ALL) as backend:
            at_s, before = wall_s(), backend.desires.revision()
            writing = asyncio.create_task(write(backend))
            told = [
                await backend.records.at(lambda one: one.kind == "node", at_s) for _ in range(10)
            ]
            assert backend.desires.revision() > before
            writing.cancel()
            return {one.entity for some in told for one in some if one.desired}

    assert asyncio.run(ask()) == set()


def test_a_turn_is_as_long_as_the_core_s():
    def pieces():
        for _ in range(10):
            yield TURN_WORK_MAX // 4
        return "all"

    async def run():
        async with counted() as turns:
            assert await over_turns(pieces()) == "all"
            return turns[0]

    assert asyncio.run(run()) == 2


async def test_a_freeze_is_written_while_others_write_all_the_time():
    backend = FakeBackend()
    backend.write(*ALL)

    async def write():
        while True:
            backend.write(SetDesired(node_id("n1"), "power", "on", "site"))
            for _ in range(in_turns(1)):
                await asyncio.sleep(0)

    writing = asyncio.create_task(write())
    body = b'{"selector": "n*", "reason": "storm"}'
    await turns_of(backend, "write-token", "POST", "/v1/freezes", body)
    writing.cancel()
    assert [
        one.desired["reason"].value for one in backend.store.values() if one.owner == "user:bob"
    ] == ["storm"]
