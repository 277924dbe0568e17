"""The enrolment of a booted node: it claims its token over TLS and gets a session."""

import asyncio
import logging
import secrets
from dataclasses import dataclass, field
from typing import Final

from haptera.core.state.side import PARENT
from haptera.kinds.host_port import HostPort
from haptera.model.errors import Code, HapteraError
from haptera.model.policy import ENROLLING, Policy
from haptera.runtime.enrolment.claims import (
    EnrolmentClaim,
    EnrolmentRefusal,
    EnrolmentRefused,
    Granted,
    hear_said,
)
from haptera.runtime.identity.pki import Key, cluster_of, make_request
from haptera.runtime.identity.tokens import TOKEN_TTL_S, parse_token
from haptera.runtime.network.one_frame import pack
from haptera.runtime.network.tls import client_context, hang_up, is_parent
from haptera.runtime.processes.own_modules import OwnModule
from haptera.runtime.store.sessions import SavedSession

# One claim, from the first byte to the last.
ENROL_WITHIN_S: Final = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a boot hands to the node: where its parent is, its token, and the pinned authority."""

    address: tuple[str, int]
    token: str = field(repr=False)
    ca_pem: bytes


@dataclass(frozen=True, slots=True)
class Enrolment:
    """All that an agent got, and keeps for as long as the node is up."""

    node: str
    session: SavedSession
    certificate: bytes
    ca: bytes
    hello_ms: int
    modules: tuple[str, ...]
    own: tuple[OwnModule, ...] = ()
    parents: tuple[str, ...] = ()


async def enrol(
    invitation: Invitation,
    key: Key,
    *,
    hello_port: int,
    again: Policy = ENROLLING,
    give_up_s: float = TOKEN_TTL_S,
    local_host: str | None = None,
) -> Enrolment:
    """Claim until answered: the same key each time, so that a lost answer is given again.

    At least one try is made, and none is begun after `give_up_s`. Between two passes what `again`
    says: a rack that has booted at once does not come at once each time.

    Raises:
        HapteraError: the parent refuses the token, or did not answer while that could be good.
    """
    caller = _Caller(invitation, key, hello_port, local_host)
    where = str(HostPort(*invitation.address))
    loop = asyncio.get_running_loop()
    given_up_at = loop.time() + give_up_s
    failures = 0
    while True:
        outcome = await caller.call()
        if isinstance(outcome, Enrolment):
            return outcome
        _raise_if_final(outcome, where)
        if loop.time() >= given_up_at:
            raise HapteraError(
                f"not enrolled within {give_up_s:g} s: {outcome}",
                where=where,
                do="see that the parent serves there and is of this cluster, then boot the node",
                code=Code.UNREACHABLE,
            )
        failures += 1
        wait_s = again.wait_ms(failures, secrets.SystemRandom().random()) / 1_000
        _log.warning("enrolment at %s: %s; again in %g s", where, outcome, wait_s)
        await asyncio.sleep(wait_s)


def _raise_if_final(outcome: EnrolmentRefusal | OSError | str, where: str) -> None:
    if outcome is EnrolmentRefusal.TOKEN:
        raise HapteraError(
            "the parent refused the token",
            where=where,
            do="boot the node through its parent, which gives it a new one",
            code=Code.UNAUTHENTICATED,
        )
    if outcome is EnrolmentRefusal.CLAIM:
        raise HapteraError(
            "the parent does not understand this claim",
            where=where,
            do="run the same version of haptera on both",
            code=Code.VERSION_MISMATCH,
        )


class _Caller:
    """The same claim, as often as it is made."""

    def __init__(
        self, invitation: Invitation, key: Key, hello_port: int, local_host: str | None
    ) -> None:
        token = parse_token(invitation.token)
        if token is None:
            raise HapteraError("this is not a token", do="pass all of it: hp1.ID.SECRET")
        self._host, self._port = invitation.address
        self._cluster = cluster_of(invitation.ca_pem)
        self._context = client_context(invitation.ca_pem)
        self._local = None if local_host is None else (local_host, 0)
        self._claim = EnrolmentClaim(token, make_request(key), hello_port)

    async def call(self) -> Enrolment | EnrolmentRefusal | OSError | str:
        """Claim once; where it came to nothing, why."""
        try:
            async with asyncio.timeout(ENROL_WITHIN_S):
                return await self._converse()
        except TimeoutError:
            return f"no answer within {ENROL_WITHIN_S:g} s"
        except OSError as error:
            return error

    async def _converse(self) -> Enrolment | EnrolmentRefusal | str:
        reader, writer = await asyncio.open_connection(
            self._host, self._port, ssl=self._context, local_addr=self._local
        )
        try:
            # Before the token is shown.
            if not is_parent(writer.get_extra_info("peercert"), self._cluster):
                return f"the server that answered is not the parent of cluster {self._cluster}"
            writer.write(pack(self._claim))
            answer = await hear_said(reader)
            host = writer.get_extra_info("peername")[0]
        finally:
            hang_up(writer.transport)
        match answer:
            case Granted():
                return _enrolment(answer, host)
            case EnrolmentRefused(reason):
                return reason
            case _:
                return "the parent closed the connection without an answer"


def _enrolment(granted: Granted, host: str) -> Enrolment:
    return Enrolment(
        granted.node,
        SavedSession(PARENT, granted.agreement, (host, granted.hello_port)),
        granted.certificate,
        granted.ca,
        granted.hello_ms,
        granted.modules,
        granted.own,
        granted.parents,
    )
