"""Connections at once: bounded in all and for each address, where who waits gives way."""

from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Final

# The owner of one address of IPv6 has the 64 bits behind it too.
_OWN_BITS: Final = 64


class Guest:
    """One connection: it waits until it has asked for something, and again between requests."""

    __slots__ = ("drop", "place")

    def __init__(self, place: str) -> None:
        """`drop` ends it; to be set as soon as there is something to end."""
        self.place = place
        self.drop: Callable[[], object] = lambda: None


class Crowd:
    """The connections of one listening socket.

    A new one is always let in while somebody waits who can give way: of the same place where that
    has its share already, else whoever has waited for longest. `counts` says how often.
    """

    def __init__(self, all_max: int, counts: Counter[str]) -> None:
        self._all_max = all_max
        self._each_max = max(1, all_max // 2)
        self._present: set[Guest] = set()
        self._of_place: Counter[str] = Counter()
        self._waiting: dict[Guest, None] = {}
        self.counts = counts

    def join(self, address: str) -> Guest | None:
        """Let a connection in, which waits from now on; None where nobody can give way to it."""
        place = place_of(address)
        if not self._make_room(place):
            self.counts["refused"] += 1
            return None
        guest = Guest(place)
        self._present.add(guest)
        self._of_place[place] += 1
        self._waiting[guest] = None
        return guest

    def serve(self, guest: Guest) -> None:
        """It has asked for something: it does not give way until it waits again."""
        self._waiting.pop(guest, None)

    def wait(self, guest: Guest) -> None:
        """It has its answer, and may ask again."""
        if guest in self._present:
            self._waiting[guest] = None

    def leave(self, guest: Guest) -> None:
        """The connection is over, for whatever reason."""
        if guest not in self._present:
            return
        self._present.discard(guest)
        self._waiting.pop(guest, None)
        self._of_place[guest.place] -= 1
        if not self._of_place[guest.place]:
            del self._of_place[guest.place]

    def _make_room(self, place: str) -> bool:
        """Whether one more of this place fits, or somebody gave way to it."""
        if self._of_place[place] >= self._each_max:
            oldest = next((one for one in self._waiting if one.place == place), None)
        elif len(self._present) >= self._all_max:
            oldest = next(iter(self._waiting), None)
        else:
            return True
        if oldest is None:
            return False
        self.counts["gave way"] += 1
        self.leave(oldest)
        oldest.drop()
        return True


def place_of(address: str) -> str:
    """Whose address it is, as far as an address tells: all of one network of 64 bits are one's.

    >>> place_of("192.0.2.1"), place_of("2001:db8::1:2"), place_of("a process")
    ('192.0.2.1', '2001:db8::', 'a process')
    """
    if ":" not in address:  # most, and thousands at once when a parent starts
        return address
    try:
        known = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(IPv6Address(int(known) >> _OWN_BITS << _OWN_BITS))
