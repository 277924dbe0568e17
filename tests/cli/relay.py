"""Carries the datagrams of a network namespace: late, twice, and in another order, from a seed.

    unshare --net sh -c 'ip link set lo up && exec python -m tests.cli.relay SEED'

Those to the port of nodes are turned to this process, which sends each on as it was, with the
sender's address: raw, so that no address is one of the relay's, and unknown to the connection
tracking, which would turn it back here. Says `relays` once it does; ends with its input, and says
what it did.
"""

import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import time
from random import Random
from typing import Final

# Of this process, by which its packets are known from others.
GROUP: Final = 4712
PORT, OWN_PORT = 4271, 5271
LATE_SHARE, LATE_S, TWICE_SHARE = 0.25, 2.5, 0.2
BYTES_MAX: Final = 2048
# Linux has it, Python 3.11's socket module does not.
IP_PKTINFO: Final = 8
RULES = f"""\
table ip relay {{
  chain unknown {{
    type filter hook output priority -300;
    meta skgid {GROUP} notrack
  }}
  chain turned {{
    type nat hook output priority -100;
    udp dport {PORT} meta skgid != {GROUP} dnat to :{OWN_PORT}
  }}
}}
"""


def packet(source: bytes, target: bytes, body: bytes) -> bytes:
    """RFC 791 and 768; the kernel adds length and checksum of the first, the other has none."""
    length = 8 + len(body)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, socket.IPPROTO_UDP, 0)
    return head + source + target + struct.pack("!HHHH", PORT, PORT, length, 0) + body


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(rng: Random) -> None:
    os.setgid(GROUP)
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    heard.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    heard.bind(("0.0.0.0", OWN_PORT))
    subprocess.run(["nft", "-f", "-"], input=RULES, text=True, check=True)
    say("relays")
    waiting: list[tuple[float, int, bytes, str]] = []
    passed = sent = late = 0
    while True:
        left_s = None if not waiting else max(0.0, waiting[0][0] - time.monotonic())
        ready, _, _ = select.select([heard, sys.stdin], [], [], left_s)
        if sys.stdin in ready:
            break
        if heard in ready:
            body, notes, _, (address, port) = heard.recvmsg(BYTES_MAX, 64)
            assert port == PORT, "who speaks from another port could not be answered"
            target = notes[0][2][8:12]  # of struct in_pktinfo: the address that it was for
            made = packet(socket.inet_aton(address), target, body)
            passed += 1
            for _ in range(2 if rng.random() < TWICE_SHARE else 1):
                after_s = rng.random() * LATE_S if rng.random() < LATE_SHARE else 0.0
                sent, late = sent + 1, late + (after_s > 0)
                one = time.monotonic() + after_s, sent, made, socket.inet_ntoa(target)
                heapq.heappush(waiting, one)
        while waiting and waiting[0][0] <= time.monotonic():
            *_, made, host = heapq.heappop(waiting)
            sender.sendto(made, (host, 0))
    say(f"{passed} datagrams, {late} late, {sent - passed} twice")


if __name__ == "__main__":
    main(Random(int(sys.argv[1])))
