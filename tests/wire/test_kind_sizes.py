"""What is desired fits one datagram, and what was observed is told whole, however much that is."""

from enum import StrEnum
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.declared.schema import (
    DECLARED_NAME_BYTES_MAX,
    DIGEST_BYTES_MAX,
    VARIABLES_MAX,
    WORD_BITS,
    Applied,
    Attribute,
    Extension,
    Kind,
    Plain,
    Variable,
    digest,
    extend,
)
from haptera.model.declared.told_bytes import ENTITY_BYTES_MAX, check_size
from haptera.model.entity import NAME_BYTES_MAX, EntityId
from haptera.model.errors import HapteraError, LimitError
from haptera.model.facts import Method
from haptera.model.messages import (
    DesiredUpdate,
    ObservedFragment,
    ObservedUpdate,
    SeenValue,
    Standing,
)
from haptera.model.walltime import AGE_MS_MAX
from haptera.wire.frame import CONTENT_BYTES_MAX
from haptera.wire.updates import (
    BY_BYTES_MAX,
    FRAGMENT,
    NOTE_BYTES_MAX,
    OBSERVED,
    VALUE_BYTES_MAX,
    WORDS_BYTES_MAX,
    Codec,
)

MOST = (1 << 64) - 1


class Level(StrEnum):
    UNKNOWN = "unknown"
    LOW = "low-enough-for-anything"


LEVELS = {Level.UNKNOWN: 0, Level.LOW: 1}
IN_FORCE = {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2}


def entity_of(kind: Kind) -> EntityId:
    """The longest name that one can have; what is of the whole cluster is on no node."""
    node = None if kind.of_cluster else "m" * NAME_BYTES_MAX
    return EntityId(kind.name, "n" * NAME_BYTES_MAX, node)


def most_desired(kind: Kind) -> DesiredUpdate:
    """All that can be desired of an entity of this kind, each at its longest."""
    wanted: dict[str, str | int] = {}
    for variable in kind.variables:
        known = (str(value) for value in variable.numbers if value != variable.unknown)
        wanted[variable.name] = max(known, key=len)
    for plain in kind.plain:
        wanted[plain.name] = "x" * plain.size_bytes_max if plain.type is str else MOST
    attributes = {one.name: "x" * one.size_bytes_max for one in kind.attributes}
    return DesiredUpdate(entity_of(kind), MOST, wanted, attributes)


def most_observed(
    kind: Kind, note: str | None = None, digest_bytes: int = VALUE_BYTES_MAX
) -> ObservedUpdate:
    """All that can be observed of an entity of this kind, each at its longest."""
    seen: dict[str, SeenValue] = {}
    for at, variable in enumerate(kind.variables):
        value = "x" * digest_bytes
        if variable.values is not Applied:
            value = max((str(one) for one in variable.numbers if one != variable.unknown), key=len)
        by = f"{at:0{BY_BYTES_MAX}}"
        seen[variable.name] = SeenValue(value, False, Method.INFERRED, AGE_MS_MAX, by, note)
    words = "x" * WORDS_BYTES_MAX
    standing = Standing(max(Condition, key=len), AGE_MS_MAX, words, words)
    return ObservedUpdate(entity_of(kind), MOST, seen, standing=standing)


def sections(kind: Kind, update: DesiredUpdate | ObservedUpdate) -> list[tuple[int, bytes]]:
    return [*Codec([kind], 1).encode(update, 1)]


@st.composite
def declared(draw: st.DrawFn) -> Kind:
    """A kind of much that is near to what one datagram has room for."""
    number = iter(range(1_000))

    def names(count: int) -> list[str]:
        lengths = draw(st.lists(st.integers(4, 40), min_size=count, max_size=count))
        return [f"v{next(number):03}".ljust(length, "x") for length in lengths]

    levels = [Variable("k", name, Level, LEVELS) for name in names(draw(st.integers(0, 60)))]
    applied = [Variable("k", name, Applied, IN_FORCE) for name in names(draw(st.integers(0, 4)))]
    sizes = draw(st.lists(st.integers(1, 200), max_size=18))
    plain = [
        Plain("k", name, draw(st.sampled_from((str, str, int))), size)
        for name, size in zip(names(len(sizes)), sizes, strict=True)
    ]
    cut = draw(st.integers(0, len(plain)))
    attributes = tuple(Attribute("k", one.name, one.size_bytes_max) for one in plain[cut:])
    return Kind("k", (*levels, *applied), attributes, tuple(plain[:cut]))


@given(kind=declared())
def test_what_is_let_in_fits_one_datagram_and_what_is_refused_would_hardly(kind: Kind) -> None:
    update = most_desired(kind)
    ((_, content),) = sections(kind, update)
    packed = -(-kind.bits // WORD_BITS) * 9
    try:
        check_size(kind, update.entity, update.values, update.attributes)
    except LimitError:
        event("refused")
        assert len(content) + packed > ENTITY_BYTES_MAX
        return
    event(f"room left: {(ENTITY_BYTES_MAX - len(content)) // 200 * 200}")
    assert len(content) <= ENTITY_BYTES_MAX


def test_the_room_that_an_entity_has_is_a_datagrams() -> None:
    assert ENTITY_BYTES_MAX <= CONTENT_BYTES_MAX


@pytest.mark.parametrize("name", [*KINDS])
def test_all_of_our_kinds_fits_one_datagram_and_an_earlier_parent_reads_it(name: str) -> None:
    """But nodes and groups, of which all that is written is counted as it is.

    What a controller writes of its own, as a replica, must always fit. Fragments it would skip.
    """
    kind = KINDS[name]
    wanted, seen = most_desired(kind), most_observed(kind, digest_bytes=len(digest({})))
    if name not in ("node", "group"):
        check_size(kind, wanted.entity, wanted.values, wanted.attributes)
    assert [section for section, _ in sections(kind, seen)] == [OBSERVED]


@given(kind=declared(), note=st.none() | st.just("n" * NOTE_BYTES_MAX))
def test_what_was_observed_is_told_whole_in_sections_that_fit(kind: Kind, note: str | None) -> None:
    update = most_observed(kind, note)
    codec, told = Codec([kind], 1), sections(kind, update)
    event(f"sections: {len(told)}")
    assert all(len(content) <= CONTENT_BYTES_MAX for _, content in told)
    if len(told) == 1:
        assert told[0][0] == OBSERVED
        return
    seen: dict[str, Any] = {}
    standing = []
    for section, content in told:
        fragment = codec.decode(section, content, 1, "n01")
        assert section == FRAGMENT
        assert isinstance(fragment, ObservedFragment)
        assert (fragment.version, fragment.count) == (MOST, len(update.values))
        seen |= fragment.values
        standing += [] if fragment.values else [fragment.standing]
    assert standing == [update.standing]
    assert {name: (one.value, one.note) for name, one in seen.items()} == {
        name: (one.value, one.note) for name, one in update.values.items()
    }


def test_the_largest_value_of_the_longest_name_fits_a_fragment() -> None:
    name = "v" * DECLARED_NAME_BYTES_MAX
    kind = Kind("k" * NAME_BYTES_MAX, (Variable("k", name, Applied, IN_FORCE),))
    update = most_observed(kind, "n" * NOTE_BYTES_MAX)
    many = {f"{name[:-3]}{at:03}": seen for at, seen in enumerate([*update.values.values()] * 100)}
    told = [
        *Codec([kind], 1).encode(ObservedUpdate(update.entity, MOST, many, False, None), 2),
    ]
    assert len(told) > 50
    assert all(len(content) <= CONTENT_BYTES_MAX for _, content in told)


def test_what_can_never_be_told_is_refused_when_it_is_declared() -> None:
    levels = [Variable("node", f"a.v{at}", Level, LEVELS) for at in range(200)]
    more = [Variable("node", f"b.v{at}", Level, LEVELS) for at in range(50)]
    with pytest.raises(LimitError) as refused:
        extend(KINDS["node"], [Extension("a", tuple(levels)), Extension("b", tuple(more))])
    assert str(refused.value) == (
        f"kind node has 259 variables, {VARIABLES_MAX} at most: a 200, b 50, its own 8, slurm 1"
        " (declare fewer variables)"
    )
    many = StrEnum("Many", [("UNKNOWN", "unknown"), *((f"V{at}", f"v{at}") for at in range(200))])
    numbers = {one: number * 300 for number, one in enumerate(many)}
    wide = [Variable("k", f"v{at}", many, numbers) for at in range(120)]
    with pytest.raises(LimitError, match=r"its values take 2160 bits, 2048 at most: its own 2160"):
        Kind("k", tuple(wide))
    for what in (
        lambda: Kind("k", (), (Attribute("k", "a" * (DECLARED_NAME_BYTES_MAX + 1)),)),
        lambda: Kind("k" * (NAME_BYTES_MAX + 1), ()),
        lambda: Variable(
            "k",
            "v",
            StrEnum("Long", [("UNKNOWN", "unknown"), ("L", "x" * (DIGEST_BYTES_MAX + 1))]),
            {},
        ),
    ):
        with pytest.raises(HapteraError):
            what()
