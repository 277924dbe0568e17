"""The transitive closure of a graph whose edges may start at any of a set of nodes."""

from collections.abc import Sequence

from haptera.planner.domain.bitsets import numbers, transposed

# From any of these places, a bit for each, to one, by its number, at this cost.
Way = tuple[int, int, int]


def transitive_closure(ways: Sequence[Way], count: int) -> list[int]:
    """For each of so many places, a bit for each that can be come to from it; it is one of them.

    Places that can be come to from each other are gone through together, what lies ahead first.
    """
    onward = transposed([sources for sources, *_ in ways], count)
    into = [0] * count
    for number, (_, target, _) in enumerate(ways):
        into[target] |= 1 << number
    found, covered = [0] * count, [0] * count
    for circle in reversed(_circles(ways, _left(ways, onward))):
        within, out, inward = circle, 0, 0
        for place in numbers(circle):
            out |= onward[place]
            inward |= into[place]
        while ahead := out & ~inward:  # Of those ways that lead to nothing new none is followed.
            _, target, _ = ways[ahead.bit_length() - 1]
            within |= found[target]
            inward |= covered[target]
        for place in numbers(circle):
            found[place], covered[place] = within, inward
    return found


def _left(ways: Sequence[Way], onward: Sequence[int]) -> list[int]:
    """The places in the order in which one that goes as far as it can leaves them for good."""
    left: list[int] = []
    fresh, untried = (1 << len(onward)) - 1, (1 << len(ways)) - 1
    for place in range(len(onward)):
        trail = [place] if fresh >> place & 1 else []
        fresh &= ~(1 << place)
        while trail:
            if not (some := onward[trail[-1]] & untried):
                left.append(trail.pop())
                continue
            first = some & -some
            untried ^= first
            _, target, _ = ways[first.bit_length() - 1]
            if fresh >> target & 1:
                fresh ^= 1 << target
                trail.append(target)
    return left


def _circles(ways: Sequence[Way], left: Sequence[int]) -> list[int]:
    """Places that can be come to from each other, a word each; before those that lie ahead."""
    into: list[list[int]] = [[] for _ in left]
    for sources, target, _ in ways:
        into[target].append(sources)
    circles: list[int] = []
    fresh = (1 << len(left)) - 1
    for place in reversed(left):
        circle, new = 0, fresh & 1 << place
        while new:
            first = new & -new
            circle |= first
            fresh &= ~first
            new ^= first
            for sources in into[first.bit_length() - 1]:
                new |= sources & fresh
        if circle:
            circles.append(circle)
    return circles
