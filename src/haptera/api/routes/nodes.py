"""Routes of what a node has beyond its entity: its agent's session, its permit, its machine."""

from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import Caller, Handler, author
from haptera.api.writes.patching import missing
from haptera.core.state.limits import OVERRIDE_NS, S
from haptera.kinds import node as kind
from haptera.kinds.node import parse_mac
from haptera.model.changes import Change, Declare, StoredEntity
from haptera.model.entity import is_name, node_id, parse_entity
from haptera.model.errors import Code, HapteraError, ParseError
from haptera.model.events import Asked, Released
from haptera.rest import endpoints
from haptera.rest.schemas import Evicted, Overridden
from haptera.rest.unclaimed import (
    ClaimBody,
    ClaimMade,
    Unclaimed,
    UnclaimedView,
)
from haptera.runtime.store.optimistic_write import write

_MAC = kind.mac.name


@dataclass(frozen=True, slots=True)
class NodeRoutes:
    backend: Backend

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.EVICT, self.evict)
        yield Handler(endpoints.OVERRIDE, self.override)
        yield Handler(endpoints.INVITE, self.invite)
        yield Handler(endpoints.PARENTS, self.parents)
        yield Handler(endpoints.UNCLAIMED, self.unclaimed)
        yield Handler(endpoints.CLAIM, self.claim)

    async def override(self, request: Request, caller: Caller) -> Response:
        """Need no permit of a node for a while, as where its gate never grants one; say why."""
        node = request.path_params["node"]
        by = author(request, caller)
        if by.why is None:
            raise HapteraError(
                "a reason is required: why no work is lost",
                where="why in the query",
                do="give the reason: why=…, or -m",
                code=Code.MISSING,
            )
        if self.backend.queries.entity(node_id(node)) is None:
            raise missing(self.backend.queries, node_id(node))
        what = f"override the permit of {node}: {by.why}"
        await self.backend.orders.request(Released(node), by.who, what)
        return as_json(Overridden(node, OVERRIDE_NS // S))

    async def evict(self, request: Request, caller: Caller) -> Response:
        """End a node's session: it is neither heard nor answered until it is booted anew."""
        node = request.path_params["node"]
        if not is_name(node):
            raise HapteraError(f"{node!r} is not the name of one node", do="evict one at a time")
        self.backend.records.note(author(request, caller).who, f"evict {node}", node_id(node))
        incarnation = await self.backend.orders.evict(node)
        if incarnation is None:
            if self.backend.queries.entity(node_id(node)) is None:
                raise missing(self.backend.queries, node_id(node))
            raise HapteraError(
                f"{node} has no session",
                do="there is nothing to end: it has not enrolled since it was evicted, or never",
                code=Code.NOT_FOUND,
            )
        return as_json(Evicted(node, incarnation))

    async def invite(self, request: Request, caller: Caller) -> Response:
        """Invite a node that runs already: its agent enrols by what is answered, once, and soon.

        It is good for ten minutes, and only the last one of a node is. A session that the node has
        goes on until another one has enrolled.
        """
        entity = parse_entity(request.path_params["entity"])
        if entity.kind != kind.kind.name:
            raise HapteraError(f"{entity} cannot enrol", do="name a node: node:NAME")
        if self.backend.desires.declared(entity) is None:
            raise missing(self.backend.queries, entity, caller.within)
        by = author(request, caller)
        reason = "" if by.why is None else f": {by.why}"
        self.backend.records.note(by.who, f"invite {entity.name}{reason}", entity)
        return as_json(await self.backend.orders.invite(entity.name))

    async def parents(self, _request: Request, _caller: Caller) -> Response:
        """The parents of the tree that are below this one, and the lag of its standby."""
        return as_json(await self.backend.tree.view())

    async def unclaimed(self, _request: Request, _caller: Caller) -> Response:
        """The machines that asked for an address and are no node's, the latest first."""
        return as_json(Unclaimed(await self._unclaimed()))

    async def claim(self, request: Request, caller: Caller) -> Response:
        """Have a machine that asked for an address be a node that has no MAC address yet."""
        node, by = node_id(request.path_params["node"]), author(request, caller)
        mac = _checked((await read_body(request, ClaimBody)).mac)

        async def make() -> tuple[Change, ...]:
            held = await self._free(self.backend.desires.declared(node), node.name, mac)
            # It stays whose it is: a claim says what a site could not know.
            return (Declare(node, {**held.attributes, _MAC: mac}, held.owner),)

        if self.backend.desires.declared(node) is None:
            raise missing(self.backend.queries, node)
        _, (change,) = await write(self.backend.desires, make, by)
        assert isinstance(change, Declare)
        what = f"claim {mac} as {node.name}"
        try:
            await self.backend.orders.request(Asked(node), by.who, what)
        except HapteraError:  # It is tried by itself, where its parent is silent now.
            self.backend.records.note(by.who, what, node)
        return as_json(ClaimMade(node.name, mac, change.owner))

    async def _unclaimed(self) -> list[UnclaimedView]:
        owners = await self._owners()
        return [one for one in self.backend.outputs.strangers() if one.mac not in owners]

    async def _owners(self) -> dict[str, str]:
        """The names of nodes by their MAC addresses."""
        return {
            found.hex(":"): one.entity.name
            for one in await self.backend.desires.stored()
            if (found := parse_mac(one.attributes.get(_MAC, ""))) is not None
        }

    async def _free(self, held: StoredEntity | None, node: str, mac: str) -> StoredEntity:
        """The node, which and whose machine nobody has claimed."""
        if held is None:
            raise missing(self.backend.queries, node_id(node))
        if (taken := held.attributes.get(_MAC)) is not None:
            raise HapteraError(
                f"{node} already has the MAC address {taken}",
                do="claim the machine for another node, or remove `mac` from this one first",
                code=Code.CONFLICT,
            )
        if (owner := (await self._owners()).get(mac)) is not None:
            do = "list unclaimed machines: haptera unclaimed"
            raise HapteraError(f"{mac} already belongs to {owner}", do=do, code=Code.CONFLICT)
        if all(one.mac != mac for one in self.backend.outputs.strangers()):
            raise HapteraError(
                f"{mac} has not requested an address recently",
                do="see haptera unclaimed, or set `mac` where the node is declared",
                code=Code.NOT_FOUND,
            )
        return held


def _checked(text: str) -> str:
    found = parse_mac(text)
    if found is None:
        raise ParseError(
            f"{text[:40]!r} is not a MAC address", where="mac", do="write 52:54:00:12:34:56"
        )
    return found.hex(":")
