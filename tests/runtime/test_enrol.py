"""Only who has the token, in time, with one key, becomes the node; over real TLS on loopback."""

import asyncio
import contextlib
import logging
import queue
import re
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import pytest
from cryptography import x509

from haptera.core.state.side import PARENT
from haptera.model.changes import Declare, OpenIntent
from haptera.model.effects import Write
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Unwritten, Written
from haptera.model.intent import Intent
from haptera.model.policy import Policy
from haptera.runtime import clock
from haptera.runtime.clock import wall_s
from haptera.runtime.enrolment.claims import SAID_BYTES_MAX
from haptera.runtime.enrolment.enrol import Enrolment, Invitation, enrol
from haptera.runtime.enrolment.enrol_server import EnrolServer, Offer
from haptera.runtime.identity.cluster_uris import any_node_uri, boot_uri, node_uri
from haptera.runtime.identity.pki import (
    PARENT_DAYS,
    Authority,
    Key,
    issue_node,
    issue_parent,
    key_pem,
    make_request,
    new_key,
    open_authority,
    parse_request,
)
from haptera.runtime.identity.tokens import TOKEN_TTL_S
from haptera.runtime.network import tls
from haptera.runtime.network.handshakes import OF_PLACE
from haptera.runtime.network.tls import client_context
from haptera.runtime.network.tls_server import CONNECTIONS_MAX, listen
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.store import Store
from tests.lab.rig import until

pytestmark = pytest.mark.net

HOST = "127.0.0.1"
CHILD_HOST = "127.0.0.2"
OFFER = Offer(
    hello_port=4271, hello_ms=1000, modules=("service",), host=lambda node: f"{node}.example"
)
WITHIN_S = 60


@dataclass
class Parent:
    """A parent that serves enrolment; its wall clock can be moved."""

    directory: Path
    authority: Authority
    store: Store
    server: EnrolServer
    address: tuple[str, int]
    heard: "Heard"
    ahead_s: float = 0.0

    def invite(self) -> Invitation:
        token = self.store.token_for("i1")
        assert token is not None
        return Invitation(self.address, token, self.authority.ca_pem)


@dataclass
class Heard:
    """What a parent's other parts are told."""

    sessions: list[SavedSession] = field(default_factory=list)
    boots: list[tuple[str, int]] = field(default_factory=list)

    def enrolled(self, saved: SavedSession) -> None:
        self.sessions.append(saved)

    async def doubted(self, node: str, incarnation: int) -> None:
        self.boots.append((node, incarnation))


@contextlib.asynccontextmanager
async def parent(
    directory: Path, within_s: float = WITHIN_S, ahead_s: float = 0.0, open_s: float = WITHIN_S
) -> AsyncIterator[Parent]:
    """One that knows node n01 and just boots it; its clock may be ahead of the node's."""
    answers: queue.SimpleQueue[Written | Unwritten] = queue.SimpleQueue()
    ahead: list[Parent] = []

    def wall() -> float:
        return wall_s() + ahead_s + sum(one.ahead_s for one in ahead)

    authority = open_authority(directory, wall())

    with contextlib.closing(
        Store.open(directory / "state.db", deliver=answers.put, wall_s=wall)
    ) as store:
        if not store.load().entities:
            boot = Intent("i1", node_id("n01"), "labnode", "switch_on", 0, "boot", enrols=True)
            store.submit(Write(1, (Declare(node_id("n01"), {}, "site"), OpenIntent(boot))))
            assert answers.get(timeout=WITHIN_S) == Written(1, 2)
        heard = Heard()
        server = EnrolServer(authority, store, OFFER, heard, nobody, wall_s=wall, within_s=within_s)
        with contextlib.closing(listen(HOST, 0)) as listener:
            one = Parent(directory, authority, store, server, listener.getsockname(), heard)
            ahead.append(one)
            async with asyncio.timeout(open_s):
                task = asyncio.create_task(server.serve(listener))
                yield one
                task.cancel()
                await asyncio.wait([task])


# So soon is a claim made again here.
SOON = Policy(1 << 31, backoff_ms=2, backoff_ms_max=8, cool_down_ms=8)


async def nobody(_reader: object, _writer: object, host: str) -> None:
    raise AssertionError(f"{host} shows a certificate")


async def call(
    invitation: Invitation, key: Key | None = None, give_up_s: float = WITHIN_S
) -> Enrolment:
    return await enrol(
        invitation,
        key or new_key(),
        hello_port=5555,
        again=SOON,
        give_up_s=give_up_s,
        local_host=CHILD_HOST,
    )


async def test_tries_to_enrol_are_ever_further_apart_and_never_in_step(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with parent(tmp_path / "p") as one:
        invitation = replace(one.invite(), address=(HOST, 1))
        with pytest.raises(HapteraError, match="not enrolled within"):
            await call(invitation, give_up_s=2)
    told = [re.search(r"again in ([0-9.e-]+) s$", line) for line in caplog.messages]
    waits = [float(one[1]) for one in told if one is not None]
    assert len(waits) > 9
    ceilings = [0.002, 0.004, *[0.008] * len(waits)]
    assert all(wait <= most for wait, most in zip(waits, ceilings, strict=False))
    # Also of those that may be equally long, each by chance.
    assert len({*waits[2:]}) > 2
    assert max(waits[3:]) > ceilings[1]


async def test_a_booted_node_gets_a_session_that_its_parent_has_too(tmp_path: Path) -> None:
    async with parent(tmp_path / "p") as one:
        enrolment = await call(one.invite())
        (session,) = one.heard.sessions
        agreement = session.agreement
        assert session == SavedSession("n01", agreement, (CHILD_HOST, 5555))
        assert (agreement.incarnation, agreement.cluster) == (1, one.authority.cluster)
        assert one.store.sessions() == [session]
        assert enrolment == Enrolment(
            "n01",
            SavedSession(PARENT, agreement, (HOST, OFFER.hello_port)),
            enrolment.certificate,
            one.authority.ca_pem,
            OFFER.hello_ms,
            OFFER.modules,
        )
        certificate = x509.load_pem_x509_certificate(enrolment.certificate)
        certificate.verify_directly_issued_by(one.authority.certificate)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        assert names.value.get_values_for_type(x509.UniformResourceIdentifier) == [
            node_uri(agreement.cluster, agreement.node),
            boot_uri(agreement.cluster, agreement.node, 1),
            any_node_uri(agreement.cluster),
        ]
        assert names.value.get_values_for_type(x509.DNSName) == ["n01.example"]
        assert one.server.counts == {"enrolled": 1}


async def test_a_wrong_token_is_refused_without_a_reason_and_gives_no_session(
    tmp_path: Path,
) -> None:
    async with parent(tmp_path / "p") as one:
        wrong = replace(one.invite(), token="hp1.0123456789abcdef.wrong")
        with pytest.raises(HapteraError, match="the parent refused the token"):
            await call(wrong)
        assert one.store.sessions() == one.heard.sessions == []
        assert one.server.counts == {"unknown": 1}


async def test_a_token_is_not_good_for_ever(tmp_path: Path) -> None:
    async with parent(tmp_path / "p") as one:
        invitation = one.invite()
        one.ahead_s = TOKEN_TTL_S
        with pytest.raises(HapteraError, match="the parent refused the token"):
            await call(invitation)
        assert one.server.counts == {"expired": 1}


def test_another_key_with_the_same_token_is_refused_and_both_are_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with parent(tmp_path / "p") as one:
            invitation = one.invite()
            enrolment = await call(invitation)
            with pytest.raises(HapteraError, match="the parent refused the token"):
                await call(invitation)
            assert (len(one.heard.sessions), one.heard.boots) == (1, [("n01", 1)])
            assert one.store.sessions() == one.heard.sessions
            secrets = [invitation.token.split(".")[2], enrolment.session.agreement.secret.hex()]
            for secret in secrets:
                assert secret not in caplog.text
                assert secret not in repr((invitation, enrolment, one.heard.sessions))

    with caplog.at_level(logging.INFO):
        asyncio.run(story())
    told = [record.getMessage() for record in caplog.records if record.name.startswith("haptera")]
    assert [line.split(",")[0] for line in told] == [
        "node n01 enrolled: incarnation 1",
        "node n01 refused: double claim",
    ]
    tokens = {line.split(", token ")[1].split(",")[0] for line in told}
    keys = {line.split(", key ")[1].split(",")[0] for line in told}
    assert (len(tokens), len(keys)) == (1, 2)


async def test_a_lost_answer_is_given_again_to_the_same_key_also_after_a_restart(
    tmp_path: Path,
) -> None:
    key = new_key()
    async with parent(tmp_path / "p") as one:
        invitation = one.invite()
        first = await call(invitation, key)
    async with parent(tmp_path / "p") as one:
        again = replace(invitation, address=one.address)
        second = await call(again, key)
        assert second.session == first.session
        assert one.heard.sessions == []  # it was loaded at the start
        heard = replace(one.store.sessions()[0], peer_boot=1)
        one.store.save_session(heard)
        with pytest.raises(HapteraError, match="the parent refused the token"):
            await call(again, key)
        assert one.server.counts == {"again": 1, "spent": 1}


async def test_a_parent_of_another_cluster_is_not_shown_the_token(tmp_path: Path) -> None:
    other = open_authority(tmp_path / "other", wall_s())
    async with parent(tmp_path / "p") as one:
        invitation = replace(one.invite(), ca_pem=other.ca_pem)
        with pytest.raises(HapteraError, match=r"not enrolled within .* verify failed"):
            await call(invitation, give_up_s=0.0)
        assert one.store.sessions() == one.heard.sessions == []


async def test_a_node_of_the_cluster_cannot_play_the_parent(tmp_path: Path) -> None:
    async with parent(tmp_path / "p") as one:
        key = new_key()
        request = parse_request(make_request(key))
        assert request is not None
        node = issue_node(one.authority, request, UUID(int=1), 1, "127.0.0.1", wall_s())
        identity = tmp_path / "node.pem"
        identity.write_bytes(key_pem(key) + node)
        assert await told_to_impostor(one, identity) == "the server that answered is not the parent"


async def test_a_server_that_the_authority_did_not_name_parent_is_not_shown_the_token(
    tmp_path: Path,
) -> None:
    async with parent(tmp_path / "p") as one:
        other = replace(one.authority, cluster=UUID(int=9), directory=tmp_path)
        identity = issue_parent(other, wall_s())
        assert await told_to_impostor(one, identity) == "the server that answered is not the parent"


async def told_to_impostor(one: Parent, identity: Path) -> str:
    """Why a node does not enrol with a server of this identity, which must not hear a byte."""
    heard: list[bytes] = []

    async def overhear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            heard.append(await reader.read())
        writer.transport.abort()

    context = tls.server_context(identity, one.authority.ca_pem, ssl.CERT_NONE)
    async with await asyncio.start_server(overhear, HOST, 0, ssl=context) as fake:
        address = fake.sockets[0].getsockname()
        with pytest.raises(HapteraError) as told:
            await call(replace(one.invite(), address=address), give_up_s=0.0)
    assert b"".join(heard) == b""
    reasons = ("certificate verify failed", "the server that answered is not the parent")
    return next((reason for reason in reasons if reason in told.value.what), told.value.what)


async def test_a_node_without_a_clock_enrols_though_every_certificate_is_of_the_future(
    tmp_path: Path,
) -> None:
    async with parent(tmp_path / "p", ahead_s=10 * 365 * 86_400.0) as one:
        assert (await call(one.invite())).node == "n01"


async def test_bytes_that_are_no_claim_change_nothing(tmp_path: Path) -> None:
    async with parent(tmp_path / "p") as one:
        await send_plain(one.address, b"GET / HTTP/1.1\r\n\r\n")
        for said in (
            b"\xff\xff\xff\xff" + bytes(100),
            b"\x00\x00\x00\x05hello",
            b"\x00\x00\x00\x01\x80",
            b"\x00\x00\x00\x0e\x81\xa4type\xa7granted",
            bytes(2 * SAID_BYTES_MAX),
            (SAID_BYTES_MAX + 1).to_bytes(4, "big") + bytes(SAID_BYTES_MAX),
        ):
            assert await send_over_tls(one, said) == b""
        assert one.heard.sessions == []
        assert one.server.counts["no claim"] + one.server.counts["hung up"] == 6
        assert one.server.counts["no handshake"] == 1
        await call(one.invite())


async def test_who_says_nothing_is_hung_up_on_before_and_after_the_handshake(
    tmp_path: Path,
) -> None:
    # A busy machine takes no such time for a handshake.
    async with parent(tmp_path / "p", within_s=2.0) as one:
        await send_plain(one.address, b"")
        assert one.server.counts == {"no handshake": 1}
        assert await send_over_tls(one, b"\x00\x00") == b""
        assert one.server.counts == {"no handshake": 1, "hung up": 1}
        await call(one.invite())


def _end(writer: asyncio.StreamWriter) -> None:
    """Hold the writer, which would close the connection when it is forgotten, until the end."""
    writer.transport.abort()


async def test_nodes_enrol_while_others_begin_handshakes_and_do_not_end_them(
    tmp_path: Path,
) -> None:
    async with parent(tmp_path / "p") as one, contextlib.AsyncExitStack() as stack:
        for host in ("127.0.0.3", "127.0.0.4", CHILD_HOST):
            for _ in range(CONNECTIONS_MAX):
                _, writer = await asyncio.open_connection(*one.address, local_addr=(host, 0))
                stack.callback(_end, writer)
                writer.write(b"\x16\x03\x01")
        assert (await call(one.invite(), give_up_s=WITHIN_S)).node == "n01"
        counts = one.server.counts
        assert counts["gave way"] + counts["too many handshakes"] >= CONNECTIONS_MAX


async def test_who_gives_way_in_the_middle_of_its_handshake_is_hung_up_on(tmp_path: Path) -> None:
    # Nothing else ends a handshake meanwhile.
    async with (
        parent(tmp_path / "p", within_s=10 * WITHIN_S, open_s=4 * WITHIN_S) as one,
        contextlib.AsyncExitStack() as stack,
    ):
        begun = []
        for number in range(CONNECTIONS_MAX + 1):
            host = f"127.0.0.{3 + number // OF_PLACE[0]}"
            reader, writer = await asyncio.open_connection(*one.address, local_addr=(host, 0))
            stack.callback(_end, writer)
            writer.write(b"\x16\x03\x01")
            begun.append(reader)
        with contextlib.suppress(ConnectionResetError):
            assert await begun[0].read() == b""
        assert one.server.counts["gave way"] > 0


async def test_nodes_enrol_while_others_end_handshakes_and_say_nothing(tmp_path: Path) -> None:
    async with parent(tmp_path / "p") as one, contextlib.AsyncExitStack() as stack:
        context = tls.client_context(one.authority.ca_pem)
        for _ in range(40):
            _, writer = await asyncio.open_connection(*one.address, ssl=context)
            stack.callback(_end, writer)
        assert (await call(one.invite(), give_up_s=0)).node == "n01"


async def test_nodes_enrol_while_others_flood_with_whole_handshakes(tmp_path: Path) -> None:
    """Those cost the parent no more than a budget: it hangs up on the rest before it computes."""

    async def one_after_the_other(one: Parent, context: ssl.SSLContext) -> None:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(
                    *one.address, ssl=context, local_addr=("127.0.0.3", 0)
                )
                _end(writer)

    begun = clock.now_ns()
    async with parent(tmp_path / "p", open_s=400) as one, asyncio.TaskGroup() as flood:
        context = tls.client_context(one.authority.ca_pem)
        flooding = [flood.create_task(one_after_the_other(one, context)) for _ in range(8)]
        # The flood is waited for.
        await until(lambda: one.server.counts["too many handshakes"] >= OF_PLACE[0])
        assert (await call(one.invite(), give_up_s=0)).node == "n01"
        for task in flooding:
            task.cancel()
    done = one.server.counts["no claim"] + one.server.counts["hung up"]
    at_once, a_second = OF_PLACE
    assert done <= at_once + a_second * (clock.now_ns() - begun) / 1e9


async def test_who_was_closed_twice_is_hung_up_on_all_the_same(tmp_path: Path) -> None:
    async with parent(tmp_path / "p") as one:
        context = tls.client_context(one.authority.ca_pem)
        _, writer = await asyncio.open_connection(*one.address, ssl=context)
        writer.close()
        writer.close()
        tls.hang_up(writer.transport)


async def test_a_parent_shows_another_certificate_once_half_of_its_life_is_over(
    tmp_path: Path,
) -> None:
    async def shown(one: Parent) -> str:
        context = client_context(one.authority.ca_pem)
        _, writer = await asyncio.open_connection(*one.address, ssl=context)
        told: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return ssl.DER_cert_to_PEM_cert(told)

    async with parent(tmp_path) as one:
        first = one.server.certificate.identity.read_text()
        one.ahead_s = PARENT_DAYS * 86_400 / 2 + 1
        while (then := await shown(one)) in first:
            pass
        assert then in one.server.certificate.identity.read_text()


async def test_a_parent_that_is_not_there_yet_is_called_again(tmp_path: Path) -> None:
    async with parent(tmp_path / "p") as one:
        with contextlib.closing(socket.socket()) as listener:
            # Nobody else gets its port, and nobody is answered before it listens.
            listener.bind((HOST, 0))
            invitation = replace(one.invite(), address=listener.getsockname())
            task = asyncio.create_task(call(invitation))
            await asyncio.sleep(0)
            listener.listen()
            listener.setblocking(False)
            serving = asyncio.create_task(one.server.serve(listener))
            assert (await task).node == "n01"
            serving.cancel()
            await asyncio.wait([serving])


async def test_what_is_no_token_or_no_authority_is_told_before_anybody_is_called() -> None:
    with pytest.raises(HapteraError, match="this is not a token"):
        await call(Invitation((HOST, 1), "hunter2", b""))
    with pytest.raises(HapteraError, match="this is not the certificate of an authority"):
        await call(Invitation((HOST, 1), "hp1.a.b", b"junk"))


async def send_plain(address: tuple[str, int], said: bytes) -> None:
    """Say this without TLS, and wait until the other side hangs up."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(said)
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.transport.abort()


async def send_over_tls(one: Parent, said: bytes) -> bytes:
    context = tls.client_context(one.authority.ca_pem)
    reader, writer = await asyncio.open_connection(*one.address, ssl=context)
    try:
        writer.write(said)
        return await reader.read()
    except (ConnectionError, ssl.SSLError):
        return b""
    finally:
        writer.transport.abort()
