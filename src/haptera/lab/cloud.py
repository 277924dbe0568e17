"""A small cloud: a lab's virtual nodes made and destroyed on demand, over HTTP, with faults.

    GET  /instances                             all there are, of any owner
    POST /create   {name, owner, size}          202; 409 with the words of a provider's refusal
    POST /destroy  {name, owner}                202; another's is not touched
    POST /faults   {quota, lacks, hangs, …}     how it misbehaves from now on

Asked again for what is there already, or not any more, it says yes and does nothing.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Final, Protocol, TypeVar

import msgspec

from haptera.kinds.instance import RefusalCause, RefusalWords
from haptera.lab import http
from haptera.lab.http import Request, Response
from haptera.lab.layout import BMC_PORT, BOOT_MS_MAX, LabNode
from haptera.lab.orders import CLOUD_INSTANCES_MAX, CloudFaults
from haptera.model.entity import check_name
from haptera.model.errors import HapteraError

CLOUD_PORT: Final = 4281
CONNECTIONS_MAX: Final = 64
WRITE_S_MAX: Final = 5.0
# The third octets of the addresses of its nodes, and of their BMCs.
NODES_OCTET: Final = 101
BMCS_OCTET: Final = 102

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class CreateOrder(msgspec.Struct, frozen=True):
    name: Name
    owner: Name
    size: Name


class DestroyOrder(msgspec.Struct, frozen=True):
    name: Name
    owner: Name


class CloudInstance(msgspec.Struct, frozen=True):
    """One that there is: `attributes` are those of the node that it is."""

    name: str
    owner: str
    size: str
    attributes: dict[str, str]


class NodeMaker(Protocol):
    """The lab, which has the nodes run."""

    def begin(self, node: LabNode) -> None:
        """Start a node's chassis; its power is off."""

    def end(self, node: LabNode) -> None:
        """End a node with all that runs on it."""


Body = TypeVar("Body", CreateOrder, DestroyOrder, CloudFaults)


class LabCloud:
    """What there is, numbered; `net` is what the lab's addresses begin with, `127.7`."""

    def __init__(self, net: str, faults: CloudFaults, nodes: NodeMaker) -> None:
        self._net = net
        self._faults = faults
        self._nodes = nodes
        self._there: dict[int, tuple[CloudInstance, LabNode]] = {}
        self._create_after = 0.0
        self._last = 0
        self._orders = self._made = 0
        self._connections = 0

    async def serve(self) -> None:
        """Answer until cancelled."""
        host = f"{self._net}.0.2"
        server = await asyncio.start_server(
            self._attend, host, CLOUD_PORT, limit=http.HEAD_BYTES_MAX
        )
        async with server:
            await server.serve_forever()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            request = await http.read_request(reader)
            if request is not None:
                async with asyncio.timeout(WRITE_S_MAX):
                    writer.write(http.encode(self._respond(request)))
                    await writer.drain()
        except (TimeoutError, ConnectionError):
            pass  # This client waits no longer.
        finally:
            self._connections -= 1
            writer.close()

    def _respond(self, request: Request | Response) -> Response:
        if isinstance(request, Response):
            return request
        if self._connections > CONNECTIONS_MAX:
            return http.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
        match request.method, request.path:
            case "GET", "/instances":
                there = [one for one, _ in self._there.values()]
                return Response(HTTPStatus.OK, {"instances": msgspec.to_builtins(there)})
            case "POST", "/create":
                return _told(request.body, CreateOrder, self._create)
            case "POST", "/destroy":
                return _told(request.body, DestroyOrder, self._destroy)
            case "POST", "/faults":
                return _told(request.body, CloudFaults, self._misbehave)
            case _:
                text = "there are GET /instances, POST /create, /destroy and /faults"
                return http.refuse(HTTPStatus.NOT_FOUND, text)

    def _create(self, order: CreateOrder) -> Response:
        there = self._named(order.name)
        if there is not None:
            return _DONE if there[1].owner == order.owner else _anothers(order.name)
        if (words := self._refusal(order.size)) is not None:
            return http.refuse(HTTPStatus.CONFLICT, str(words))
        if self._fails():
            return _FAILED
        number = self._next_number()
        node = self._node(number, order)
        self._nodes.begin(node)
        attributes = {"platform": "labnode", "address": node.address, "bmc": node.bmc}
        one = CloudInstance(order.name, order.owner, order.size, attributes)
        self._there[number] = one, node
        return _DONE

    def _destroy(self, order: DestroyOrder) -> Response:
        there = self._named(order.name)
        if there is None:
            return _DONE
        number, one = there
        if one.owner != order.owner:
            return _anothers(order.name)
        if (left := self._faults.destroy_fails) > 0:
            self._faults = msgspec.structs.replace(self._faults, destroy_fails=left - 1)
            return _FAILED
        if self._fails():
            return _FAILED
        _, node = self._there.pop(number)
        self._nodes.end(node)
        return _DONE

    def _fails(self) -> bool:
        """Whether it is this order's turn to fail."""
        self._orders += 1
        return _is_turn(self._orders, self._faults.fails_every)

    def _misbehave(self, faults: CloudFaults) -> Response:
        self._faults = faults
        return _DONE

    def _refusal(self, size: str) -> RefusalWords | None:
        now = asyncio.get_running_loop().time()
        if now < self._create_after:
            after_ms = int((self._create_after - now) * 1000) + 1
            return RefusalWords(RefusalCause.RATE, "asked too often", after_ms=after_ms)
        if len(self._there) >= self._faults.quota:
            return RefusalWords(RefusalCause.QUOTA, f"{self._faults.quota} instances at most")
        if size in self._faults.lacks:
            return RefusalWords(RefusalCause.CAPACITY, f"no more of size {size}", "size")
        self._create_after = now + self._faults.rate_ms / 1000
        return None

    def _next_number(self) -> int:
        """The next free one in turn: an address is not given to another right after its end."""
        numbers = (
            (self._last + ahead) % CLOUD_INSTANCES_MAX + 1 for ahead in range(CLOUD_INSTANCES_MAX)
        )
        self._last = next(number for number in numbers if number not in self._there)
        return self._last

    def _node(self, number: int, order: CreateOrder) -> LabNode:
        self._made += 1
        hangs = _is_turn(self._made, self._faults.hangs_every) or order.size in self._faults.hangs
        boot_ms = BOOT_MS_MAX if hangs else 0
        address = f"{self._net}.{NODES_OCTET}.{number}"
        bmc = f"{self._net}.{BMCS_OCTET}.{number}:{BMC_PORT}"
        return LabNode(order.name, address, bmc, boot_ms=boot_ms)

    def _named(self, name: str) -> tuple[int, CloudInstance] | None:
        found = ((number, one) for number, (one, _) in self._there.items() if one.name == name)
        return next(found, None)


_DONE: Final = Response(HTTPStatus.ACCEPTED, {})
_FAILED: Final = http.refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")


def _is_turn(number: int, every: int) -> bool:
    return every > 0 and number % every == 0


def _anothers(name: str) -> Response:
    return http.refuse(HTTPStatus.FORBIDDEN, f"{name} is another owner's")


def _told(body: bytes, shape: type[Body], do: Callable[[Body], Response]) -> Response:
    try:
        order = msgspec.json.decode(body, type=shape)
        if isinstance(order, CreateOrder):
            check_name(order.name)
        return do(order)
    except (ValueError, RecursionError, HapteraError) as error:
        return http.refuse(HTTPStatus.BAD_REQUEST, str(error))
