import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bgp.attributes import LOCAL_PREF, NEXT_HOP, ORIGIN, TRANSITIVE, Attribute, as_path
from bgp.messages import (
    END_OF_TABLE,
    Keepalive,
    Message,
    Notification,
    Open,
    Prefix,
    RouteRefresh,
    Update,
    encode,
)
from bgp.session import Session, SessionEndedError, Speaker, Stream, established

from tests.lab.rig import until
from tests.router.bird import AS_NUMBER, PORT, Bird, needs_bird, running_bird

US = Speaker(AS_NUMBER, b"\x0a\x00\x00\x63", AS_NUMBER)
ROUTE = (
    Attribute(ORIGIN, TRANSITIVE, b"\x00"),
    as_path([65_010]),
    Attribute(NEXT_HOP, TRANSITIVE, b"\xc0\x00\x02\x07"),
    Attribute(LOCAL_PREF, TRANSITIVE, b"\x00\x00\x00\x64"),
)
ONE, TWO, THREE = (Prefix.of(f"10.{i}.0.0/16") for i in (1, 2, 3))


@contextlib.asynccontextmanager
async def session_with(bird: Bird, us: Speaker = US) -> AsyncIterator[Session]:
    reader, writer = await asyncio.open_connection(bird.address, PORT, local_addr=(bird.ours, 0))
    async with established(us, reader, writer) as session:
        yield session


@pytest.mark.net
@pytest.mark.slow
@needs_bird
async def test_a_real_router_tells_its_table_and_keeps_ours_while_we_are_away(
    tmp_path: Path,
) -> None:
    with running_bird(tmp_path, (str(ONE), str(TWO))) as bird:
        async with session_with(bird) as session:
            seen: set[Prefix] = set()
            async for message in session.received():
                if message == END_OF_TABLE:
                    break
                assert isinstance(message, Update)
                seen |= set(message.announced)
            assert seen == {ONE, TWO}
            await session.send(Update((), ROUTE, (THREE, Prefix.of("10.4.0.0/16"))))
            await session.send(END_OF_TABLE)
            await until(lambda: bird.networks() == {"10.3.0.0/16", "10.4.0.0/16"})

        # The connection is gone without a reason: this side may be back soon.
        await until(
            lambda: "graceful restart active" in bird.ask("show", "protocols", "all", "shim")
        )
        assert bird.networks() == {"10.3.0.0/16", "10.4.0.0/16"}

        async with session_with(bird) as session:
            await session.send(Update((), ROUTE, (THREE,)))
            await session.send(END_OF_TABLE)
            await until(lambda: bird.networks() == {"10.3.0.0/16"})
            await session.end(Notification(6, 2))
            await until(lambda: bird.networks() == set())


@pytest.mark.net
@pytest.mark.slow
@needs_bird
async def test_a_real_router_refuses_who_is_not_of_its_system(tmp_path: Path) -> None:
    stranger = Speaker(65_009, US.router_id, AS_NUMBER)
    with running_bird(tmp_path) as bird, pytest.raises(SessionEndedError, match="it refused: 2/2"):
        async with session_with(bird, stranger):
            pass


@contextlib.asynccontextmanager
async def peer(*said: Message | bytes) -> AsyncIterator[tuple[Session, list[Message]]]:
    """A session with a side that says this, and then what it heard, once the session has ended."""
    heard: list[Message] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for one in said:
            writer.write(one if isinstance(one, bytes) else encode(one))
        stream = Stream(reader, writer)
        with contextlib.suppress(SessionEndedError):
            while True:
                heard.append(await stream.receive(None))
        writer.close()
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        try:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            async with established(US, reader, writer) as session:
                yield session, heard
        finally:
            await ended.wait()


HELLO = US.open()


async def hears(*said: Message | bytes) -> tuple[str, list[Message]]:
    """Why a session ends whose other side says this, and what that side hears beyond the usual."""
    async with peer(*said) as (session, heard):
        with pytest.raises(SessionEndedError) as ended:
            await anext(session.received())
        await until(lambda: any(isinstance(one, Notification) for one in heard))
        return str(ended.value), [one for one in heard if not isinstance(one, Open | Keepalive)]


WRONG = {
    "no message": (b"x" * 19, Notification(1, 1)),
    "a second OPEN": (HELLO, Notification(5, 0)),
    "an unknown type": (b"\xff" * 16 + b"\x00\x13\x09", Notification(1, 3, b"\x09")),
}


@pytest.mark.net
@pytest.mark.parametrize("what", WRONG)
async def test_a_side_that_says_what_is_wrong_is_told_why_the_session_ends(what: str) -> None:
    said, told = WRONG[what]
    reason, heard = await hears(HELLO, Keepalive(), said)
    assert heard == [told]
    assert reason


@pytest.mark.net
@pytest.mark.slow
async def test_a_side_that_falls_silent_is_told_so() -> None:
    hasty = Open(AS_NUMBER, 3, b"\x0a\x00\x00\x01", HELLO.capabilities)
    reason, heard = await hears(hasty, Keepalive())
    assert (reason, heard) == ("it was told: it was silent for too long", [Notification(4, 0)])


@pytest.mark.net
async def test_the_other_side_s_requests_and_reasons_are_handed_on() -> None:
    async with peer(HELLO, Keepalive(), RouteRefresh(), Notification(6, 4)) as (session, _):
        messages = session.received()
        assert await anext(messages) == RouteRefresh()
        with pytest.raises(SessionEndedError, match="6/4"):
            await anext(messages)


SHORT = Open(AS_NUMBER, 90, b"\x0a\x00\x00\x01", HELLO.capabilities[:3])
OTHER = Speaker(65_009, b"\x0a\x00\x00\x01", AS_NUMBER).open()
STRANGERS = {
    "of another AS": ((OTHER,), "it is of AS 65009, not 65001"),
    "with short AS numbers": ((SHORT,), "it has 2-octet AS numbers"),
    "that opens with something else": ((Keepalive(),), "no Open when one was due"),
    "that does not confirm": ((HELLO, RouteRefresh()), "no Keepalive when one was due"),
    "that refuses": ((Notification(6, 5),), "it refused: 6/5"),
}


@pytest.mark.net
@pytest.mark.parametrize("who", STRANGERS)
async def test_there_is_no_session_with_a_side(who: str) -> None:
    said, why = STRANGERS[who]
    with pytest.raises(SessionEndedError, match=why):
        async with peer(*said):
            pass
