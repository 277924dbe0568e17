"""DHCP and TFTP as bytes: what is written is read, and nothing that comes from outside crashes."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.modules.netboot import dhcp, tftp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.tftp import Ack, Error, Read, Terms, TftpWrite

ADDRESSES = st.integers(0, 2**32 - 1).map(IPv4Address)
OPTIONS = st.dictionaries(
    st.integers(1, 254).filter(lambda code: code != dhcp.OVERLOAD), st.binary(max_size=300)
)
MESSAGES = st.builds(
    DhcpMessage,
    st.sampled_from([dhcp.REQUEST, dhcp.REPLY]),
    st.integers(0, 2**32 - 1),
    st.binary(min_size=6, max_size=6),
    OPTIONS,
    *[ADDRESSES] * 4,
    file=st.binary(max_size=128).filter(lambda name: b"\0" not in name),
    seconds=st.integers(0, 65_535),
    hops=st.integers(0, 255),
    broadcast=st.booleans(),
)


@given(MESSAGES)
def test_a_message_is_read_as_it_was_written(message: DhcpMessage) -> None:
    data = dhcp.encode(message)
    assert len(data) >= dhcp.BYTES_MIN
    if len(data) <= dhcp.BYTES_MAX:
        assert dhcp.parse(data) == message


@given(st.binary(max_size=600))
def test_any_bytes_are_a_message_or_none(data: bytes) -> None:
    assert isinstance(dhcp.parse(data), DhcpMessage | None)


@given(MESSAGES, st.data())
def test_a_broken_message_is_a_message_or_none(message: DhcpMessage, data: st.DataObject) -> None:
    whole = bytearray(dhcp.encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read = dhcp.parse(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    assert isinstance(read, DhcpMessage | None)
    if read is not None:
        # What is understood can be asked all that servers ask of it.
        assert all(0 <= one <= 65_535 for one in read.architectures)
        assert read.architectures
        assert read.type is None or 0 <= read.type <= 255


def test_options_in_overloaded_fields_are_read() -> None:
    plain = DhcpMessage(dhcp.REQUEST, 1, options={dhcp.OVERLOAD: b"\3"})
    data = bytearray(dhcp.encode(plain))
    data[108:113] = bytes([dhcp.BOOT_FILE, 2]) + b"a\0\xff"[:3]
    data[44:49] = bytes([dhcp.HOST_NAME, 2]) + b"n1\xff"
    read = dhcp.parse(bytes(data))
    assert read is not None
    assert read.options == {
        dhcp.OVERLOAD: b"\3", dhcp.BOOT_FILE: b"a\0", dhcp.HOST_NAME: b"n1"
    }  # fmt: skip


def test_what_a_relay_added_goes_last() -> None:
    options = {dhcp.RELAY_AGENT: b"\1\2ab", dhcp.MESSAGE_TYPE: b"\2"}
    assert dhcp.encode(DhcpMessage(dhcp.REPLY, 1, options=options))[240:250] == (
        b"\x35\1\2" + b"\x52\4\1\2ab" + b"\xff"
    )


@given(st.binary(max_size=600))
def test_any_bytes_are_a_packet_or_none(data: bytes) -> None:
    assert isinstance(tftp.parse(data), Read | TftpWrite | Ack | Error | None)


@pytest.mark.parametrize(
    ("data", "packet"),
    [
        (b"\0\1a\0OCTET\0", Read("a")),
        (b"\0\1../etc/shadow\0octet\0TSIZE\x000\0", Read("../etc/shadow", {"tsize": "0"})),
        (b"\0\1a\0netascii\0", None),
        (b"\0\1a\0octet\0blksize\0", None),
        (b"\0\1a\0octet", None),
        (b"\0\1\xff\0octet\0", None),
        (b"\0\2a\0octet\0", TftpWrite()),
        (b"\0\4\0\7", Ack(7)),
        (b"\0\5\0\1gone\0", Error(1, "gone")),
        (b"\0\3\0\1data", None),
        (b"", None),
    ],
)
def test_what_a_client_sends_is_understood(data: bytes, packet: object) -> None:
    assert tftp.parse(data) == packet


@given(st.dictionaries(st.sampled_from(["blksize", "tsize", "windowsize", "x"]), st.text()))
def test_whatever_is_asked_is_granted_within_limits(options: dict[str, str]) -> None:
    terms = tftp.negotiate(options, 70_000)
    assert isinstance(terms, Terms)
    assert 8 <= terms.block_bytes <= 1_468
    assert 1 <= terms.window <= tftp.WINDOW_MAX
    assert terms.told.keys() <= options.keys()
