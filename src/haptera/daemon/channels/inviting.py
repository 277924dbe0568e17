"""The invitations by which nodes enrol: of those that are booted, and of those that run already."""

import asyncio

from haptera.daemon.parts import HELLO_PORT
from haptera.kinds.host_port import HostPort
from haptera.model.effects import Call
from haptera.rest.unclaimed import InvitationView
from haptera.runtime.identity.pki import Authority
from haptera.runtime.store.store import Store, kept
from haptera.sdk.target import Boot


class Inviting:
    """Enrolment of invited nodes at this address, with this authority."""

    def __init__(self, store: Store, authority: Authority, host: str) -> None:
        self._store = store
        self._ca_pem = authority.ca_pem.decode()
        self._parent = str(HostPort(host, HELLO_PORT))

    def boot_of(self, call: Call) -> Boot | None:
        """The boot data for a step that boots a node: the token that was minted with its intent."""
        minted = self._store.minted_for(call.intent) if call.enrols and call.intent else None
        if minted is None:
            return None
        return Boot(minted.text, self._ca_pem, self._parent, minted.good_for_s)

    async def invite(self, node: str) -> InvitationView:
        """Invite a node that runs already; the invitation before this one is void.

        Raises:
            HapteraError: it cannot be written down, or the node is not declared.
        """
        made = kept(await asyncio.wrap_future(self._store.invite(node)))
        return InvitationView(made.text, self._ca_pem, self._parent)
