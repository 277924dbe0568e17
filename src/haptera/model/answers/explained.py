"""The reasons for a chain, or what can be had where there is none, on request."""

import msgspec


class Alternative(msgspec.Struct, frozen=True, gc=False):
    """Another chain: all that it costs, and those of its parts that make the difference.

    `text` says what keeps it from being taken, or what it does without.
    """

    text: str
    cost: int
    parts: list[str]


class Nearest(msgspec.Struct, frozen=True, gc=False):
    """What of the goal can be had, at what cost, and by which parts."""

    values: dict[str, str]
    cost: int
    parts: list[str]


class Explained(msgspec.Struct, frozen=True, gc=False):
    """Of a chain: what it costs, what each of its links is for, the runner-up, and a cheaper one.

    The runner-up is the cheapest chain that does without one of the parts; there is `no_other`
    where it is proven that each of them is needed. Of no chain: what is nearest, and `offers`,
    which modules would help that are not there. What is `cut_short` may be more, or cheaper: it
    would have taken too long to find out.
    """

    cost: int | None = None
    so_that: list[str | None] = []
    runner_up: Alternative | None = None
    no_other: bool = False
    cheaper: Alternative | None = None
    nearest: Nearest | None = None
    offers: list[str] = []
    cut_short: bool = False
