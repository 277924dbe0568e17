from collections.abc import Callable

import pytest
from audit import Process, WrongError, audit

FEED, LATER_FEED = Process("feed", 0, 1, 1), Process("feed", 0, 2, 1)
ONE, TWO, THREE = (Process("reflector", rank, 1, 1) for rank in range(3))
MOVED, LATER = Process("reflector", 1, 1, 2), Process("reflector", 1, 2, 1)
OUT = Process("out", 0, 1, 1)
# The first shim is killed before its third message is heard.
INPUTS = [
    "1 feed.0 1 1 0 a",
    "2 feed.0 1 2 0 b x y",
    "3 feed.0 2 1 0 a",
    "4 feed.0 2 2 0 b",
    "5 feed.0 2 3 0 d z",
]


def records() -> dict[Process, list[str]]:
    """Three replicas, of which one begins again, between two shims and another one."""
    return {
        FEED: ["a", "b", "c"],
        LATER_FEED: ["a", "b", "d"],
        ONE: ["start 0", *INPUTS],
        TWO: ["start 0", *INPUTS[:2]],
        MOVED: [],
        LATER: ["start 3", *INPUTS[3:]],
        THREE: ["start 0", *INPUTS],
        OUT: [
            "start 0",
            "1 reflector 0 1 1 x",
            "2 reflector 0 2 1 y",
            "3 reflector 0 3 2 z",
        ],
    }


def test_what_was_given_once_and_in_order_holds() -> None:
    assert audit(records()) == (
        "5 messages of 2 shims to the reflectors, 3 of 2 leaders from them: each once, and in order"
    )


Records = dict[Process, list[str]]
PLANTED: dict[str, Callable[[Records], object]] = {
    "a message is lost to one": lambda seen: seen[ONE].pop(2),
    "a message is given twice": lambda seen: seen[ONE].insert(2, seen[ONE][2]),
    "two messages change places": lambda seen: seen[ONE].insert(3, seen[ONE].pop(2)),
    "one does not come to the end": lambda seen: seen[THREE].pop(),
    "one has not begun": lambda seen: seen[THREE].clear(),
    "one begins behind its state": lambda seen: seen[LATER].pop(1),
    "one is given another message": lambda seen: seen[ONE].__setitem__(2, "2 feed.0 1 2 0 q x y"),
    "one says another thing": lambda seen: seen[ONE].__setitem__(2, "2 feed.0 1 2 0 b x q"),
    "an output is lost": lambda seen: seen[OUT].pop(),
    "an output is altered": lambda seen: seen[OUT].__setitem__(2, "2 reflector 0 2 1 q"),
    "an output is there twice": lambda seen: seen[OUT].append("4 reflector 0 3 2 z"),
    "an old leader speaks": lambda seen: seen[OUT].__setitem__(1, "1 reflector 0 1 9 x"),
    "the last of a shim is lost": lambda seen: seen[LATER_FEED].append("e"),
    "all lose one in the middle of a shim": lambda seen: seen[LATER_FEED].insert(1, "e"),
    "a shim says what none of it said": lambda seen: seen.pop(FEED),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_lost_doubled_or_altered_is_seen(what: str) -> None:
    seen = records()
    PLANTED[what](seen)
    with pytest.raises(WrongError):
        audit(seen)
