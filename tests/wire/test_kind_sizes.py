"""What can be declared fits one datagram: sizes that kinds count, held to what the wire writes."""

from dataclasses import replace
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.declared.schema import Applied, Attribute, Kind, Plain, Variable, attribute_bytes
from haptera.model.declared.told_bytes import TOLD_BYTES_MAX
from haptera.model.entity import NAME_BYTES_MAX, EntityId
from haptera.model.errors import DeclarationError, HapteraError
from haptera.model.facts import Method
from haptera.model.messages import DesiredUpdate, ObservedUpdate, SeenValue, Standing
from haptera.wire.frame import CONTENT_BYTES_MAX
from haptera.wire.updates import BY_BYTES_MAX, VALUE_BYTES_MAX, WORDS_BYTES_MAX, Codec


class Level(StrEnum):
    UNKNOWN = "unknown"
    LOW = "low-enough-for-anything"


LEVELS = {Level.UNKNOWN: 0, Level.LOW: 1}
IN_FORCE = {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2}


def largest(kind: Kind) -> tuple[DesiredUpdate, ObservedUpdate]:
    """The updates of this kind that take most room; what bounds them is in the schema."""
    entity = EntityId(kind.name, "n" * NAME_BYTES_MAX, "m" * NAME_BYTES_MAX)
    most = (1 << 64) - 1
    wanted: dict[str, str | int] = {}
    seen: dict[str, SeenValue] = {}
    for at, variable in enumerate(kind.variables):
        known = (str(value) for value in variable.numbers if value != variable.unknown)
        wanted[variable.name] = longest = max(known, key=len)
        value = "x" * VALUE_BYTES_MAX if variable.values is Applied else longest
        by = f"{at:0{BY_BYTES_MAX}}"
        seen[variable.name] = SeenValue(
            value, known=False, method=Method.INFERRED, age_ms=most, by=by
        )
    for plain in kind.plain:
        wanted[plain.name] = "x" * plain.size_bytes_max if plain.type is str else most
    attributes, room = dict[str, str](), kind.attributes_bytes_max
    for one in kind.attributes:
        taken = attribute_bytes(one.name, "") if kind.extended else 0
        if taken < room:
            attributes[one.name] = "x" * min(one.size_bytes_max, room - taken)
            room -= taken + len(attributes[one.name])
    words = "x" * WORDS_BYTES_MAX
    standing = Standing(max(Condition, key=len), most, words, words)
    return (
        DesiredUpdate(entity, most, wanted, attributes),
        ObservedUpdate(entity, most, seen, standing=standing),
    )


def told_bytes(kind: Kind) -> int:
    """What the wire writes of the larger layer."""
    codec = Codec([kind], 1)
    return max(len(codec.encode(update, 1)[1]) for update in largest(kind))


@st.composite
def declared(draw: st.DrawFn) -> dict[str, Any]:
    """Things of a kind, whose sizes come near to what there is room for."""
    number = iter(range(1_000))

    def names(count: int) -> list[str]:
        lengths = draw(st.lists(st.integers(4, 40), min_size=count, max_size=count))
        return [f"v{next(number):03}".ljust(length, "x") for length in lengths]

    levels = [Variable("k", name, Level, LEVELS) for name in names(draw(st.integers(0, 12)))]
    applied = [Variable("k", name, Applied, IN_FORCE) for name in names(draw(st.integers(0, 4)))]
    sizes = draw(st.lists(st.integers(1, 400), max_size=18))
    room = draw(st.integers(400, 900))
    texts = [min(size, max(1, room // len(sizes))) for size in sizes]
    plain = [
        Plain("k", name, draw(st.sampled_from((str, str, int))), size)
        for name, size in zip(names(len(texts)), texts, strict=True)
    ]
    cut = draw(st.integers(0, len(plain)))
    attributes = [Attribute("k", one.name, one.size_bytes_max) for one in plain[cut:]]
    variables = (*levels, *applied)
    return {"variables": variables, "plain": tuple(plain[:cut]), "attributes": tuple(attributes)}


@given(things=declared())
def test_a_kind_that_can_be_declared_fits_one_datagram(things: dict[str, Any]) -> None:
    try:
        kind = Kind("k", **things)
    except HapteraError:
        event("refused")
        return
    event(f"room left: {(TOLD_BYTES_MAX - kind.told_bytes_max) // 200 * 200}")
    assert told_bytes(kind) <= kind.told_bytes_max


def test_the_room_that_kinds_count_with_is_the_datagrams() -> None:
    assert TOLD_BYTES_MAX <= CONTENT_BYTES_MAX


@pytest.mark.parametrize("name", [*KINDS])
def test_no_kind_of_ours_is_told_in_more_than_it_counts(name: str) -> None:
    kind = KINDS[name]
    assert told_bytes(kind) <= kind.told_bytes_max


def test_one_more_attribute_of_a_module_is_refused_when_it_is_declared() -> None:
    """Else a parent in the field would find it out when it starts."""
    with pytest.raises(DeclarationError) as refused:
        replace(KINDS["module"], attributes=(Attribute("module", "a", 1),))
    assert str(refused.value) == (
        "kind module can take 1039 bytes, more than one datagram's 1035"
        " (lower the sizes of its data, or keep a digest of what is large)"
    )
