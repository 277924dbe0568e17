"""What stands between an engine and the network: messages as bytes, unchanged ones told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from haptera.core.side import PARENT
from haptera.model.events import Heard
from haptera.model.messages import Message

if TYPE_CHECKING:
    from haptera.testing.world import Process, World


class Radio:
    def __init__(self, world: World, process: Process, boot: int) -> None:
        self._world = world
        self._process = process
        self._boot = boot
        world.network.attach(process.name, self._receive)

    def tell(self, peer: str, message: Message) -> None:
        body = msgspec.msgpack.encode((self._boot, message))
        self._world.network.send(self._process.name, peer, body)

    def _receive(self, sender: str, datagram: bytes) -> None:
        boot, message = msgspec.msgpack.decode(datagram, type=tuple[int, Message])
        self._process.deliver([Heard(sender, boot, message, self._world.clock.now)])
