"""The calls about what a node has beside its entity: its machine, its session, its permit."""

from haptera.client.call import ApiCall, call
from haptera.rest import endpoints
from haptera.rest.schemas import Evicted, Overridden
from haptera.rest.unclaimed import ClaimBody, ClaimMade, InvitationView, Unclaimed


def override(node: str, *, why: str) -> ApiCall[Overridden]:
    """Need no permit of a node for a while."""
    return call(endpoints.OVERRIDE, node, why=why)


def evict(node: str, *, why: str | None = None) -> ApiCall[Evicted]:
    """End a node's session: it has to be booted anew."""
    return call(endpoints.EVICT, node, why=why)


def invite(node: str, *, why: str | None = None) -> ApiCall[InvitationView]:
    """The invitation by which the agent of a running node enrols; handle it as a secret."""
    return call(endpoints.INVITE, f"node:{node}", why=why)


def unclaimed() -> ApiCall[Unclaimed]:
    """The machines that asked for an address and are no node's."""
    return call(endpoints.UNCLAIMED)


def claim(mac: str, node: str, *, why: str | None = None) -> ApiCall[ClaimMade]:
    """Have a machine that asked for an address be a node."""
    return call(endpoints.CLAIM, node, body=ClaimBody(mac), why=why)
