"""What parent and agent ask each other over TLS: only the right side is asked, and only it asks."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from haptera.core.state.side import PARENT
from haptera.daemon.channels.parent_channel import RENEWED_LATE_S_MAX
from haptera.daemon.logs import Logs
from haptera.model.effects import RequestRetry
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Asked
from haptera.runtime.identity.pki import (
    issue_parent,
    key_pem,
    make_request,
    new_key,
    open_authority,
    parse_request,
)
from haptera.runtime.network.one_frame import pack
from haptera.runtime.network.peer_client import Asker, Party
from haptera.runtime.network.peer_messages import (
    LOG_BYTES_MAX,
    Answer,
    EntityAsked,
    EntityTold,
    ListAsked,
    ListTold,
    LogAsked,
    LogPlace,
    LogTold,
    RenewAsked,
    Request,
    RetryAsked,
    Unable,
)
from haptera.runtime.network.request_server import OF_ONE_CALLER_MAX
from haptera.runtime.network.tls import client_context, parent_context, server_context
from haptera.wire.ipc import FRAME_BYTES_MAX
from tests.daemon.channel_rig import (
    HOST,
    NODE_HOST,
    WEB,
    WITHIN_S,
    Rig,
    Wall,
    agreement,
    certificate,
    rig,
)
from tests.lab.rig import until
from tests.runtime.earlier_certificates import issued_earlier

pytestmark = pytest.mark.net

DAY_S = 86_400.0


async def test_a_parent_asks_how_an_agent_sees_an_entity(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        one.agent_engine.handle([], 0)
        answer = await one.parent.ask("n01", EntityAsked(WEB))
        assert isinstance(answer, EntityTold)
        assert (answer.view.entity, answer.view.desired["run"].value) == (str(WEB), "running")
        nobody = await one.parent.ask("n01", EntityAsked(EntityId("service", "db", "n01")))
        assert nobody == Unable("service:db@n01 is not known there")
        # Who has its answer may hang up before all is said to be over.
        assert one.agent.counts["EntityAsked"] == 2


async def test_a_person_s_wish_for_another_try_goes_from_a_parent_to_its_agent_and_never_back(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path) as one:
        effects = one.parent_engine.handle([Asked(WEB)], 0)
        (urge,) = (effect for effect in effects if isinstance(effect, RequestRetry))
        assert urge == RequestRetry("n01", WEB)
        one.parent.exchange.send(urge)
        await until(lambda: one.heard[1] == [Asked(WEB)])

        refused = await one.agent.ask(PARENT, RetryAsked(WEB))
        assert refused == Unable("this is not sent to a neighbour")
        assert one.heard[0] == []


async def test_a_parent_reads_the_end_of_a_log(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        log = one.home / "log" / "service.log"
        log.parent.mkdir()
        log.write_bytes(b"x" * LOG_BYTES_MAX + b"\xfflast words\n")
        module = EntityId("module", "service", "n01")
        answer = await one.parent.ask("n01", LogAsked(module, 12))
        assert isinstance(answer, LogTold)
        assert answer.text == b"\xfflast words\n"[-12:]
        log.write_bytes(log.read_bytes() + b"more\n")
        after = LogPlace(answer.begin.file, answer.begin.offset + 12)
        more = await one.parent.ask("n01", LogAsked(module, after=after))
        assert more == LogTold(b"more\n", after)
        answer = await one.parent.ask("n01", LogAsked(module))
        assert isinstance(answer, LogTold)
        assert len(answer.text) == LOG_BYTES_MAX


@pytest.mark.parametrize(
    "entity",
    [
        EntityId("module", "../identity", "n01"),
        EntityId("module", "labnode", "n01"),
        EntityId("service", "../services/db", "n01"),
        EntityId("service", "db", "n01"),
        node_id("n01"),
    ],
)
def test_no_name_from_elsewhere_becomes_a_path(tmp_path: Path, entity: EntityId) -> None:
    for place in ("log/x", "identity.log", "log/labnode.log", "services/db/output.log"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("secret")
    logs = Logs(tmp_path, ("service",))

    assert isinstance(logs.answer(LogAsked(entity), (WEB, node_id("n01"))), Unable)


async def test_an_agent_and_a_parent_list_what_they_tell_each_other(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        down = await one.agent.ask(PARENT, ListAsked())
        assert isinstance(down, ListTold)
        assert down.versions == [(node_id("n01"), 1), (WEB, 2)]
        assert down.mark == one.parent_engine.neighbours.listed("n01")[0]
        up = await one.parent.ask("n01", ListAsked())
        boot = one.agent_engine.side.instance
        assert up == ListTold(boot, *one.agent_engine.neighbours.listed(PARENT))


async def test_a_parent_tells_a_node_nothing_but_what_is_its_own(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        answer = await one.agent.ask(PARENT, LogAsked(EntityId("module", "labnode", None)))
        assert answer == Unable("this is not sent to a neighbour")
        answer = await one.parent.ask("n01", RenewAsked(b""))
        assert answer == Unable("this is not sent to a neighbour")
        assert await one.agent.ask(PARENT, RenewAsked(b"junk")) == Unable(
            "this is not a certificate request"
        )
        assert await one.parent.ask("n02", ListAsked()) == Unable(
            "the agent of n02 has not enrolled yet"
        )


async def ask_agent(one: Rig, context: ssl.SSLContext, request: Request) -> Answer:
    """Ask the agent with this context, whoever it is."""
    party = Party("the agent", one.session.address, lambda _: True)
    return await Asker(lambda: context, HOST).ask(party, request)


async def test_nobody_but_the_parent_of_its_cluster_may_ask_an_agent(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        ca = one.authority.ca_pem
        node = client_context(ca, one.home / "identity.pem")
        hung_up = Unable("the agent closed the connection without an answer")
        assert await ask_agent(one, node, ListAsked()) == hung_up
        assert one.agent.counts == {"not admitted": 1}

        other = open_authority(tmp_path / "other", one.wall())
        foreign = parent_context(ca, issue_parent(other, one.wall()))
        old = issue_parent(one.authority, one.wall() - 400 * DAY_S)
        expired = parent_context(ca, old)
        for context in (client_context(ca), foreign, expired):
            answer = await ask_agent(one, context, ListAsked())
            assert isinstance(answer, Unable), answer
        assert "ListAsked" not in one.agent.counts


async def test_a_parent_asks_nobody_but_the_very_node(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        other = replace(one.session, agreement=agreement(one.authority, node=2))
        one.parent.join(replace(other, peer="n02"))
        answer = await one.parent.ask("n02", ListAsked())
        assert answer == Unable("the server that answered is not the agent of n02")
        assert "ListAsked" not in one.agent.counts


async def test_a_node_that_has_booted_since_is_not_answered(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        one.parent.join(replace(one.session, agreement=agreement(one.authority, incarnation=2)))
        answer = await one.agent.ask(PARENT, ListAsked())
        assert answer == Unable("the parent closed the connection without an answer")
        assert one.parent_counts == {"not admitted": 1}


async def test_a_caller_without_a_certificate_may_ask_a_parent_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        enrolment = one.journal.enrolment()
        assert enrolment is not None
        party = Party("the parent", enrolment.session.address, lambda _: True)
        context = client_context(one.authority.ca_pem)
        answer = await Asker(lambda: context).ask(party, ListAsked())
        assert answer == Unable("the parent closed the connection without an answer")


async def test_an_expired_certificate_is_refused_on_both_sides(tmp_path: Path) -> None:
    async with rig(tmp_path, Wall(-2 * DAY_S)) as one:
        answer = await one.parent.ask("n01", ListAsked())
        text = "the agent of n01 cannot be asked: certificate has expired"
        assert answer == Unable(text)
        one.wall.ahead_s = 0.0
        text = "your certificate has ended: it can only be renewed"
        assert await one.agent.ask(PARENT, ListAsked()) == Unable(text)
        assert one.parent_counts == {"ListAsked": 1, "certificate ended": 1}


async def test_a_certificate_that_ended_while_the_parent_was_away_is_renewed(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, Wall(-RENEWED_LATE_S_MAX)) as one:
        before = one.journal.enrolment()
        one.wall.ahead_s = 0.0
        renewing = asyncio.create_task(one.agent.renew(every_s=0.01))
        await until(lambda: one.journal.enrolment() != before)
        renewing.cancel()
        assert one.parent_counts == {"RenewAsked": 1}
        assert isinstance(await one.agent.ask(PARENT, ListAsked(), WITHIN_S), ListTold)
        assert isinstance(await one.parent.ask("n01", ListAsked(), WITHIN_S), ListTold)


def evicted(one: Rig) -> None:
    one.parent.leave(one.session)


def booted_since(one: Rig) -> None:
    one.parent.join(replace(one.session, agreement=agreement(one.authority, incarnation=2)))


def long_ago(one: Rig) -> None:
    one.wall.ahead_s += RENEWED_LATE_S_MAX


@pytest.mark.parametrize("happened", [evicted, booted_since, long_ago])
async def test_a_certificate_that_ended_is_not_renewed_for_ever_nor_for_who_was_evicted(
    tmp_path: Path, happened: Callable[[Rig], None]
) -> None:
    async with rig(tmp_path, Wall(-2 * DAY_S)) as one:
        before = one.journal.enrolment()
        one.wall.ahead_s = 0.0
        happened(one)
        answer = await one.agent.ask(PARENT, RenewAsked(make_request(one.journal.key())))
        assert answer == Unable("the parent closed the connection without an answer")
        assert one.parent_counts == {"not admitted": 1}
        assert one.journal.enrolment() == before


async def test_a_certificate_is_renewed_once_half_of_its_life_is_over(tmp_path: Path) -> None:
    async with rig(tmp_path, Wall(-13 * 3600.0)) as one:
        before = one.journal.enrolment()
        assert before is not None
        key = one.journal.key().private_numbers()
        renewing = asyncio.create_task(one.agent.renew(every_s=0.01))
        assert isinstance(await one.agent.ask(PARENT, ListAsked(), WITHIN_S), ListTold)
        assert "RenewAsked" not in one.parent_counts

        one.wall.ahead_s = 0.0
        await until(lambda: one.journal.enrolment() != before)
        renewing.cancel()
        after = one.journal.enrolment()
        assert after is not None
        assert "RenewAsked" in one.parent_counts
        assert one.journal.key().private_numbers() == key
        kept = (one.home / "identity.pem").read_bytes()
        assert kept.endswith(after.certificate)
        assert after.certificate != before.certificate
        # Both ways go on with it.
        assert await served_certificate(one) == after.certificate
        assert isinstance(await one.agent.ask(PARENT, ListAsked(), WITHIN_S), ListTold)
        assert isinstance(await one.parent.ask("n01", ListAsked(), WITHIN_S), ListTold)


async def test_a_certificate_of_an_earlier_version_is_renewed_at_once_and_says_more(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path) as one:
        request = parse_request(make_request(one.journal.key()))
        assert request is not None
        agreed = one.session.agreement
        held = issued_earlier(one.authority, request, agreed.node, agreed.incarnation, one.wall())
        one.journal.save_certificate(held)
        one.journal.keep_identity(held)
        renewing = asyncio.create_task(one.agent.renew(every_s=0.01))
        await until(lambda: one.parent_counts["RenewAsked"] > 0)
        await until(lambda: names_of(one) == {"URI": 3, "DNS": ["n01"]})
        renewing.cancel()
        # What a server of channels asks for is there now: it is not renewed again and again.
        assert one.parent_counts["RenewAsked"] == 1


def names_of(one: Rig) -> dict[str, object]:
    """How many names the node's certificate has, and where it may serve others."""
    enrolment = one.journal.enrolment()
    assert enrolment is not None
    certificate = x509.load_pem_x509_certificate(enrolment.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return {"URI": len(uris), "DNS": names.get_values_for_type(x509.DNSName)}


async def served_certificate(one: Rig) -> bytes:
    """What the agent shows to who connects, in PEM."""
    context = parent_context(one.authority.ca_pem, one.shown.identity)
    _, writer = await asyncio.open_connection(*one.session.address, ssl=context)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return ssl.DER_cert_to_PEM_cert(shown).encode()


async def test_a_parent_that_cannot_be_reached_renews_nothing_and_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig(tmp_path, Wall(-13 * 3600.0)) as one:
        enrolment = one.journal.enrolment()
        assert enrolment is not None
        session = replace(enrolment.session, address=(HOST, 1))
        one.journal.save_session(session)
        one.wall.ahead_s = 0.0
        renewing = asyncio.create_task(one.agent.renew(every_s=0.01))
        await until(lambda: len(caplog.records) >= 2)
        renewing.cancel()
        assert one.journal.enrolment() == replace(enrolment, session=session)
    text = "the certificate is not renewed yet: the parent cannot be asked: Connection refused"
    assert {record.getMessage() for record in caplog.records} == {text}


@contextlib.asynccontextmanager
async def rude(one: Rig, said: bytes) -> "contextlib.AbstractAsyncContextManager[None]":
    """In the agent's place somebody with its certificate, who says only this."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read(1)
            writer.write(said)
            await writer.drain()
            await reader.read()
        writer.transport.abort()

    context = server_context(one.home / "identity.pem", one.authority.ca_pem, ssl.CERT_REQUIRED)
    async with await asyncio.start_server(answer, NODE_HOST, 0, ssl=context) as server:
        one.parent.join(replace(one.session, address=server.sockets[0].getsockname()))
        yield


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"\x00\x00\x00\x05hello", "closed the connection without an answer"),
        (
            (FRAME_BYTES_MAX + 1).to_bytes(4, "big") + bytes(100),
            "closed the connection without an answer",
        ),
        (pack(Unable("no"))[:-1], "did not answer within 0.3 s"),
        (b"", "did not answer within 0.3 s"),
        (pack(LogTold(bytes(FRAME_BYTES_MAX - 100), LogPlace(1, 0))), None),
    ],
)
async def test_a_rude_or_slow_agent_costs_its_asker_an_answer_and_no_more(
    tmp_path: Path, said: bytes, told: str | None
) -> None:
    async with rig(tmp_path) as one:
        async with rude(one, said):
            within_s = 0.3 if told and "within" in told else WITHIN_S
            answer = await one.parent.ask("n01", ListAsked(), within_s)
        if told is None:
            assert answer == LogTold(bytes(FRAME_BYTES_MAX - 100), LogPlace(1, 0))
        else:
            assert answer == Unable(f"the agent of n01 {told}")


@pytest.mark.parametrize(
    "said",
    [
        b"\xff\xff\xff\xff" + bytes(100),
        b"\x00\x00\x00\x05hello",
        b"\x00\x00\x00\x01\x80",
        pack(LogTold(b"", LogPlace(1, 0))),
        pack(LogAsked(WEB)).replace(b"\xce\x00\x01\x00\x00", b"\xce\x00\x01\x00\x01"),
    ],
)
async def test_what_is_no_request_is_hung_up_on(tmp_path: Path, said: bytes) -> None:
    async with rig(tmp_path) as one:
        context = parent_context(one.authority.ca_pem, one.shown.identity)
        reader, writer = await asyncio.open_connection(*one.session.address, ssl=context)
        writer.write(said)
        assert await reader.read() == b""
        writer.transport.abort()
        assert one.agent.counts == {"no request": 1}


async def test_one_caller_has_so_many_connections_at_once(tmp_path: Path) -> None:
    async with rig(tmp_path) as one, contextlib.AsyncExitStack() as stack:
        context = parent_context(one.authority.ca_pem, one.shown.identity)
        for _ in range(OF_ONE_CALLER_MAX):
            _, writer = await asyncio.open_connection(*one.session.address, ssl=context)
            stack.callback(lambda it: it.transport.abort(), writer)
        answer = await one.parent.ask("n01", ListAsked())
        assert answer == Unable("the agent of n01 closed the connection without an answer")
        assert one.agent.counts == {"too many of one caller": 1}


async def test_a_certificate_of_another_node_is_no_ticket_for_this_one(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        other = agreement(one.authority, node=2)
        place = tmp_path / "other.pem"
        place.write_bytes(
            key_pem(one.journal.key()) + certificate(one.authority, one.journal, other, one.wall())
        )
        enrolment = one.journal.enrolment()
        assert enrolment is not None
        party = Party("the parent", enrolment.session.address, lambda _: True)
        context = client_context(one.authority.ca_pem, place)
        answer = await Asker(lambda: context).ask(party, ListAsked())
        assert answer == Unable("the parent closed the connection without an answer")
        assert one.parent_counts == {"not admitted": 1}
        assert new_key() != one.journal.key()
