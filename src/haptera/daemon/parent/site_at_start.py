"""The site file that a parent is started with, applied once it serves."""

import asyncio
import logging
from pathlib import Path

from haptera.core.desired.ownership import Claim
from haptera.daemon.tree.above import Stores
from haptera.model.changes import Author, Change
from haptera.model.errors import ConflictError, HapteraError, InputError
from haptera.model.token_scope import Scope
from haptera.runtime.store.optimistic_write import write
from haptera.site.apply.sites import Sites
from haptera.site.syntax.sources import constants_of, gather

_log = logging.getLogger(__name__)


async def apply_at_start(named: str | None, sites: Sites, desires: Stores) -> HapteraError | None:
    """Apply the site file that was named, if any; what is wrong with it, if anything."""
    if named is None:
        return None
    site = Path(named)

    async def make() -> tuple[Change, ...]:
        files = await asyncio.to_thread(gather, [site])
        proposal = await sites.read(files, constants_of(site))
        stored = await desires.stored()
        return await asyncio.to_thread(proposal.changes, stored, Claim.LEAVE)

    try:
        await write(desires, make, Author("site", f"{site} at the start", Scope.ADMIN))
    except InputError as error:
        if not all(isinstance(one, ConflictError) for one in error.errors):
            return error
        for one in error.errors:
            _log.warning("as it was: %s is not applied: %s", site, one)
    except HapteraError as error:
        return error
    _log.info("goes by the site file %s", site)
    return None
