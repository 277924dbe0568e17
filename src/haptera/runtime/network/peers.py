"""The other end of a connection, by its own word, and who of a machine is let in."""

import grp
import os
import pwd
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from haptera.kinds.meaning import check_selector
from haptera.model.errors import HapteraError
from haptera.runtime.identity.tokens import Bearer, Scope
from haptera.selectors.selector import parse_selector

# From <asm-generic/socket.h>; Python does not name it.
_SO_PEERGROUPS: Final = 59
# All that Python takes: who is in more than 256 groups is known by the first alone.
_GROUPS_BYTES_MAX: Final = 1024
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
_ROOT: Final = 0
_HOW: Final = "write USER=SCOPE, @GROUP=SCOPE or USER=SCOPE:SELECTOR, as eve=write:rack1n*"


@dataclass(frozen=True, slots=True)
class UnixPeer:
    """A process of this machine: whose it is, and in which groups.

    One that is `confined`, as modules are, is let in by no user that it has.
    """

    uid: int
    groups: frozenset[int]
    confined: bool = False

    def __str__(self) -> str:
        return user_name(self.uid)


@dataclass(frozen=True, slots=True)
class CertifiedPeer:
    """Somebody whose certificate stands for a token of this cluster, by its id."""

    cluster: UUID
    token: str

    def __str__(self) -> str:
        return f"the certificate of {self.token}"


Peer = UnixPeer | CertifiedPeer


@dataclass(frozen=True, slots=True)
class PeerRule:
    """A user, or the members of a group, may do so much; within a selector, or everywhere."""

    uid: int | None
    gid: int | None
    scope: Scope
    within: str | None

    def means(self, peer: UnixPeer) -> bool:
        return peer.uid == self.uid or self.gid in peer.groups


@dataclass(frozen=True, slots=True)
class PeerRules:
    """Root and this process's own user may do everything; of others, who a rule lets in."""

    own: int
    rules: tuple[PeerRule, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Those that are written so, the first that means somebody counts.

        Raises:
            HapteraError: one is no rule, or there is no such user or group.
        """
        return cls(os.getuid(), tuple(_parse(text) for text in texts))

    def bearer(self, peer: UnixPeer) -> Bearer | None:
        """What somebody may do; None where no rule lets them in."""
        if peer.confined:
            return None
        name = user_name(peer.uid)
        if peer.uid in (_ROOT, self.own):
            return Bearer(name, Scope.ADMIN)
        rule = next((one for one in self.rules if one.means(peer)), None)
        return None if rule is None else Bearer(name, rule.scope, rule.within)


def unix_peer(connection: socket.socket) -> UnixPeer:
    """Who opened the other end of a connection, as they were then."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(packed)
    try:
        listed = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _GROUPS_BYTES_MAX)
    except OSError:
        listed = b""
    groups = frozenset({gid, *(one for (one,) in struct.iter_unpack("I", listed))})
    return UnixPeer(uid, groups, _is_confined(str(pid)) and not _is_confined("self"))


def _is_confined(process: str) -> bool:
    """Whether a process can never have more privileges; one that is gone is taken for such a one.

    Modules are so, with all that they start, and cannot take it back.
    """
    try:
        return b"NoNewPrivs:\t0\n" not in Path(f"/proc/{process}/status").read_bytes()
    except OSError:
        return True


def user_name(uid: int) -> str:
    """A user's name; one that has none is called by the number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid{uid}"


def _parse(text: str) -> PeerRule:
    who, _, what = text.partition("=")
    allowed, colon, within = what.partition(":")
    if not who or allowed not in set(Scope):
        scopes = ", ".join(Scope)
        raise HapteraError(f"{text!r} is not a valid rule", do=f"{_HOW}; scopes are {scopes}")
    if not colon:
        return PeerRule(*_numbers(who), Scope(allowed), None)
    selector = check_selector(parse_selector(within))
    if not selector.by_name:
        raise HapteraError(f"{text!r} selects by state; limit access by names", do=_HOW)
    return PeerRule(*_numbers(who), Scope(allowed), selector.text)


def _numbers(who: str) -> tuple[int | None, int | None]:
    """The user's number or the group's."""
    name = who.removeprefix("@")
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 11 else None
    try:
        if who != name:
            return None, grp.getgrnam(name).gr_gid if number is None else number
        return pwd.getpwnam(name).pw_uid if number is None else number, None
    except KeyError:
        raise HapteraError(f"there is no {who} on this machine", do=_HOW) from None
