"""Messages of BGP as a speaker may send them, drawn whole."""

from bgp.attributes import (
    AS_SEQUENCE,
    AS_SET,
    CLUSTER_LIST,
    LARGE_COMMUNITIES,
    LOCAL_PREF,
    MED,
    NEXT_HOP,
    OPTIONAL,
    ORIGIN,
    ORIGINATOR_ID,
    PARTIAL,
    TRANSITIVE,
    Attribute,
    Attributes,
)
from bgp.messages import (
    LONG_AS_NUMBERS,
    Capability,
    Keepalive,
    Message,
    Notification,
    Open,
    Prefix,
    RouteRefresh,
    Update,
)
from hypothesis import strategies as st

NUMBERS = st.binary(min_size=4, max_size=4)
AS_NUMBERS = st.integers(1, 2**32 - 1)
HOSTS = st.tuples(st.integers(128, 223), st.integers(0, 255)).map(lambda two: bytes((*two, 0, 1)))


def prefix(number: int, bits: int) -> Prefix:
    return Prefix((number << (32 - bits)).to_bytes(4, "big"), bits)


PREFIXES = st.integers(0, 32).flatmap(
    lambda bits: st.integers(0, 2**bits - 1).map(lambda number: prefix(number, bits))
)


def of_code(
    code: int, flags: int, values: st.SearchStrategy[bytes]
) -> st.SearchStrategy[Attribute]:
    return values.map(lambda value: Attribute(code, flags, value))


@st.composite
def paths(draw: st.DrawFn) -> bytes:
    """An AS_PATH of sequences and sets; a long one needs a length of two octets."""
    kinds = draw(st.lists(st.sampled_from([AS_SEQUENCE, AS_SET]), max_size=3))
    octets = b""
    for kind in kinds:
        members = draw(st.one_of(st.lists(AS_NUMBERS, min_size=1, max_size=4), st.just([7] * 70)))
        octets += bytes((kind, len(members))) + b"".join(one.to_bytes(4, "big") for one in members)
    return octets


OPTIONALS = [
    of_code(MED, OPTIONAL, NUMBERS),
    of_code(LOCAL_PREF, TRANSITIVE, NUMBERS),
    of_code(ORIGINATOR_ID, OPTIONAL, NUMBERS),
    of_code(CLUSTER_LIST, OPTIONAL, st.lists(NUMBERS, min_size=1, max_size=3).map(b"".join)),
    of_code(LARGE_COMMUNITIES, OPTIONAL | TRANSITIVE, st.binary(min_size=12, max_size=12)),
    of_code(200, OPTIONAL | TRANSITIVE | PARTIAL, st.binary(max_size=300)),
    of_code(201, OPTIONAL, st.binary(max_size=3)),
]


@st.composite
def attributes(draw: st.DrawFn) -> Attributes:
    """The mandatory attributes of a route, and some of the rest."""
    mandatory = (
        draw(of_code(ORIGIN, TRANSITIVE, st.sampled_from([b"\x00", b"\x01", b"\x02"]))),
        Attribute(2, TRANSITIVE, draw(paths())),
        draw(of_code(NEXT_HOP, TRANSITIVE, HOSTS)),
    )
    more = draw(st.lists(st.sampled_from(OPTIONALS), unique=True, max_size=3))
    return tuple(sorted((*mandatory, *(draw(one) for one in more))))


LISTS = st.lists(PREFIXES, max_size=5, unique=True).map(tuple)
UPDATES = st.one_of(
    st.builds(Update, LISTS, attributes(), LISTS),
    st.builds(Update, LISTS),
)
CAPABILITIES = st.lists(
    st.builds(Capability, st.sampled_from([1, 2, 64, 70]), st.binary(max_size=8)), max_size=4
)


@st.composite
def opens(draw: st.DrawFn) -> Open:
    number = draw(AS_NUMBERS)
    long = Capability(LONG_AS_NUMBERS, number.to_bytes(4, "big"))
    hold_s = draw(st.sampled_from([0, 3, 90, 65_535]))
    router_id = draw(NUMBERS.filter(any))
    return Open(number, hold_s, router_id, (*draw(CAPABILITIES), long))


CODES = st.integers(0, 255)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    opens(),
    UPDATES,
    st.builds(Notification, CODES, CODES, st.binary(max_size=30)),
    st.just(Keepalive()),
    st.builds(RouteRefresh, NUMBERS),
)
