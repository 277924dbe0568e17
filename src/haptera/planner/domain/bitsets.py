"""Bitsets: integers as sets of numbers, one for each bit that is set."""

from collections.abc import Iterator, Sequence


def each(word: int) -> Iterator[int]:
    """The bits that are set, one by one, the lowest first.

    >>> list(each(0b10010))
    [2, 16]
    """
    while word:
        lowest = word & -word
        yield lowest
        word ^= lowest


def numbers(word: int) -> Iterator[int]:
    """The bits that are set, by number, from the lowest.

    >>> list(numbers(0b10010))
    [1, 4]
    """
    # A loop of its own: through `each`, what goes through most bits would take twice the calls.
    while word:
        lowest = word & -word
        yield lowest.bit_length() - 1
        word ^= lowest


def transposed(words: Sequence[int], count: int) -> list[int]:
    """For each of so many bits, the numbers of the words in which it is set.

    Words are gone through by size, for then most differ from the one before in few bits, and only
    these take time.

    >>> transposed([0b01, 0b11, 0b00], 2)
    [3, 2]
    """
    alike: dict[int, int] = {}
    for number, word in enumerate(words):
        alike[word] = alike.get(word, 0) | 1 << number
    columns = [0] * count
    last, left = 0, (1 << len(words)) - 1
    for word, same in sorted(alike.items()):
        for number in numbers(word ^ last):
            columns[number] ^= left
        last, left = word, left ^ same
    return columns
