"""The server of channels and its callers: nodes of one cluster, at their declared addresses."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from cryptography import x509
from nats.aio.client import Client

from haptera.modules.replica.channels.carrier import CarrierError, SuppliedState, Voice
from haptera.modules.replica.channels.nats_carrier import NatsCarrier, nats_carrier
from haptera.modules.replica.channels.outbox import NumberedOutput, OutputPosition, PublishOutput
from haptera.runtime.clock import wall_s
from haptera.runtime.identity import pki
from haptera.runtime.identity.pki import Authority
from tests.kills.processes import wait_for
from tests.modules.channels.carrier_rig import CarrierCluster, CarrierNode, Issue, node_at, served
from tests.modules.channels.nats_rig import need_server
from tests.network import NETWORK
from tests.runtime.earlier_certificates import issued_earlier

pytestmark = [pytest.mark.net, pytest.mark.campaign]

HOST = f"{NETWORK}.43.2"
ADDRESS = f"{HOST}:4222"
ELSEWHERE = f"{NETWORK}.43.3"
# Of a server that one test alone has.
OWN_HOST = f"{NETWORK}.43.4"
OWN = f"{OWN_HOST}:4222"
FEED, LEDGER = Voice("feed"), Voice("ledger")
WITHIN_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> CarrierCluster:
    return CarrierCluster(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def server(cluster: CarrierCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    need_server()
    node = cluster.node("serving", node_at(HOST))
    with served(node, ADDRESS, tmp_path_factory.mktemp("streams")):
        yield


def carried(
    tls: ssl.SSLContext, trial: Callable[[NatsCarrier], Awaitable[None]], address: str = ADDRESS
) -> None:
    async def run() -> None:
        async with asyncio.timeout(WITHIN_S), nats_carrier([address], tls) as carrier:
            await trial(carrier)

    asyncio.run(run())


async def prepared(carrier: NatsCarrier) -> None:
    await carrier.prepare("ledger", ())


def output(number: int) -> PublishOutput:
    return PublishOutput(NumberedOutput(OutputPosition(0, 0, number, 1), b"1"), 1, 0)


def test_a_node_may_do_all_that_a_session_does(cluster: CarrierCluster, server: None) -> None:
    async def trial(carrier: NatsCarrier) -> None:
        await carrier.prepare("feed", ())
        await carrier.prepare("ledger", ())
        await carrier.prepare("ledger", ("feed",))  # another configuration of what is there
        for voice in (FEED, Voice("feed", 0)):
            await carrier.end(voice)
            await carrier.publish(voice, output(1))
        heard = carrier.heard("ledger", 0)
        assert [(await anext(heard)).source for _ in range(2)] == ["feed", "feed.0"]
        assert (await carrier.bounds("ledger")).last == 2
        said = carrier.said("feed", 1)
        assert await anext(said) == NumberedOutput(OutputPosition(0, 0, 1, 1), b"1")
        await said.aclose()
        at = await carrier.supply("ledger", "b", b"piece")
        state = SuppliedState("b", 2, {"feed": 2}, "", 5, [], at, at)
        await carrier.supplied("ledger", state)
        assert await carrier.state("ledger") is not None
        assert [piece async for piece in carrier.pieces("ledger", state)] == [b"piece"]
        asked = asyncio.Event()
        await carrier.offer("ledger", 3, lambda: True, asked.set)
        assert await carrier.suppliers("ledger") == {3: True}
        await carrier.ask("ledger", 3)
        await asked.wait()
        await heard.aclose()

    carried(cluster.node("caller", node_at(ELSEWHERE, 2)).tls, trial)


def of_a_token(authority: Authority, request: x509.CertificateSigningRequest) -> bytes:
    return pki.issue_client(authority, request, "6f1d0c2b9a3e4f55", wall_s(), 3_600)


def as_earlier(authority: Authority, request: x509.CertificateSigningRequest) -> bytes:
    return issued_earlier(authority, request, UUID(int=3), 1, wall_s())


@pytest.mark.parametrize("issue", [of_a_token, as_earlier])
def test_no_other_certificate_of_the_cluster_lets_in(
    cluster: CarrierCluster, server: None, tmp_path: Path, issue: Issue
) -> None:
    caller = CarrierNode(tmp_path / "caller", cluster.authority, issue)
    with pytest.raises(CarrierError, match="it serves nodes only"):
        carried(caller.tls, prepared)


@pytest.mark.parametrize("issue", [pki.issue_parent, pki.issue_images, "api", "none", "alien"])
def test_neither_the_parent_nor_a_stranger_is_let_in(
    cluster: CarrierCluster, server: None, tmp_path: Path, issue: object
) -> None:
    caller = CarrierNode(tmp_path / "caller", cluster.authority, node_at(ELSEWHERE))
    tls = caller.tls
    match issue:
        case "api":
            tls.load_cert_chain(pki.issue_api(cluster.authority, [HOST], wall_s()))
        case "none":
            tls = ssl.create_default_context(cadata=cluster.authority.ca_pem.decode())
        case "alien":
            alien = CarrierCluster(tmp_path / "other").node("alien", node_at(ELSEWHERE))
            tls.load_cert_chain(alien.identity)
        case _ if callable(issue):
            tls.load_cert_chain(issue(cluster.authority, wall_s()))
    with pytest.raises(CarrierError):
        carried(tls, prepared)


@pytest.mark.parametrize(
    "subject",
    [
        "$JS.API.STREAM.DELETE.in-kept",
        "$JS.API.STREAM.PURGE.in-kept",
        "$JS.API.STREAM.MSG.DELETE.in-kept",
        "$JS.API.STREAM.NAMES",
        "in.kept",
        "other",
    ],
)
def test_a_node_ends_no_stream_and_says_nothing_beside_channels(
    cluster: CarrierCluster, server: None, tmp_path: Path, subject: str
) -> None:
    caller = CarrierNode(tmp_path / "caller", cluster.authority, node_at(ELSEWHERE))

    async def trial(carrier: NatsCarrier) -> None:
        await carrier.prepare("kept", ())
        refused = await violation(caller.tls, lambda client: client.publish(subject, b"{}"))
        assert "permissions violation for publish" in refused

    carried(caller.tls, trial)


@pytest.mark.parametrize("subject", ["out.ledger", ">", "$JS.API.>"])
def test_a_node_listens_to_no_stream_beside_its_readers(
    cluster: CarrierCluster, server: None, tmp_path: Path, subject: str
) -> None:
    caller = CarrierNode(tmp_path / "caller", cluster.authority, node_at(ELSEWHERE))
    refused = asyncio.run(violation(caller.tls, lambda client: client.subscribe(subject)))
    assert "permissions violation for subscription" in refused


async def violation(tls: ssl.SSLContext, act: Callable[[Client], Awaitable[object]]) -> str:
    """The server's word of an act that it does not permit; it comes beside other errors."""
    told = asyncio.Queue[str]()

    async def hear(error: Exception) -> None:
        told.put_nowait(str(error))

    client = Client()
    await client.connect(f"tls://{ADDRESS}", tls=tls, allow_reconnect=False, error_cb=hear)
    try:
        await act(client)
        await client.flush()
        async with asyncio.timeout(WITHIN_S):
            while "violation" not in (said := await told.get()):
                pass
    finally:
        await client.close()
    return said


def test_a_renewed_certificate_is_shown_and_takes_effect_at_once(
    cluster: CarrierCluster, tmp_path: Path
) -> None:
    need_server()
    serving = CarrierNode(tmp_path / "serving", cluster.authority, as_earlier)
    caller = CarrierNode(tmp_path / "caller", cluster.authority, node_at(ELSEWHERE))

    def reached() -> bool:
        try:
            carried(caller.tls, prepared, OWN)
        except CarrierError:
            return False
        return True

    with served(serving, OWN, tmp_path / "streams"):
        assert not reached()
        serving.take(node_at(OWN_HOST))
        wait_for("the server shows what it has now", reached, within_s=60)


@pytest.mark.parametrize("issue", [node_at(ELSEWHERE, 2), of_a_token, as_earlier])
def test_who_listens_at_the_server_s_address_and_is_another_is_told_nothing(
    cluster: CarrierCluster, tmp_path: Path, issue: Issue
) -> None:
    need_server()
    stranger = CarrierNode(tmp_path / "stranger", cluster.authority, issue)
    caller = CarrierNode(tmp_path / "caller", cluster.authority, node_at(ELSEWHERE, 3))
    with (
        served(stranger, OWN, tmp_path / "streams"),
        pytest.raises(CarrierError, match="certificate is not valid for"),
    ):
        carried(caller.tls, prepared, OWN)


@pytest.mark.parametrize(
    ("host", "address"), [("localhost", "localhost:4243"), ("::1", "[::1]:4243")]
)
def test_a_server_that_is_reached_by_name_or_over_ipv6_is_known_by_that(
    tmp_path: Path, host: str, address: str
) -> None:
    need_server()
    cluster = CarrierCluster(tmp_path)
    caller = cluster.node("caller", node_at(ELSEWHERE, 2))
    with served(cluster.node("serving", node_at(host)), address, tmp_path / "streams"):
        carried(caller.tls, prepared, address)
