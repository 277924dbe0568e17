"""The TLS handshakes that may begin now: a whole one costs some 1.5 ms of CPU."""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final

from haptera.runtime.network.crowd import place_of
from haptera.wire.bucket import Bucket

# Of one place: so many at once, and so many a second after that.
OF_PLACE: Final = (128, 32)
# Of all places that nothing is known of: as many as take a third of a core.
OF_STRANGERS: Final = (1_024, 256)
# Of all that were served before, who need not wait for those.
OF_KNOWN: Final = (4_096, 256)
# So many places are distinguished, and so many are known; the longest unused is forgotten.
PLACES_MAX: Final = 4_096
KNOWN_MAX: Final = 65_536


class Handshakes:
    """A budget for each place, one for all strangers, and one for those who are known.

    `known` are addresses that have been let in before. `counts` says how many were refused, which
    costs next to nothing: they are hung up on before anything is computed for them.
    """

    def __init__(self, counts: Counter[str], known: Iterable[str] = ()) -> None:
        self._counts = counts
        self._places: OrderedDict[str, Bucket] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._of_strangers, self._of_known = Bucket(*OF_STRANGERS), Bucket(*OF_KNOWN)
        for address in known:
            self.note_known(address)

    def admit(self, address: str, now: int) -> bool:
        """Whether this address may begin one at this time, in ns."""
        place = place_of(address)
        everybody = self._of_known if place in self._known else self._of_strangers
        admitted = self._bucket(place).take(now) and everybody.take(now)
        if not admitted:
            self._counts["too many handshakes"] += 1
        return admitted

    def note_known(self, address: str) -> None:
        """Who is there has shown to be somebody: by a certificate, or by a token."""
        place = place_of(address)
        self._known[place] = None
        self._known.move_to_end(place)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def _bucket(self, place: str) -> Bucket:
        bucket = self._places.setdefault(place, Bucket(*OF_PLACE))
        self._places.move_to_end(place)
        if len(self._places) > PLACES_MAX:
            self._places.popitem(last=False)
        return bucket
