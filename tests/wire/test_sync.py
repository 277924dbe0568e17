"""Messages as bytes: the very bytes, nothing lost on the way, and no bytes that break anything."""

from enum import StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.declared.remote_schema import OwnSchema, ToldSchema, told_schema
from haptera.model.declared.schema import VARIABLES_MAX, Kind, Variable
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Method
from haptera.model.messages import (
    LATE_MS_MAX,
    Ask,
    DesiredUpdate,
    Mark,
    Measure,
    Message,
    ObservedFragment,
    ObservedUpdate,
    Permit,
    RoomAsk,
    SeenValue,
    Standing,
    Update,
)
from haptera.model.walltime import AGE_MS_MAX
from haptera.wire.frame import BODY_BYTES_MAX, FrameFault, Reject
from haptera.wire.measures import USUAL_MS_MAX
from haptera.wire.permits import ROOM_ASK, decode_spoken, encode_room_ask
from haptera.wire.sync import decode, encode
from haptera.wire.updates import (
    BY_BYTES_MAX,
    NOTE_BYTES_MAX,
    VALUE_BYTES_MAX,
    WORDS_BYTES_MAX,
    Codec,
)
from tests.wire.test_kind_sizes import most_desired, most_observed

SCHEMA = 0x5C4E3A
CODEC = Codec(KINDS.values(), SCHEMA)
OTHER = Codec(KINDS.values(), SCHEMA + 1)
WEB = EntityId("service", "web", "n01")
HELLO = Message(3, 1, SCHEMA, Mark(7, 5, 0xD1), Mark(0, 9, 0x0B), words=(0x2A,))

U64 = st.integers(0, 2**64 - 1)
AGES = st.integers(0, AGE_MS_MAX)
NAMES = st.sampled_from(["n", "n01", "rack1-n40.site", "w_" + "x" * 61 + "9"])
MARKS = st.builds(Mark, U64, U64, U64)
ENTITIES = {
    "node": NAMES.map(node_id),
    "service": st.builds(EntityId, st.just("service"), NAMES, NAMES | st.none()),
    "freeze": st.builds(EntityId, st.just("freeze"), NAMES, st.none()),
}
SEEN: dict[str, dict[str, tuple[str, ...]]] = {
    "node": {"power": ("off", "on", "hung"), "agent": ("up",), "busy": ("free", "busy")},
    "service": {"run": ("stopped", "running", "failed"), "applied": ("0123456789abcdef",)},
    "freeze": {},
}
PLAIN: dict[str, dict[str, st.SearchStrategy[str | int]]] = {
    "node": {},
    "service": {"command": st.text(max_size=40), "port": st.integers(-(2**63), 2**64 - 1)},
    "freeze": {"of": st.text(max_size=40), "until_s": st.integers(0, 2**40)},
}

WORDS = st.text(max_size=25) | st.none()


def seen_values(kind: str) -> st.SearchStrategy[dict[str, SeenValue]]:
    return st.fixed_dictionaries(
        {},
        optional={
            name: st.builds(
                SeenValue,
                st.sampled_from(values),
                st.booleans(),
                st.sampled_from((Method.READ, Method.INFERRED)),
                AGES,
                st.sampled_from(["labnode", "service", "sync", ""]),
                WORDS,
            )
            for name, values in SEEN[kind].items()
        },
    )


def wanted_values(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    values: dict[str, st.SearchStrategy[str | int]] = {
        name: st.sampled_from(values) for name, values in SEEN[kind].items()
    }
    return st.fixed_dictionaries({}, optional=values | PLAIN[kind])


STANDINGS = st.builds(Standing, st.sampled_from(Condition), AGES, WORDS, WORDS) | st.none()
ATTRIBUTES = st.dictionaries(st.sampled_from(["platform", "rack", "bmc"]), st.text(max_size=20))
UPDATES = st.one_of(
    *(
        st.builds(DesiredUpdate, entity, U64, wanted_values(kind), ATTRIBUTES, st.booleans())
        for kind, entity in ENTITIES.items()
    ),
    *(
        st.builds(ObservedUpdate, entity, U64, seen_values(kind), st.booleans(), STANDINGS)
        for kind, entity in ENTITIES.items()
    ),
)
MEASURES = st.builds(Measure, NAMES.map("{0}.{0}".format), st.integers(0, USUAL_MS_MAX))
ROOM_ASKS = st.builds(
    RoomAsk,
    st.text(max_size=12),
    st.builds(EntityId, st.just("system"), NAMES, st.just("n01")),
    st.integers(0, LATE_MS_MAX),
    st.booleans(),
)
MESSAGES = st.builds(
    Message,
    U64,
    U64,
    st.just(SCHEMA),
    MARKS,
    MARKS,
    st.lists(U64, max_size=4).map(tuple),
    st.lists(UPDATES, max_size=8).map(tuple),
    st.booleans(),
    measures=st.lists(MEASURES, max_size=20).map(tuple),
    room_asks=st.lists(ROOM_ASKS, max_size=2).map(tuple),
)


def wide_kind(count: int, **rest: Any) -> Kind:
    class Level(StrEnum):
        UNKNOWN = "unknown"
        LOW = "low-enough-for-anything"

    numbers = {Level.UNKNOWN: 0, Level.LOW: 1}
    names = [f"level-{at}" for at in range(count)]
    return Kind("wide", tuple(Variable("wide", name, Level, numbers) for name in names), **rest)


def read(bodies: list[bytes], codec: Codec = CODEC) -> Message:
    """One message of what several bodies say."""
    messages = [decode(body, codec, "n01") for body in bodies]
    updates: tuple[Update, ...] = ()
    measures: tuple[Measure, ...] = ()
    for message in messages:
        assert isinstance(message, Message)
        updates += message.updates
        measures += message.measures
    assert isinstance(messages[0], Message)
    return msgspec.structs.replace(messages[0], updates=updates, measures=measures)


def with_section(kind: int, content: bytes) -> bytes:
    (hello,) = encode(HELLO, CODEC, SCHEMA)
    return hello + bytes([kind]) + len(content).to_bytes(2, "big") + content


def test_a_hello_has_these_very_bytes() -> None:
    (body,) = encode(HELLO, CODEC, SCHEMA)

    assert body.hex() == (
        "0001"  # no flags, one word
        "0000000000000003000000000000000100000000005c4e3a"  # incarnation, term, schema
        "0000000000000007000000000000000500000000000000d1"  # desired: epoch, version, digest
        "00000000000000000000000000000009000000000000000b"  # observed
        "000000000000002a"
    )
    assert decode(body, CODEC, "n01") == HELLO


def test_a_body_with_sections_has_these_very_bytes() -> None:
    message = msgspec.structs.replace(
        HELLO,
        words=(),
        updates=(
            DesiredUpdate(WEB, 5, {"run": "running", "port": 80}, {}),
            ObservedUpdate(
                WEB,
                9,
                {
                    "run": SeenValue("stopped", False, Method.INFERRED, 1500, "service", "by hand"),
                    "applied": SeenValue("0123456789abcdef", True, Method.READ, 20, "service"),
                },
                standing=Standing(Condition.STUCK, 300, "status 3"),
            ),
        ),
        probe=True,
    )

    (body,) = encode(message, CODEC, SCHEMA)

    assert body[:2] == b"\x01\x00"  # a probe, no words
    assert body[74:] == (
        b"\x01\x00\x1d\x98\xa7service\xa3web\xa3n01\x05\xc2\x91\x20\x81\xa4port\x50\x80"
        b"\x02\x00\x6b\x9b\xa7service\xa3web\xa3n01\x09\xc2\x91\xcd\x01\x90"
        b"\x81\xa7applied\x93\xb00123456789abcdef\xc3\xa4read"
        b"\x92\x92\xcd\x05\xdc\x00\x92\x14\x00\x91\xa7service"
        b"\x94\xa5stuck\xcd\x01\x2c\xa8status 3\xc0\x81\xa3run\xa7by hand"
    )
    assert decode(body, CODEC, "n01") == message


def test_an_ask_for_room_has_these_very_bytes_and_is_of_the_node_that_says_it() -> None:
    asked = RoomAsk("b2-1", EntityId("system", "compute", "n01"), 70_000, begun=True)
    message = msgspec.structs.replace(HELLO, room_asks=(asked,))

    (body,) = encode(message, CODEC, SCHEMA)

    section = b"\x06\x00\x1c\x96\xa4b2-1\xa6system\xa7compute\xce\x00\x01\x11\x70\xc3\xc2"
    assert body == encode(HELLO, CODEC, SCHEMA)[0] + section
    assert decode(body, CODEC, "n01") == message
    assert decode(body.replace(b"compute", b"../pute"), CODEC, "n01") == Reject(FrameFault.SECTION)


def test_an_ask_for_room_of_an_earlier_agent_is_read() -> None:
    said = b"\x95\xa4b2-1\xa6system\xa7compute\xce\x00\x01\x11\x70\xc3"
    asked = RoomAsk("b2-1", EntityId("system", "compute", "n01"), 70_000, begun=True)
    assert decode_spoken(ROOM_ASK, said, "n01") == asked


def test_who_asks_for_room_cannot_have_it_kept_for_ever_by_falling_silent() -> None:
    ask = RoomAsk("lq.e1.1", EntityId("service", "web", "n01"), late_ms=AGE_MS_MAX, begun=True)
    assert decode_spoken(ROOM_ASK, encode_room_ask(ask), "n01") == msgspec.structs.replace(
        ask, late_ms=LATE_MS_MAX
    )


def test_all_that_is_asked_and_permitted_at_once_fits_the_first_datagram() -> None:
    entity = EntityId("k" * 64, "n" * 64, "n01")
    said = msgspec.structs.replace(
        HELLO,
        words=(1, 2, 3, 4),
        asks=(Ask("i" * 48, "s" * 130, LATE_MS_MAX),) * 3,
        permits=(Permit("i" * 48, granted=False, text="t" * 400),) * 3,
        room_asks=(RoomAsk("i" * 48, entity, LATE_MS_MAX),) * 3,
    )
    (body,) = encode(said, CODEC, SCHEMA)
    told = decode(body, CODEC, "n01")
    assert isinstance(told, Message)
    assert (told.asks, told.room_asks) == ((said.asks or ())[:2], (said.room_asks or ())[:2])


def test_a_measure_has_these_very_bytes_and_an_earlier_reader_skips_its_section() -> None:
    message = msgspec.structs.replace(HELLO, measures=(Measure("service.start", 1_500),))

    (body,) = encode(message, CODEC, SCHEMA)

    section = b"\x05\x00\x12\x92\xadservice.start\xcd\x05\xdc"
    assert body == encode(HELLO, CODEC, SCHEMA)[0] + section
    assert decode(body, CODEC, "n01") == message
    assert decode(body.replace(section, b"\xc8" + section[1:]), CODEC, "n01") == HELLO


@pytest.mark.parametrize(
    "content", [["a.b"], ["a.b", -1], ["a.b", USUAL_MS_MAX + 1], ["a" * 200, 1], [1, "a.b"]]
)
def test_a_measure_that_cannot_be_is_refused(content: list[Any]) -> None:
    body = with_section(5, msgspec.msgpack.encode(content))

    assert decode(body, CODEC, "n01") == Reject(FrameFault.SECTION)


@settings(max_examples=100)
@given(MESSAGES, st.sampled_from([SCHEMA, SCHEMA + 1, None]))
def test_what_is_told_is_what_is_heard(message: Message, peer_schema: int | None) -> None:
    bodies = encode(message, CODEC, peer_schema)

    assert all(len(body) <= BODY_BYTES_MAX for body in bodies)
    assert read(bodies) == message


@given(MESSAGES)
def test_a_receiver_of_another_schema_reads_named_values(message: Message) -> None:
    assert read(encode(message, CODEC, OTHER.schema), OTHER) == message


def test_packed_values_say_nothing_to_a_receiver_of_another_schema() -> None:
    seen = {"power": SeenValue("on", True, Method.READ, 0, "labnode")}
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(node_id("n01"), 1, seen),))

    assert read(encode(told, CODEC, SCHEMA), OTHER) == HELLO


def test_packed_values_of_a_schema_that_was_learnt_are_read_by_its_numbers() -> None:
    kinds = told_schema(SCHEMA, KINDS.values(), OwnSchema({}, {}))
    numbers = {"unknown": 0, "on": 1, "off": 2, "hung": 3}
    node = {**kinds.kinds["node"], "power": numbers}
    other = ToldSchema(SCHEMA + 2, {**kinds.kinds, "node": node}, {})
    codec = Codec(KINDS.values(), SCHEMA)
    seen = {"power": SeenValue("on", True, Method.READ, 0, "labnode")}
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(node_id("n01"), 1, seen),))
    (body,) = encode(told, CODEC, SCHEMA)
    theirs = body[:18] + (SCHEMA + 2).to_bytes(8, "big") + body[26:]

    assert codec.learn("n01", other)
    (update,) = read([theirs], codec).updates
    assert isinstance(update, ObservedUpdate)
    ours = kinds.kinds["node"]["power"]["on"]
    assert numbers[update.values["power"].value] == ours


def test_what_a_neighbour_calls_its_schema_says_nothing_of_the_words_of_others() -> None:
    kinds = told_schema(SCHEMA, KINDS.values(), OwnSchema({}, {}))
    swapped = {"unknown": 0, "on": 1, "off": 2, "hung": 3}
    forged = ToldSchema(SCHEMA, {**kinds.kinds, "node": {"power": swapped}}, {})
    other = Codec(KINDS.values(), SCHEMA + 1)
    seen = {"power": SeenValue("on", True, Method.READ, 0, "labnode")}
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(node_id("n01"), 1, seen),))
    (body,) = encode(told, CODEC, SCHEMA)

    assert other.learn("n01", kinds)
    assert other.learn("n02", forged)
    assert decode(body, other, "n01") == told
    assert decode(body, other, "n02") != told


def test_words_that_would_be_too_many_are_not_learnt_and_one_schema_a_neighbour_is() -> None:
    codec = Codec(KINDS.values(), SCHEMA)
    wide = {f"v{number}": {"unknown": 0, "x": 65_535} for number in range(200)}
    assert not codec.learn("n01", ToldSchema(7, {"wide": wide}, {}))
    for number in range(20):
        assert codec.learn("n01", ToldSchema(number, {}, {}))
    seen = {"power": SeenValue("on", True, Method.READ, 0, "labnode")}
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(node_id("n01"), 1, seen),))
    assert read(encode(told, CODEC, SCHEMA), codec) == told


def test_many_updates_travel_in_as_few_datagrams_as_hold_them() -> None:
    command = "x" * 400
    updates = tuple(
        DesiredUpdate(EntityId("service", f"s{at}", "n01"), at, {"command": command}, {})
        for at in range(5)
    )
    message = msgspec.structs.replace(HELLO, updates=updates)

    bodies = encode(message, CODEC, SCHEMA)

    parts = [decode(body, CODEC, "n01") for body in bodies]
    assert parts == [
        msgspec.structs.replace(HELLO, updates=updates[:2]),
        msgspec.structs.replace(HELLO, updates=updates[2:4]).overtaken(),
        msgspec.structs.replace(HELLO, updates=updates[4:]).overtaken(),
    ]


def test_a_section_of_unknown_type_is_skipped() -> None:
    assert decode(with_section(200, b"from a later version"), CODEC, "n01") == HELLO


def test_what_a_later_version_appends_to_a_section_is_skipped() -> None:
    content = ["service", "web", "n01", 5, False, [], {"run": "running"}, {}, "later"]

    assert decode(with_section(1, msgspec.msgpack.encode(content)), CODEC, "n01") == (
        msgspec.structs.replace(HELLO, updates=(DesiredUpdate(WEB, 5, {"run": "running"}, {}),))
    )


@pytest.mark.parametrize(
    "content",
    [
        ["service", "web", "n01", 5, False, [], {}],  # nothing after the values
        ["service", "web", "n01", -5, False, [], {}, {}],  # a version below zero
        ["service", "web\n", "n01", 5, False, [], {}, {}],  # no name
        ["service", "web", "", 5, False, [], {}, {}],  # no node
        ["nothing", "web", "n01", 5, False, [1], {}, {}],  # words of no kind
        ["node", "n01", "n01", 5, False, [0b11 << 3], {}, {}],  # a number that busy has not
        ["service", "web", "n01", 5, False, [1, 0], {}, {}],  # too many words
        ["service", "web", "n01", 5, False, [], {"port": 1.5}, {}],  # neither text nor number
    ],
)
def test_a_desired_section_that_says_what_cannot_be_is_refused(content: list[Any]) -> None:
    body = with_section(1, msgspec.msgpack.encode(content))

    assert decode(body, CODEC, "n01") == Reject(FrameFault.SECTION)


@pytest.mark.parametrize(
    ("named", "provenance", "by"),
    [
        ({"run": ["failed", True, "read"]}, [[1, 1]], ["service"]),  # seen by nobody
        ({"run": ["failed", True, "read"]}, [], ["service"]),  # of no age
        ({"run": ["failed", True, "dreamt"]}, [[1, 0]], ["service"]),
        ({"run": ["failed", True, "read"]}, [[-1, 0]], ["service"]),
    ],
)
def test_an_observed_section_that_says_what_cannot_be_is_refused(
    named: dict[str, Any], provenance: list[list[int]], by: list[str]
) -> None:
    content = ["service", "web", "n01", 5, False, [], named, provenance, by]

    body = with_section(2, msgspec.msgpack.encode(content))

    assert decode(body, CODEC, "n01") == Reject(FrameFault.SECTION)


def test_what_is_too_long_is_cut_and_says_so() -> None:
    digest, module = "ä" * 40, "m" * 40
    seen = SeenValue(digest, True, Method.READ, 1, module)
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(WEB, 1, {"applied": seen}),))

    (update,) = read(encode(told, CODEC, SCHEMA)).updates

    cut = SeenValue("ä" * 30 + "…", True, Method.READ, 1, "m" * 29 + "…")
    assert update == ObservedUpdate(WEB, 1, {"applied": cut})
    assert len(cut.value.encode()) <= VALUE_BYTES_MAX
    assert len(cut.by.encode()) == BY_BYTES_MAX


def test_words_on_where_an_entity_stands_are_cut_to_their_room() -> None:
    standing = Standing(Condition.STUCK, 5, "ä" * 90, "e" * 200)
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(WEB, 1, {}, standing=standing),))

    (update,) = read(encode(told, CODEC, SCHEMA)).updates

    cut = Standing(Condition.STUCK, 5, "ä" * 78 + "…", "e" * (WORDS_BYTES_MAX - 3) + "…")
    assert update == ObservedUpdate(WEB, 1, {}, standing=cut)


def test_of_words_that_are_cut_it_is_kept_that_something_was_given_up() -> None:
    given_up = "; given up after 6 attempts, for 30 min"
    standing = Standing(Condition.STUCK, 5, "ä" * 90 + given_up, "e" * 200 + given_up * 3)
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(WEB, 1, {}, standing=standing),))

    (update,) = read(encode(told, CODEC, SCHEMA)).updates

    room = WORDS_BYTES_MAX - len(given_up) - 3
    why, error = "ä" * (room // 2) + "…" + given_up, "e" * room + "…" + given_up
    cut = Standing(Condition.STUCK, 5, why, error)
    assert update == ObservedUpdate(WEB, 1, {}, standing=cut)


@pytest.mark.parametrize("age_ms", [AGE_MS_MAX + 1, 2**63, 2**64 - 1])
def test_an_age_that_no_time_has_room_for_is_refused(age_ms: int) -> None:
    """So long ago, in nanoseconds, is no time that a parent could keep or tell."""
    seen = {"run": SeenValue("running", True, Method.READ, age_ms, "service")}
    standing = Standing(Condition.CONVERGED, age_ms)
    for update in (ObservedUpdate(WEB, 1, seen), ObservedUpdate(WEB, 1, {}, standing=standing)):
        (body,) = encode(msgspec.structs.replace(HELLO, updates=(update,)), CODEC, SCHEMA)
        assert decode(body, CODEC, "n01") == Reject(FrameFault.SECTION)


def test_a_note_is_cut_to_its_size_and_one_that_finds_no_room_is_left_out() -> None:
    codec = Codec([wide_kind(10)], SCHEMA)
    entity = EntityId("wide", "w", "n01")
    words = "ä" * 90
    values = {
        f"level-{at}": SeenValue("low-enough-for-anything", True, Method.READ, 0, "by", words)
        for at in range(10)
    }
    standing = Standing(Condition.STUCK, 5, words, "e" * 200)
    update = ObservedUpdate(entity, 1, values, standing=standing)
    told = msgspec.structs.replace(HELLO, updates=(update,))

    (body,) = encode(told, codec, SCHEMA)
    (heard,) = read([body], codec).updates

    assert isinstance(heard, ObservedUpdate)
    notes = [heard.values[name].note for name in sorted(values)]
    told_whole = [one for one in notes if one == "ä" * 48 + "…"]
    assert NOTE_BYTES_MAX - 1 <= len(told_whole[0].encode()) <= NOTE_BYTES_MAX
    assert notes == [*told_whole, notes[len(told_whole)], *[None] * (9 - len(told_whole))]
    assert BODY_BYTES_MAX - NOTE_BYTES_MAX < len(body) <= BODY_BYTES_MAX


def test_what_a_later_sender_tells_besides_is_left_aside() -> None:
    content = ["service", "web", "n01", 5, False, [], {}, [], [], None, {}, "news"]

    assert decode(with_section(2, msgspec.msgpack.encode(content)), CODEC, "n01") == (
        msgspec.structs.replace(HELLO, updates=(ObservedUpdate(WEB, 5, {}),))
    )


def test_a_sender_that_says_nothing_of_where_an_entity_stands_is_read() -> None:
    content = ["service", "web", "n01", 5, False, [], {}, [], []]

    assert decode(with_section(2, msgspec.msgpack.encode(content)), CODEC, "n01") == (
        msgspec.structs.replace(HELLO, updates=(ObservedUpdate(WEB, 5, {}),))
    )


def test_only_so_many_who_saw_an_entity_are_told_by_name() -> None:
    codec = Codec([wide_kind(10)], SCHEMA)
    entity = EntityId("wide", "w", "n01")
    values = {
        f"level-{at}": SeenValue("low-enough-for-anything", True, Method.READ, 0, f"by-{at}")
        for at in range(10)
    }
    told = msgspec.structs.replace(HELLO, updates=(ObservedUpdate(entity, 1, values),))

    (update,) = read(encode(told, codec, SCHEMA), codec).updates

    assert isinstance(update, ObservedUpdate)
    assert [seen.by for seen in update.values.values()] == [
        *(f"by-{at}" for at in range(7)),
        *"…" * 3,
    ]


def test_what_is_unknown_is_not_told_and_takes_no_room() -> None:
    names = [("UNKNOWN", "unknown"), ("LOW", "low"), ("HIGH", "high")]
    levels: type[StrEnum] = StrEnum("Level", names)
    numbers = {level: number for number, level in enumerate(levels)}
    Codec([Kind("k", tuple(Variable("k", f"v{at}", levels, numbers) for at in range(20)))], SCHEMA)


def test_desires_that_fit_only_when_packed_are_not_told_to_who_does_not_read_them() -> None:
    kind = wide_kind(40)
    codec = Codec([kind], SCHEMA)
    told = msgspec.structs.replace(HELLO, updates=(most_desired(kind),))

    assert read(encode(told, codec, OTHER.schema), codec) == HELLO
    assert len(read(encode(told, codec, SCHEMA), codec).updates) == 1


def test_a_fragment_has_these_very_bytes_and_an_earlier_reader_skips_its_section() -> None:
    kind = wide_kind(80)
    codec = Codec([kind], SCHEMA)
    standing = Standing(Condition.STUCK, 1, "dead")
    values = most_observed(kind).values
    whole = ObservedUpdate(EntityId("wide", "w", "n01"), 5, values, standing=standing)
    message = msgspec.structs.replace(HELLO, updates=(whole,))

    bodies = encode(message, codec, SCHEMA)

    section = (
        b"\x07\x00\x23\x92\x50"  # of 80 values,
        b"\x9b\xa4wide\xa1w\xa3n01\x05\xc2\x90\x80\x90\x90"  # none,
        b"\x94\xa5stuck\x01\xa4dead\xc0\x80"
    )
    (hello,) = encode(HELLO, CODEC, SCHEMA)
    assert bodies[0].startswith(hello + section)
    fragments = read(bodies, codec).updates
    assert [isinstance(one, ObservedFragment) and len(one.values) for one in fragments] == [
        0,
        40,
        40,
    ]
    earlier = hello + b"\xc8" + section[1:]
    assert decode(earlier, codec, "n01") == HELLO


@pytest.mark.parametrize(
    ("named", "by"),
    [
        ({"v" * 200: ["failed", True, "read"]}, "service"),
        ({"run": ["f" * 65, True, "read"]}, "service"),
        ({"run": ["failed", True, "read"]}, "s" * 33),
    ],
)
def test_a_fragment_that_says_more_than_anybody_tells_is_refused(
    named: dict[str, Any], by: str
) -> None:
    observed = ["service", "web", "n01", 5, False, [], named, [[1, 0]], [by]]
    body = with_section(7, msgspec.msgpack.encode([2, observed]))

    assert decode(body, CODEC, "n01") == Reject(FrameFault.SECTION)


@pytest.mark.parametrize("count", [-1, VARIABLES_MAX + 1, "2"])
def test_a_fragment_of_so_many_is_refused(count: int | str) -> None:
    observed = ["service", "web", "n01", 5, False, [], {}, [], []]
    body = with_section(7, msgspec.msgpack.encode([count, observed]))

    assert decode(body, CODEC, "n01") == Reject(FrameFault.SECTION)


@settings(max_examples=100)
@given(MESSAGES, st.data())
def test_bytes_that_were_changed_are_read_or_refused(message: Message, data: st.DataObject) -> None:
    body = bytearray(encode(message, CODEC, SCHEMA)[0])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(body)))

    assert isinstance(decode(bytes(body), CODEC, "n01"), Message | Reject)
    assert isinstance(decode(bytes(body[:cut]), CODEC, "n01"), Message | Reject)


@settings(max_examples=300)
@given(st.sampled_from([1, 2, 3, 5, 7]), st.binary(max_size=80))
def test_any_bytes_in_a_section_are_read_or_refused(section: int, content: bytes) -> None:
    result = decode(with_section(section, content), CODEC, "n01")

    assert isinstance(result, Message) or result == Reject(FrameFault.SECTION)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_message_or_refused(noise: bytes) -> None:
    assert isinstance(decode(noise, CODEC, "n01"), Message | Reject)
