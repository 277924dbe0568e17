"""Frames on a stream: the same however the stream is cut, and never an exception."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from haptera.wire.frame import FrameFault, Reject
from haptera.wire.ipc import FRAME_BYTES_MAX, Frames, encode_frame

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
CONTENTS = st.lists(st.dictionaries(st.text(max_size=8), PLAIN, max_size=4), max_size=5)


def test_a_frame_has_these_very_bytes() -> None:
    frame = encode_frame({"call": 7, "part": "power.look", "node": "n01"})

    assert frame.hex() == (
        "0000002083a463616c6c07a470617274aa706f7765722e6c6f6f6ba46e6f6465a36e3031"
    )


@given(CONTENTS, st.lists(st.integers(0, 400)))
def test_frames_come_out_whole_however_the_stream_is_cut(
    contents: list[dict[str, object]], cuts: list[int]
) -> None:
    stream = b"".join(encode_frame(one) for one in contents)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    frames = Frames()
    out: list[dict[str, object]] = []

    for begin, end in pairwise(edges):
        piece = frames.feed(stream[begin:end])
        assert not isinstance(piece, Reject)
        out += piece

    assert out == contents


def test_a_frame_longer_than_the_limit_is_refused_before_it_is_read() -> None:
    assert Frames().feed((FRAME_BYTES_MAX + 1).to_bytes(4, "big")) == Reject(FrameFault.FRAME)
    with pytest.raises(ValueError, match="at most 1048576"):
        encode_frame({"a": b"x" * FRAME_BYTES_MAX})


def test_the_largest_frame_is_taken() -> None:
    content = {"a": b"x" * (FRAME_BYTES_MAX - 8)}
    frame = encode_frame(content)

    assert len(frame) == FRAME_BYTES_MAX + 4
    assert Frames().feed(frame) == [content]


@pytest.mark.parametrize("packed", [b"\xc1", b"\x01", b"\x90", b"\x81\x01\x02", b"", b"\x80\x80"])
def test_what_is_no_map_with_text_keys_is_refused_for_good(packed: bytes) -> None:
    frames = Frames()

    assert frames.feed(len(packed).to_bytes(4, "big") + packed) == Reject(FrameFault.FRAME)
    assert frames.feed(encode_frame({"ok": 1})) == Reject(FrameFault.FRAME)


@given(st.binary(max_size=64))
@example(b"\x81\xa1a" + b"\x91" * 100_000)
@example(b"\x81\xa1a\x81\x80\x01")
@example(b"\x81\xa1\xff\x01")
def test_any_bytes_are_either_frames_or_refused(packed: bytes) -> None:
    result = Frames().feed(len(packed).to_bytes(4, "big") + packed)

    if isinstance(result, list):
        assert [msgspec.msgpack.decode(packed)] == result
    else:
        assert result == Reject(FrameFault.FRAME)
