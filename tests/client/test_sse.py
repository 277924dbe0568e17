"""Events of a stream, however its bytes come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.client.sse import EVENT_BYTES_MAX, Events, Sent

WORDS = st.text("ab: {}é", min_size=1, max_size=10)
SENT = st.builds(
    Sent, name=st.sampled_from(["change", "snapshot"]), data=WORDS, place=st.none() | WORDS
)


def told(sent, comment, end):
    """An event as its lines."""
    lines = [] if sent.place is None else [f"id: {sent.place}"]
    lines += [f": {comment}", f"event: {sent.name}", f"data: {sent.data}", "", f": {comment}", ""]
    return "".join(f"{line}{end}" for line in lines).encode()


@given(
    st.lists(SENT, max_size=5),
    WORDS,
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.integers(0, 400), max_size=10),
)
def test_events_are_the_same_however_they_come(events, comment, end, cuts):
    data = b"".join(told(one, comment, end) for one in events)
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    parser = Events()
    pieces = [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    assert [sent for piece in pieces for sent in parser.feed(piece)] == events


def test_data_of_several_lines_is_one_text():
    assert list(Events().feed(b"data: one\ndata:two\n\n")) == [Sent("", "one\ntwo", None)]


def test_what_has_no_data_is_no_event():
    assert list(Events().feed(b"event: change\nid: 7\n\ndata: x\n\n")) == [Sent("", "x", None)]


def test_an_event_without_an_end_is_refused():
    with pytest.raises(ValueError, match="too long"):
        list(Events().feed(b"x" * (EVENT_BYTES_MAX + 1)))
