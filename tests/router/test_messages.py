from contextlib import suppress

import pytest
from bgp.attributes import (
    LARGE_COMMUNITIES,
    OPTIONAL,
    TRANSITIVE,
    Attribute,
    Attributes,
    MalformedError,
    as_path,
    as_path_length,
)
from bgp.messages import (
    HEADER_BYTES,
    MARKER,
    MESSAGE_BYTES_MAX,
    Keepalive,
    Message,
    Open,
    Prefix,
    Update,
    encode,
    packed,
    parse,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.router.strategies import MESSAGES, PREFIXES, attributes

# As another implementation sent them (BIRD 2.0.12).
OF_ANOTHER = {
    "OPEN": "ffffffffffffffffffffffffffffffff003501"
    "04fde900f0c000020118021601040001000102004002007841040000fde946004700",
    "UPDATE": "ffffffffffffffffffffffffffffffff004302"
    "0000002440010100400200400304c000020740050400000064"
    "c0200c0000fde90000000100000007180a0103180a0102",
}


def message(kind: int, body: str) -> bytes:
    """A message of this body, in hexadecimal."""
    octets = bytes.fromhex(body)
    return MARKER + (HEADER_BYTES + len(octets)).to_bytes(2, "big") + bytes((kind,)) + octets


@given(MESSAGES)
def test_a_message_is_what_it_was_before_it_was_sent(sent: Message) -> None:
    assert parse(encode(sent)) == sent


@given(MESSAGES, st.data())
def test_any_octets_are_a_message_or_say_what_is_wrong_with_them(
    sent: Message, data: st.DataObject
) -> None:
    octets = bytearray(encode(sent))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(HEADER_BYTES - 1, len(octets) - 1))
        octets[at] = data.draw(st.integers(0, 255))
    del octets[data.draw(st.integers(HEADER_BYTES, len(octets))) :]
    octets[16:18] = len(octets).to_bytes(2, "big")
    with suppress(MalformedError):
        found = parse(bytes(octets))
        # Where two ways say the same, one of them is sent on.
        assert parse(encode(found)) == found


@given(st.binary(max_size=60))
def test_octets_without_a_header_are_refused(octets: bytes) -> None:
    with pytest.raises(MalformedError):
        parse(octets)


@given(st.binary(max_size=60), st.integers(0, 255))
def test_any_body_is_a_message_or_refused(body: bytes, kind: int) -> None:
    with suppress(MalformedError):
        parse(message(kind, body.hex()))


def test_messages_of_another_implementation_are_read() -> None:
    opened = parse(bytes.fromhex(OF_ANOTHER["OPEN"]))
    assert isinstance(opened, Open)
    assert (opened.as_number, opened.hold_s, opened.router_id) == (65001, 240, b"\xc0\x00\x02\x01")
    assert [one.code for one in opened.capabilities] == [1, 2, 64, 65, 70, 71]

    update = parse(bytes.fromhex(OF_ANOTHER["UPDATE"]))
    assert isinstance(update, Update)
    assert update.announced == (Prefix.of("10.1.3.0/24"), Prefix.of("10.1.2.0/24"))
    version = bytes.fromhex("0000fde90000000100000007")
    assert update.attributes[-1] == Attribute(LARGE_COMMUNITIES, OPTIONAL | TRANSITIVE, version)


# What is wrong, as a message's type and body; the code and the subcode of RFC 4271, 6.
ORIGIN, PATH, HOP = "40010100", "400200", "4003040a000001"
WRONG = {
    "an unknown type": (9, "", (1, 3)),
    "a keepalive that says something": (4, "00", (1, 2)),
    "an open that is cut short": (1, "04fde9", (1, 2)),
    "another version": (1, "03fde900b4c000020100", (2, 1)),
    "AS 0": (1, "04000000b4c000020100", (2, 2)),
    "no identifier": (1, "04fde900b40000000000", (2, 3)),
    "a parameter beyond its end": (1, "04fde900b4c000020102" + "02ff", (2, 4)),
    "a parameter that is no capability": (1, "04fde900b4c000020102" + "0100", (2, 4)),
    "a hold time of 2 s": (1, "04fde90002c000020100", (2, 6)),
    "more withdrawn than there is": (2, "00ff0000", (3, 1)),
    "more attributes than there are": (2, "000000ff", (3, 1)),
    "an attribute twice": (2, "00000008" + ORIGIN * 2, (3, 1)),
    "an attribute beyond its end": (2, "00000004" + "400109ff", (3, 1)),
    "an unknown well-known attribute": (2, "00000003" + "406300", (3, 2)),
    "a route without a path": (2, "0000000b" + ORIGIN + HOP + "080a", (3, 3)),
    "an optional origin": (2, "00000004" + "c0010100", (3, 4)),
    "a partial origin": (2, "00000004" + "60010100", (3, 4)),
    "an origin of two octets": (2, "00000005" + "4001020000", (3, 5)),
    "an origin of no kind": (2, "00000004" + "40010103", (3, 6)),
    "a next hop that is loopback": (2, "00000007" + "4003047f000001", (3, 8)),
    "a path beyond its end": (2, "00000005" + "4002020202", (3, 11)),
    "a path of no kind": (2, "00000009" + "400206090100000001", (3, 11)),
    "a prefix of 33 bits": (2, "0006" + "210a00000000" + "0000", (3, 10)),
    "a prefix beyond its end": (2, "0002" + "180a" + "0000", (3, 10)),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_has_the_code_that_the_other_side_expects(what: str) -> None:
    kind, body, codes = WRONG[what]
    with pytest.raises(MalformedError) as refused:
        parse(message(kind, body))
    assert (refused.value.code, refused.value.subcode) == codes


def test_bits_behind_a_prefix_mean_nothing() -> None:
    update = parse(message(2, "0003" + "090aff" + "0000"))
    assert update == Update((Prefix.of("10.128.0.0/9"),))


def test_a_message_that_is_too_large_is_not_made() -> None:
    many = tuple(Prefix.of(f"10.{i // 256}.{i % 256}.0/24") for i in range(1_100))
    with pytest.raises(ValueError, match="4096 at most"):
        encode(Update(many))


@given(st.dictionaries(PREFIXES, st.one_of(st.none(), attributes()), max_size=8))
def test_packed_messages_say_each_change_once(changes: dict[Prefix, Attributes | None]) -> None:
    said: list[tuple[Prefix, Attributes | None]] = []
    for update in packed(changes.items()):
        said += [(one, None) for one in update.withdrawn]
        said += [(one, update.attributes) for one in update.announced]
    assert (dict(said), len(said)) == (changes, len(changes))


def test_packed_messages_are_few_and_fit() -> None:
    one = (
        Attribute(1, TRANSITIVE, b"\x00"),
        as_path([65_001] * 200),
        Attribute(3, TRANSITIVE, b"\x0a\x00\x00\x01"),
    )
    routes = {Prefix.of(f"10.{i // 256}.{i % 256}.0/32"): one for i in range(2_000)}
    messages = [encode(update) for update in packed(routes.items())]
    assert max(map(len, messages)) <= MESSAGE_BYTES_MAX
    assert len(messages) == 4


def test_a_set_counts_as_one_in_the_length_of_a_path() -> None:
    path = bytes.fromhex("0203 00000001 00000002 00000003 0102 00000004 00000005")
    assert as_path_length(path) == 4


def test_an_end_of_table_is_an_update_of_nothing() -> None:
    assert encode(Update()).hex() == "ff" * 16 + "001702" + "00000000"
    assert len(encode(Keepalive())) == HEADER_BYTES
