"""Each line of what the RFCs oblige a DHCP server to, as one that answers only who has an offer."""

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.answers import SIZE_BYTES_MIN, answer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.dhcp_server import DhcpServer
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.strangers import Strangers
from tests.modules.test_netboot_flood import Wire

HERE: Final = Here(IPv4Interface("10.9.0.1/24"), 4281, IPv4Address("10.9.0.254"))
MAC: Final = bytes.fromhex("525400000001")
ADDRESS: Final = IPv4Address("10.9.0.11")
OTHER: Final = IPv4Address("10.9.0.12")
RELAY: Final = IPv4Address("10.9.7.1")
NOWHERE: Final = dhcp.NOWHERE
PXE: Final = {
    dhcp.VENDOR_CLASS: b"PXEClient:Arch:00000:UNDI:002001",
    dhcp.ARCHITECTURE: b"\0\0",
    dhcp.CARD: b"\1\2\1",
    dhcp.MACHINE_ID: b"\0" + bytes(range(16)),
}
OURS: Final = {dhcp.SERVER: HERE.address.packed}
MINE: Final = {dhcp.REQUESTED_ADDRESS: ADDRESS.packed}
ANOTHERS: Final = {dhcp.REQUESTED_ADDRESS: OTHER.packed}


def asked(
    kind: int, *options: Mapping[int, bytes], client: IPv4Address = NOWHERE, **more: object
) -> DhcpMessage:
    whole: dict[int, bytes] = {dhcp.MESSAGE_TYPE: bytes([kind])}
    for some in options:
        whole |= some
    request = DhcpMessage(dhcp.REQUEST, 0x1234, MAC, whole, client=client)
    return replace(request, **more)  # type: ignore[arg-type]


def offered(node: str = "n01") -> BootOffer:
    loaders = {0: Path("undionly.kpxe"), 7: Path("snponly.efi")}
    content = {"script": b""}
    return BootOffer(node, MAC, ADDRESS, loaders, {}, {}, content, "once", float("inf"))


def served(
    request: DhcpMessage | bytes, offer: BootOffer, here: Here = HERE
) -> tuple[DhcpMessage, tuple[str, int]] | None:
    """What the server sends and where to, read from its bytes."""
    data = request if isinstance(request, bytes) else dhcp.encode(request)
    offers, wire = Offers(), Wire()
    offers.open(offer)
    server = DhcpServer(offers, here, Strangers(None, lambda: 0.0), answer)
    server.connection_made(wire)  # type: ignore[arg-type]
    server.datagram_received(data, ("10.9.0.99", 68))
    if not wire.sent:
        return None
    ((data, to),) = wire.sent
    reply = dhcp.parse(data)
    assert reply is not None
    return reply, to


def reply_to(request: DhcpMessage) -> DhcpMessage:
    found = served(request, offered())
    assert found is not None
    return found[0]


OFFER: Final = asked(dhcp.DISCOVER, PXE)
ACK: Final = asked(dhcp.ASK, PXE, OURS, MINE)
RENEWED: Final = asked(dhcp.ASK, client=ADDRESS)
INFORMED: Final = asked(dhcp.INFORM, PXE, client=ADDRESS)
NAK: Final = asked(dhcp.ASK, PXE, ANOTHERS)
EACH: Final = {"offer": OFFER, "ack": ACK, "renewed": RENEWED, "informed": INFORMED, "nak": NAK}


# RFC 2131, table 3: the fields of offers, acknowledgements, and refusals.
@pytest.mark.parametrize(
    ("request_", "kind", "client", "yours", "server"),
    [
        (OFFER, dhcp.OFFER, NOWHERE, ADDRESS, HERE.address),
        # Of an offer the field is 0, whatever was in the question.
        (replace(OFFER, client=OTHER), dhcp.OFFER, NOWHERE, ADDRESS, HERE.address),
        (ACK, dhcp.ACK, NOWHERE, ADDRESS, HERE.address),
        (RENEWED, dhcp.ACK, ADDRESS, ADDRESS, HERE.address),
        (INFORMED, dhcp.ACK, ADDRESS, NOWHERE, HERE.address),
        (NAK, dhcp.NAK, NOWHERE, NOWHERE, NOWHERE),
        (asked(dhcp.ASK, client=OTHER), dhcp.NAK, NOWHERE, NOWHERE, NOWHERE),
    ],
)
def test_the_fields_are_those_of_table_3(
    request_: DhcpMessage,
    kind: int,
    client: IPv4Address,
    yours: IPv4Address,
    server: IPv4Address,
) -> None:
    request_ = replace(request_, seconds=9, hops=3, relay=RELAY)
    reply = reply_to(request_)
    assert (reply.op, reply.transaction, reply.mac) == (dhcp.REPLY, 0x1234, MAC)
    assert (reply.type, reply.client, reply.yours, reply.server) == (kind, client, yours, server)
    assert (reply.seconds, reply.hops, reply.relay) == (0, 0, RELAY)


@pytest.mark.parametrize("broadcast", [True, False])
@pytest.mark.parametrize("name", EACH)
def test_the_broadcast_bit_comes_back(name: str, broadcast: bool) -> None:
    assert reply_to(replace(EACH[name], broadcast=broadcast)).broadcast is broadcast


# The same table: options that an answer must have, and must not have.
MUST_NOT: Final = {dhcp.REQUESTED_ADDRESS, dhcp.PARAMETERS, dhcp.SIZE_MAX}
ASKS_FOR_MORE: Final = {dhcp.PARAMETERS: b"\x01\x03\x0c", dhcp.SIZE_MAX: b"\x04\xec"}


@pytest.mark.parametrize("name", EACH)
def test_the_options_are_those_of_table_3(name: str) -> None:
    request = EACH[name]
    reply = reply_to(replace(request, options={**request.options, **ASKS_FOR_MORE}))
    assert reply.address(dhcp.SERVER) == HERE.address
    assert not MUST_NOT & reply.options.keys()
    has_lease = name in {"offer", "ack", "renewed"}
    assert (dhcp.LEASE_TIME in reply.options) is has_lease
    if name == "nak":
        # No parameters; 4578 has its own options in each message, 3046 and 6842 theirs.
        assert reply.options.keys() <= {
            dhcp.MESSAGE_TYPE, dhcp.SERVER, dhcp.MESSAGE, dhcp.CLIENT_ID, dhcp.RELAY_AGENT,
            dhcp.ARCHITECTURE, dhcp.CARD, dhcp.MACHINE_ID,
        }  # fmt: skip
        assert reply.options[dhcp.MESSAGE] == b"another address is this machine's"
        assert reply.file == b""


# RFC 2131, 4.1 and 4.3: where an answer goes to.
EVERYBODY: Final = ("255.255.255.255", 68)


@pytest.mark.parametrize(
    ("request_", "to"),
    [
        (OFFER, EVERYBODY),
        (replace(OFFER, broadcast=True), EVERYBODY),
        (replace(OFFER, relay=RELAY), (str(RELAY), 67)),
        (RENEWED, (str(ADDRESS), 68)),
        (replace(RENEWED, relay=RELAY), (str(RELAY), 67)),
        (INFORMED, (str(ADDRESS), 68)),
        (replace(INFORMED, relay=RELAY), (str(ADDRESS), 68)),
        (replace(INFORMED, relay=RELAY, client=NOWHERE), (str(RELAY), 67)),
        (NAK, EVERYBODY),
        (asked(dhcp.ASK, client=OTHER), EVERYBODY),
        (replace(NAK, relay=RELAY), (str(RELAY), 67)),
    ],
)
def test_an_answer_goes_where_4_1_has_it(request_: DhcpMessage, to: tuple[str, int]) -> None:
    found = served(request_, offered())
    assert found is not None
    assert found[1] == to


def test_a_refusal_behind_a_relay_is_broadcast_there() -> None:
    assert reply_to(replace(NAK, relay=RELAY)).broadcast
    assert not reply_to(NAK).broadcast


# RFC 2131, 4.3.2: what a request is, by what it has; 4.3.3 and 4.3.4: what is not answered.
@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (asked(dhcp.ASK, OURS, MINE), dhcp.ACK),  # selecting
        (asked(dhcp.ASK, OURS, ANOTHERS), dhcp.NAK),
        (asked(dhcp.ASK, {dhcp.SERVER: OTHER.packed}, MINE), None),
        (asked(dhcp.ASK, {dhcp.SERVER: b"\x0a\x09"}, MINE), None),  # a broken one is not ours
        (asked(dhcp.ASK, MINE), dhcp.ACK),  # after a reboot
        (asked(dhcp.ASK, ANOTHERS), dhcp.NAK),
        (asked(dhcp.ASK, client=ADDRESS), dhcp.ACK),  # renewing, rebinding
        (asked(dhcp.ASK, client=OTHER), dhcp.NAK),
        (asked(dhcp.ASK), None),  # of no state: it names no address
        (asked(dhcp.ASK, {dhcp.REQUESTED_ADDRESS: b"\x0a"}), None),
        (asked(dhcp.DECLINE, OURS, MINE), None),
        (asked(dhcp.RELEASE, OURS, client=ADDRESS), None),
        *[(asked(kind), None) for kind in (0, dhcp.OFFER, dhcp.ACK, dhcp.NAK, 9, 255)],
    ],
)
def test_a_request_is_of_the_state_that_its_fields_say(
    request_: DhcpMessage, kind: int | None
) -> None:
    found = served(request_, offered())
    assert (None if found is None else found[0].type) == kind


def test_a_client_without_an_offer_hears_nothing() -> None:
    for request in EACH.values():
        assert served(replace(request, mac=bytes(6)), offered()) is None


def test_an_address_that_is_declined_is_told() -> None:
    served(asked(dhcp.DECLINE, OURS, MINE), offer := offered())
    assert offer.reached == "declined its address: another machine has it"
    served(asked(dhcp.DECLINE, {dhcp.SERVER: OTHER.packed}, MINE), other := offered())
    assert other.reached == "has not requested an address yet"


def test_an_address_of_another_server_is_told_unless_that_gives_them_by_right() -> None:
    theirs = asked(dhcp.ASK, PXE, {dhcp.SERVER: OTHER.packed}, ANOTHERS)
    offer = offered()
    assert served(theirs, offer) is None
    assert offer.reached == f"took an address from another DHCP server, {OTHER}"
    # It asks again, by a loader that begins no boot, and takes ours.
    reached = []
    for request in (replace(OFFER, options={**OFFER.options, dhcp.USER_CLASS: b"iPXE"}), ACK):
        served(request, offer)
        reached.append(offer.reached)
    assert reached == ["requests an address", "has an address"]
    served(theirs, offer := offered(), replace(HERE, proxies=True))
    assert offer.reached == "has not requested an address yet"


# RFC 6842 (61), 3046 (82) and 4578 (93, 94, 97): what comes back as it came, in every answer.
@pytest.mark.parametrize("value", [b"\1" + MAC, b"\xff" + bytes(18), b"x", b"\0" * 100])
@pytest.mark.parametrize(
    "code", [dhcp.CLIENT_ID, dhcp.RELAY_AGENT, dhcp.ARCHITECTURE, dhcp.CARD, dhcp.MACHINE_ID]
)
@pytest.mark.parametrize("name", EACH)
def test_what_identifies_a_client_comes_back_unaltered(name: str, code: int, value: bytes) -> None:
    request = EACH[name]
    reply = reply_to(replace(request, options={**request.options, code: value}))
    assert reply.options[code] == value
    without = {key: one for key, one in request.options.items() if key != code}
    assert code not in reply_to(replace(request, options=without)).options


def test_what_a_relay_added_is_the_last_of_all_options() -> None:
    options = {**OFFER.options, dhcp.RELAY_AGENT: b"\1\4port", dhcp.CLIENT_ID: b"\1" + MAC}
    reply = reply_to(replace(OFFER, options=options))
    assert list(reply.options)[-1] == dhcp.RELAY_AGENT


# RFC 2132, 9.8 and 3.3: the order that was asked for, and a mask before a router.
@pytest.mark.parametrize(
    ("parameters", "order"),
    [
        (bytes([51, 12, 3, 1]), [51, 12, 1, 3]),
        (bytes([1, 3, 51, 12]), [1, 3, 51, 12]),
        (bytes([12, 12, 99, 0, 255, 51]), [12, 51, 1, 3]),
        (b"", [1, 12, 3, 51]),
    ],
)
def test_options_are_in_the_order_that_was_asked_for(parameters: bytes, order: list[int]) -> None:
    reply = reply_to(asked(dhcp.DISCOVER, {dhcp.PARAMETERS: parameters}))
    assert [one for one in reply.options if one in order] == order
    assert list(reply.options)[:2] == [dhcp.MESSAGE_TYPE, dhcp.SERVER]


# RFC 2132, 9.10, and 2131, 2: no answer is larger than the client takes, 576 bytes if it is silent.
@pytest.mark.parametrize("size_max", [None, b"\2\x40", b"\0\7", b"\5\xc0", b"\2", b""])
@pytest.mark.parametrize("client_id_bytes", [7, 60, 120, 170, 255])
def test_no_answer_is_larger_than_a_client_takes(
    size_max: bytes | None, client_id_bytes: int
) -> None:
    more = {} if size_max is None else {dhcp.SIZE_MAX: size_max}
    request = asked(dhcp.DISCOVER, PXE, {dhcp.CLIENT_ID: bytes(client_id_bytes)}, more)
    reply = answer(request, offered("n" * 63), HERE)
    room_bytes = max(int.from_bytes(size_max or b"", "big"), SIZE_BYTES_MIN) - 28
    if reply is None:
        assert client_id_bytes == 255
        assert room_bytes < 1_000
        return
    assert len(dhcp.encode(reply)) <= room_bytes
    assert reply.file == b"undionly.kpxe"
    assert {dhcp.LEASE_TIME, dhcp.SUBNET_MASK, dhcp.ROUTER, dhcp.CLIENT_ID} <= reply.options.keys()


@given(st.sampled_from(sorted(EACH)), st.data())
def test_a_broken_request_is_answered_as_the_tables_have_it_or_not_at_all(
    name: str, data: st.DataObject
) -> None:
    options = {**EACH[name].options, dhcp.CLIENT_ID: b"\1" + MAC, **ASKS_FOR_MORE}
    whole = bytearray(dhcp.encode(replace(EACH[name], options=options)))
    # Behind the card's address, and before the padding: most of it is still a request.
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(236, min(310, len(whole) - 1)))] = data.draw(
            st.integers(0, 255)
        )
    found = served(bytes(whole), offered())
    if found is None:
        return
    reply, _ = found
    assert reply.address(dhcp.SERVER) == HERE.address
    assert not MUST_NOT & reply.options.keys()
    assert (dhcp.LEASE_TIME in reply.options) is (reply.yours == ADDRESS)
    assert reply.type in {dhcp.OFFER, dhcp.ACK, dhcp.NAK}
