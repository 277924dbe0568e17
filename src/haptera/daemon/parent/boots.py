"""What a step that boots a node hands on: the token that was minted with its intent."""

from haptera.daemon.parts import HELLO_PORT
from haptera.daemon.settings import ParentSettings
from haptera.model.effects import Call
from haptera.runtime.identity.pki import Authority
from haptera.runtime.store.store import Store
from haptera.sdk import Boot


def boot_of(
    call: Call, store: Store, authority: Authority, settings: ParentSettings
) -> Boot | None:
    """What a call is given to boot a node with; None where it boots none."""
    minted = store.minted_for(call.intent) if call.enrols and call.intent else None
    if minted is None:
        return None
    parent = f"{settings.address}:{HELLO_PORT}"
    return Boot(minted.text, authority.ca_pem.decode(), parent, minted.good_for_s)
