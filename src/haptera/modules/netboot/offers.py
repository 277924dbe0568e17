"""Which machines may boot now, and what each of them is given: nothing else is ever served."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Final

# Of the time for which its token is good: the rest is for the agent to enrol.
OFFERED_SHARE: Final = 0.9
OFFERS_MAX: Final = 4_096


@dataclass(frozen=True, slots=True)
class Here:
    """Where the boot servers are: their own address in its network, and the port for HTTP.

    Where another server gives addresses there, ours `proxies`: it says only what to boot.
    """

    interface: IPv4Interface
    http_port: int
    router: IPv4Address | None = None
    proxies: bool = False

    @property
    def address(self) -> IPv4Address:
        return self.interface.ip

    def url(self, nonce: str, name: str) -> str:
        return f"http://{self.address}:{self.http_port}/{nonce}/{name}"


# The progress of a machine that has no address of ours yet.
NOT_ASKED: Final = "has not requested an address yet"
ASKS: Final = "requests an address"
OTHERS: Final = "took an address from another DHCP server"


@dataclass(slots=True)
class BootOffer:
    """What one machine may fetch, by name: loaders by TFTP or HTTP, the rest by HTTP only.

    `loaders` use what firmware offers them, `native` ones their own drivers; by architecture.
    `content` is made for this boot, `files` are the same for all. `nonce` is in all its URLs and
    is never given twice. `reached` says how far the machine has come.
    """

    node: str
    mac: bytes
    address: IPv4Address
    loaders: Mapping[int, Path]
    native: Mapping[int, Path]
    files: Mapping[str, Path]
    content: Mapping[str, bytes] = field(repr=False)
    nonce: str = field(repr=False)
    ends_at: float
    reached: str = NOT_ASKED
    loader_given: bool = False
    script_given: bool = False

    def loader(self, name: str) -> Path | None:
        """The loader of this name, if it is one that firmware may have."""
        loaders = (*self.loaders.values(), *self.native.values())
        return next((one for one in loaders if one.name == name), None)

    def asks(self) -> None:
        """It asks for an address; what loads next asks anew, and has come further already."""
        if self.reached == NOT_ASKED or self.reached.startswith(OTHERS):
            self.reached = ASKS

    def begin_anew(self) -> None:
        """The machine was reset, and boots from its beginning: what it reached before is over."""
        self.loader_given = self.script_given = False
        self.reached = ASKS

    def give_loader(self) -> None:
        self.loader_given = True
        self.reached = "has its loader"


class Offers:
    """The offers that are open, by what a client can show of itself."""

    def __init__(self) -> None:
        self._by_node: dict[str, BootOffer] = {}
        self._by_mac: dict[bytes, BootOffer] = {}
        self._by_address: dict[str, BootOffer] = {}

    def open(self, offer: BootOffer) -> None:
        """Offer this, in place of what the node, its card or its address was offered before."""
        at = self.for_address(str(offer.address))
        for before in (self.of(offer.node), self.for_mac(offer.mac), at):
            if before is not None:
                self.close(before.node)
        self._by_node[offer.node] = offer
        self._by_mac[offer.mac] = offer
        self._by_address[str(offer.address)] = offer

    def close(self, node: str) -> None:
        offer = self._by_node.pop(node, None)
        if offer is not None:
            del self._by_mac[offer.mac], self._by_address[str(offer.address)]

    def expire(self, now: float) -> None:
        for offer in [one for one in self._by_node.values() if one.ends_at <= now]:
            self.close(offer.node)

    def full(self) -> bool:
        return len(self._by_node) >= OFFERS_MAX

    def of(self, node: str) -> BootOffer | None:
        return self._by_node.get(node)

    def for_mac(self, mac: bytes) -> BootOffer | None:
        return self._by_mac.get(mac)

    def for_address(self, address: str) -> BootOffer | None:
        return self._by_address.get(address)
