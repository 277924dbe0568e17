"""The datagrams that wait to be opened: a short line for each peer, and the lines in turn."""

import asyncio
import socket
from collections import Counter, deque
from typing import Final

from haptera.runtime.network.muted import Muted, MutedLine
from haptera.runtime.network.peer_link import LINE_MAX, PeerLink, Waiting

# From other addresses than that on record, so many wait: see LINE_MAX.
LINE_ELSEWHERE_MAX: Final = 64
# The time for which a flooded line is not read.
MUTED_S: Final = 0.5


class DatagramLines:
    """The lines of all peers of one socket; `counts` says what was lost of them."""

    def __init__(self, bound: socket.socket, counts: Counter[str]) -> None:
        # Links with something that waits to be opened, each once.
        self._turns: deque[PeerLink] = deque()
        self._muted = Muted(bound)
        self._counts = counts

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, link: PeerLink, waiting: Waiting, now: int) -> None:
        """Line it up, as the newest; the oldest there loses its place to it, where that is full."""
        lines, is_elsewhere = link.lines, waiting[1][:2] != link.address
        if not lines.record and not lines.elsewhere:
            self._turns.append(link)
        line, most = (
            (lines.elsewhere, LINE_ELSEWHERE_MAX) if is_elsewhere else (lines.record, LINE_MAX)
        )
        line.append(waiting)
        if len(line) > most:
            del line[0]
            self._counts["beyond its share"] += 1
            self._note_lost(link, is_elsewhere=is_elsewhere, now=now)

    def pop(self) -> tuple[PeerLink, Waiting]:
        """The next one, of the peer whose turn it is."""
        link = self._turns.popleft()
        lines = link.lines
        waiting = (lines.record or lines.elsewhere).pop(0)
        if lines.record or lines.elsewhere:
            self._turns.append(link)
        return link, waiting

    def remove(self, link: PeerLink) -> None:
        """Open nothing more of this peer."""
        if link.lines.record or link.lines.elsewhere:
            self._turns.remove(link)

    def _note_lost(self, link: PeerLink, *, is_elsewhere: bool, now: int) -> None:
        """Take nothing of a line for a while that loses too much; hellos repair the rest.

        Not so where others send in the name of a peer: by that they would silence it.
        """
        lines = link.lines
        if (lines.lost_elsewhere if is_elsewhere else lines.lost).take(now):
            return
        line = MutedLine(link.session.own_index, *link.address, is_elsewhere)
        if (is_elsewhere or lines.authentic > 0) and self._muted.add(line):
            self._counts["muted"] += 1
            asyncio.get_running_loop().call_later(MUTED_S, self._muted.remove, line)
