"""Thousands of datagrams that somebody recorded, turned round, changed or made up: none counts."""

import random
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from haptera.daemon.parts import HELLO_PORT
from haptera.wire.frame import DATAGRAM_BYTES_MAX, HEADER_BYTES
from tests.attacks.rig import STRANGER_HOST, Attacked
from tests.faults.rig import PARENT_HOST, WEB, Child
from tests.kills.processes import wait_for

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

PLACE = (PARENT_HOST, HELLO_PORT)
SEED = 1
EACH = 1_000
# After so many the parent has its turn; its socket holds more.
BURST = 200
REFUSED_WITHIN_S = 60
RECEIVER = slice(4, 8)
BOOT = slice(8, 16)
SEQUENCE = slice(16, 24)


def lies(child: Child) -> list[bytes]:
    """What the node's own key sealed and nobody has sent: in force, it would be seen."""
    return [
        child.session.seal(body)
        for _ in range(8)
        for body in child._bodies(*child._reporting(WEB, {"run": "failed"}))
    ]


def replayed(attacked: Attacked, rng: random.Random) -> Iterator[bytes]:
    for _ in range(EACH):
        yield rng.choice(attacked.first.sent + attacked.second.sent)


def reflected(attacked: Attacked, rng: random.Random) -> Iterator[bytes]:
    """The parent's own, sent back; also as if they were for it."""
    for _ in range(EACH):
        child = rng.choice((attacked.first, attacked.second))
        datagram = rng.choice(child.heard)
        sent = rng.choice(child.sent)
        yield rng.choice((datagram, with_part(datagram, RECEIVER, sent[RECEIVER])))


def crossed(attacked: Attacked, rng: random.Random) -> Iterator[bytes]:
    """One node's word in another's name: only the clear part can be changed."""
    own = lies(attacked.first)
    for _ in range(EACH):
        other = rng.choice(attacked.second.sent)
        datagram = with_part(rng.choice(own), RECEIVER, other[RECEIVER])
        if rng.random() < 0.5:
            datagram = with_part(datagram, BOOT, other[BOOT])
        yield datagram


def mutated(attacked: Attacked, rng: random.Random) -> Iterator[bytes]:
    """Sealed by the node itself, and then changed anywhere: by bits, by length, by numbers."""
    own = lies(attacked.first)
    for _ in range(3 * EACH):
        datagram = bytearray(rng.choice(own))
        match rng.randrange(5):
            case 0:
                del datagram[rng.randrange(len(datagram)) :]
            case 1:
                datagram += rng.randbytes(rng.randint(1, DATAGRAM_BYTES_MAX))
            case 2:
                datagram[SEQUENCE] = rng.getrandbits(63).to_bytes(8, "big")
            case 3:
                at = rng.randrange(HEADER_BYTES)
                datagram[at] ^= 1 << rng.randrange(8)
            case _:
                for _ in range(rng.randint(1, 8)):
                    at = rng.randrange(len(datagram))
                    datagram[at] ^= rng.randint(1, 255)
        if bytes(datagram) not in own:
            yield bytes(datagram[:65_000])


def made_up(attacked: Attacked, rng: random.Random) -> Iterator[bytes]:
    header = attacked.first.sent[-1][:HEADER_BYTES]
    for _ in range(EACH):
        noise = rng.randbytes(rng.randrange(DATAGRAM_BYTES_MAX))
        yield rng.choice((noise, header + noise, with_part(header, BOOT, rng.randbytes(8)) + noise))


def with_part(datagram: bytes, where: slice, part: bytes) -> bytes:
    changed = bytearray(datagram)
    changed[where] = part
    return bytes(changed)


@pytest.mark.parametrize("attack", [replayed, reflected, crossed, mutated, made_up])
def test_no_datagram_counts_that_its_node_has_not_sent_once(attacked: Attacked, attack) -> None:
    attacked.serves()
    known, before, rng = attacked.known(), attacked.refused(), random.Random(SEED)
    sent = 0
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger:
        stranger.bind((STRANGER_HOST, 0))
        stranger.setblocking(False)
        for datagram in attack(attacked, rng):
            # From the node's own address, from the other node's, from nobody's.
            ends = (attacked.first.socket, attacked.second.socket, stranger)
            rng.choice(ends).sendto(datagram, PLACE)
            sent += 1
            if sent % BURST == 0:
                assert attacked.parent.ask("GET", "/v1/health")[0] == 200
        assert attacked.known() == known
        with pytest.raises(BlockingIOError):
            stranger.recv(DATAGRAM_BYTES_MAX)
    assert sent >= EACH

    # Some are answered by a greeting, to the address on record, and are no refusals; the last ones
    # may still wait for their turn; and what a line loses that is muted, by an attack before this
    # one too, nobody counts.
    def are_refused() -> bool:
        told = attacked.refused()
        more = sum(told.values()) - sum(before.values())
        return told.get("muted", 0) > 0 or more > 0.9 * sent

    wait_for("they are refused", are_refused, REFUSED_WITHIN_S)
    attacked.serves()
