"""The calls about what a node has beside its entity: its machine, its session, its permit."""

from haptera.client.call import ApiCall, path, query
from haptera.rest.schemas import Evicted, Overridden
from haptera.rest.unclaimed import ClaimBody, ClaimMade, InvitationView, Unclaimed


def override(node: str, *, why: str) -> ApiCall[Overridden]:
    """Need no permit of a node for a while."""
    return ApiCall("POST", path("nodes", node, "override"), Overridden, query(why=why))


def evict(node: str, *, why: str | None = None) -> ApiCall[Evicted]:
    """End a node's session: it has to be booted anew."""
    return ApiCall("DELETE", path("nodes", node, "session"), Evicted, query(why=why))


def invite(node: str, *, why: str | None = None) -> ApiCall[InvitationView]:
    """The invitation by which the agent of a running node enrols; handle it as a secret."""
    where = path("entities", f"node:{node}", "invitation")
    return ApiCall("POST", where, InvitationView, query(why=why))


def unclaimed() -> ApiCall[Unclaimed]:
    """The machines that asked for an address and are no node's."""
    return ApiCall("GET", path("unclaimed"), Unclaimed)


def claim(mac: str, node: str, *, why: str | None = None) -> ApiCall[ClaimMade]:
    """Have a machine that asked for an address be a node."""
    where = path("nodes", node, "claim")
    return ApiCall("POST", where, ClaimMade, query(why=why), ClaimBody(mac))
