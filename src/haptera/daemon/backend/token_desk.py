"""The tokens of the API: made, held, and revoked in the store."""

import asyncio

from cryptography.x509 import CertificateSigningRequest

from haptera.runtime.identity.pki import Authority, issue_client
from haptera.runtime.identity.tokens import ApiToken, Bearer, Certified, MintedToken
from haptera.runtime.store.store import Store, kept


class StoreTokens:
    """A token holds once it is durable; its certificate is the authority's."""

    def __init__(self, store: Store, authority: Authority) -> None:
        self._store = store
        self._authority = authority
        self.check, self.held = store.check_token, store.tokens

    async def mint(self, bearer: Bearer, ttl_s: float) -> MintedToken:
        minted = self._store.new_token(bearer, ttl_s)
        kept(await asyncio.wrap_future(self._store.keep_token(minted.row)))
        self._store.hold_token(minted.row)
        return minted

    async def certify(
        self, bearer: Bearer, ttl_s: float, request: CertificateSigningRequest
    ) -> Certified:
        row = (await self.mint(bearer, ttl_s)).row
        certificate = issue_client(self._authority, request, row.id, row.made_s, ttl_s)
        return Certified(row, certificate, self._authority.ca_pem)

    async def revoke(self, key: str) -> ApiToken | None:
        revoked = self._store.revoke_token(key)
        if revoked is None:
            return None
        row, written = revoked
        kept(await asyncio.wrap_future(written))
        return row
