"""A machine that a provider makes for a pool: a numbered place, filled or not.

All places of a pool are declared from its beginning. So whatever a provider lists as this
cluster's is one of them, also after a crash, and what should not be there is destroyed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.model.declared.schema import Attribute, Kind, Plain, Variable
from haptera.model.entity import check_name
from haptera.model.policy import GIVEN_UP


class Exist(StrEnum):
    """Whether the provider lists it, and whether an instance that was created is gone again."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    PRESENT = "present"


class RefusalCause(StrEnum):
    """What a provider refuses an instance for. They last differently, and concern others."""

    QUOTA = "quota"  # the account has as many as it may have
    CAPACITY = "capacity"  # the provider has none to give, of one size, of a family, of any
    RATE = "rate"  # it was asked too often
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An instance that was refused: what for, when, and what of.

    `size` and `family` say what it concerns: None for both, all that one may ask for. `living`
    were there, or on their way, at that time. `until_ns` is when the provider may be asked again,
    where it says so.
    """

    cause: RefusalCause
    text: str
    at_ns: int
    until_ns: int | None = None
    size: str | None = None
    family: str | None = None
    living: int = 0

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class RefusalWords:
    """What a provider's module says where it refuses, as text: `capacity of size: none left`.

    What the engine adds to a module's words, of when it is tried again, is left out.

    >>> str(RefusalWords(RefusalCause.RATE, "slow down", after_ms=1500))
    'rate, again in 1500 ms: slow down'
    >>> RefusalWords.parse("create: rate, again in 1500 ms: slow down").after_ms
    1500
    >>> RefusalWords.parse("capacity of family: no more of these").scope
    'family'
    >>> RefusalWords.parse("quota: 3 at most; given up after 1 attempt, for 1 h").text
    '3 at most'
    >>> RefusalWords.parse("whatever").cause
    <RefusalCause.OTHER: 'other'>
    """

    cause: RefusalCause
    text: str
    scope: str | None = None
    after_ms: int | None = None

    def __str__(self) -> str:
        scope = "" if self.scope is None else f" of {self.scope}"
        after = "" if self.after_ms is None else f", again in {self.after_ms} ms"
        return f"{self.cause}{scope}{after}: {self.text}"

    @classmethod
    def parse(cls, text: str) -> "RefusalWords":
        """What these words say; of words that say nothing of the kind, OTHER."""
        at = _BEGINS.search(text)
        found = None if at is None else _WORDS.fullmatch(text, at.start())
        if found is None:
            return cls(RefusalCause.OTHER, text)
        after = found["after"]
        after_ms = None if after is None else int(after)
        return cls(RefusalCause(found["cause"]), found["text"], found["scope"], after_ms)

    def refusal(self, size: str, family: str, living: int, now: int) -> Refusal:
        """Its consequence for a request of such a size now."""
        until = None if self.after_ms is None else now + self.after_ms * 1_000_000
        return Refusal(
            self.cause,
            str(self),
            now,
            until,
            size=size if self.scope == "size" or self.cause is RefusalCause.OTHER else None,
            family=family if self.scope == "family" else None,
            living=living,
        )


def attributes_note(attributes: Mapping[str, str]) -> str:
    """The attributes of the node that an instance is, as its look notes them.

    >>> attributes_note({"platform": "labnode", "address": "127.7.101.1"})
    'platform=labnode address=127.7.101.1'
    """
    return " ".join(f"{name}={value}" for name, value in attributes.items())


def noted_attributes(note: str) -> dict[str, str]:
    """What such a note says; words that are no attributes say nothing.

    >>> noted_attributes("platform=labnode address=127.7.101.1")
    {'platform': 'labnode', 'address': '127.7.101.1'}
    """
    pairs = (word.partition("=") for word in note.split())
    return {name: value for name, equals, value in pairs if equals and name and value}


_BEGINS: Final = re.compile(r"\b(?:quota|capacity|rate)\b")
_WORDS: Final = re.compile(
    r"(?P<cause>quota|capacity|rate)(?: of (?P<scope>size|family))?"
    r"(?:, again in (?P<after>[0-9]{1,9}) ms)?: (?P<text>.*?)"
    rf"(?:{GIVEN_UP}.*)?",
    re.DOTALL,
)

exist = Variable("instance", "exist", Exist, {Exist.UNKNOWN: 0, Exist.ABSENT: 1, Exist.PRESENT: 2})

# Which module makes it.
provider = Attribute("instance", "provider", wide=True)
pool = Attribute("instance", "pool", wide=True)

# What tells this cluster's instances from all others at the provider.
owner = Attribute("instance", "owner", size_bytes_max=128, wide=True)
# Where the provider is asked, as its module understands it.
at = Attribute("instance", "at", size_bytes_max=128, wide=True)
# When it was asked for, in seconds since 1970; until it has asked for work for the first time.
asked_s = Attribute("instance", "asked_s", size_bytes_max=20)

# The name of one of its pool's sizes.
size = Plain("instance", "size", str, 64, check_name)

kind = Kind(
    "instance",
    (exist,),
    (provider, pool, owner, at, asked_s),
    plain=(size,),
    of_cluster=True,
    count_max=None,
)
