"""Numbers as bytes: what goes in comes out, whatever else comes in changes nothing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.kinds import KINDS
from haptera.model.messages import Mark, Message
from haptera.model.reading import SERIES_MAX
from haptera.model.samples import Measurement
from haptera.wire.frame import BODY_BYTES_MAX, Reject
from haptera.wire.samples import SAMPLES, SERIES_BYTES_MAX, decode_samples, encode_samples
from haptera.wire.sync import beside, decode, encode
from haptera.wire.updates import Codec

CODEC = Codec(KINDS.values(), schema=77)
HELLO = Message(1, 2, 77, Mark(3, 4, 5), Mark(6, 7, 8), words=(9,), probe=True, reads=True)
(TOLD,) = encode(HELLO, CODEC, 77)

names = st.text("abz.[]/0", min_size=1, max_size=SERIES_BYTES_MAX)
numbers = st.floats(allow_nan=False)


@given(st.dictionaries(names, numbers, max_size=SERIES_MAX), st.integers(0, 1 << 40))
def test_all_that_is_measured_arrives_in_bodies_that_fit(
    values: dict[str, float], age_ms: int
) -> None:
    bodies = list(encode_samples(TOLD, Measurement("node", "n" * 64, age_ms, values)))
    found = [decode_samples(body) for body in bodies]

    assert all(len(body) <= BODY_BYTES_MAX for body in bodies)
    arrived: dict[str, float] = {}
    for measured in found:
        assert isinstance(measured, list)
        for one in measured:
            assert (one.kind, one.name, one.age_ms) == ("node", "n" * 64, age_ms)
            arrived |= one.values
    assert arrived == values


def test_the_bytes_of_a_body_with_numbers() -> None:
    (body,) = encode_samples(TOLD, Measurement("node", "n1", 40, {"temp.inlet": 21.5}))

    head = len(TOLD)
    assert body[:head].hex() == "0e" + TOLD[1:].hex()
    assert body[head:].hex(" ") == (
        "10 00 1f 94 a4 6e 6f 64 65 a2 6e 31 28"
        " 81 aa 74 65 6d 70 2e 69 6e 6c 65 74 cb 40 35 80 00 00 00 00 00"
    )


def test_an_older_version_reads_a_message_that_says_nothing_new() -> None:
    (body,) = encode_samples(TOLD, Measurement("node", "n1", 40, {"temp.inlet": 21.5}))
    read = decode(body, CODEC, "n1")

    assert isinstance(read, Message)
    assert (read.desired, read.observed, read.words) == (HELLO.desired, HELLO.observed, (9,))
    assert (read.updates, read.asks, read.permits, read.room_asks) == ((), None, None, None)
    assert not read.probe


def test_any_other_body_carries_no_numbers() -> None:
    assert decode_samples(TOLD) is None
    assert decode_samples(b"") is None


def test_a_section_of_a_later_version_is_skipped() -> None:
    assert decode_samples(beside(TOLD, SAMPLES + 1, b"?")) == []


@given(st.binary(max_size=64), st.integers(0, 64))
def test_whatever_the_content_it_is_read_or_refused(content: bytes, cut: int) -> None:
    body = beside(TOLD, SAMPLES, content)
    for read in (decode_samples(body), decode_samples(body[: len(body) - cut])):
        assert read is None or isinstance(read, list | Reject)


@pytest.mark.parametrize(
    "values",
    [{"a": math.nan}, {"a": math.inf}, {"a" * (SERIES_BYTES_MAX + 1): 1.0}],
)
def test_names_are_bounded_here_and_values_where_their_limits_are_known(
    values: dict[str, float],
) -> None:
    (body,) = encode_samples(TOLD, Measurement("node", "n1", 0, values))
    read = decode_samples(body)

    assert isinstance(read, Reject) is (max(map(len, values)) > SERIES_BYTES_MAX)
