"""Routes of the API's own tokens: who asks, making them, which there are, taking them back."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import Caller, Handler, author
from haptera.kinds.meaning import check_selector
from haptera.model.errors import Code, HapteraError, ParseError
from haptera.rest import endpoints
from haptera.rest.schemas import (
    CallerView,
    CertificateBody,
    CertificateMade,
    TokenBody,
    TokenMade,
    Tokens,
    TokenView,
)
from haptera.runtime.identity.pki import parse_request
from haptera.runtime.identity.tokens import ApiToken, Bearer
from haptera.selectors.selector import parse_selector

# As in an owner, `user:NAME`.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True, slots=True)
class TokenRoutes:
    backend: Backend

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.CALLER, self.caller)
        yield Handler(endpoints.TOKENS, self.all)
        yield Handler(endpoints.MAKE_TOKEN, self.make)
        yield Handler(endpoints.CERTIFY, self.certify)
        yield Handler(endpoints.REVOKE_TOKEN, self.revoke)

    async def caller(self, _request: Request, caller: Caller) -> Response:
        """Who asks, and what they may: a page offers nothing else."""
        within = None if caller.within is None else caller.within.text
        return as_json(CallerView(caller.name, caller.scope, within))

    async def all(self, _request: Request, _caller: Caller) -> Response:
        """All tokens that hold, without their secrets."""
        return as_json(Tokens([_view(one) for one in self.backend.tokens.held()]))

    async def make(self, request: Request, caller: Caller) -> Response:
        """Make a token; its text is in this answer, and nowhere else."""
        body = await read_body(request, TokenBody)
        bearer = _bearer(body)
        minted = await self.backend.tokens.mint(bearer, body.for_s)
        what = f"make token {minted.row.id}: {body.scope} for {body.name}"
        self.backend.records.note(author(request, caller).who, what)
        made = TokenMade(_view(minted.row), minted.text)
        return as_json(made, status=HTTPStatus.CREATED)

    async def certify(self, request: Request, caller: Caller) -> Response:
        """Make a client certificate: who shows it over TLS needs no token.

        It is a token like others, to be listed and taken back, whose text nobody knows.
        """
        body = await read_body(request, CertificateBody)
        bearer, asked = _bearer(body), parse_request(body.request.encode())
        if asked is None:
            raise ParseError(
                "not a certificate request",
                where="request",
                do="send a PKCS #10 request in PEM, for a key on the curve P-256",
            )
        made = await self.backend.tokens.certify(bearer, body.for_s, asked)
        what = f"certify {made.row.id}: {body.scope} for {body.name}"
        self.backend.records.note(author(request, caller).who, what)
        view = CertificateMade(_view(made.row), made.certificate.decode(), made.authority.decode())
        return as_json(view, status=HTTPStatus.CREATED)

    async def revoke(self, request: Request, caller: Caller) -> Response:
        """Take a token back, by its id: from now on it is none."""
        key = request.path_params["token"]
        row = await self.backend.tokens.revoke(key)
        if row is None:
            raise HapteraError(
                f"there is no token {key}",
                do="see which there are: haptera token list",
                code=Code.NOT_FOUND,
            )
        self.backend.records.note(
            author(request, caller).who, f"revoke token {row.id} of {row.bearer.name}"
        )
        return as_json(_view(row))


def _bearer(body: TokenBody | CertificateBody) -> Bearer:
    if _NAME.fullmatch(body.name) is None:
        raise HapteraError(
            f"{body.name!r} is not a user name",
            where="name",
            do="write up to 64 letters, digits, dots, dashes, underscores or @",
        )
    return Bearer(body.name, body.scope, _limit(body.within))


def _limit(text: str | None) -> str | None:
    """What a token is limited to: names decide, for state comes and goes."""
    if text is None:
        return None
    selector = check_selector(parse_selector(text))
    if not selector.by_name:
        raise HapteraError(
            "a token is limited by names alone", where="within", do="write a node-set, as rack1n*"
        )
    return selector.text


def _view(one: ApiToken) -> TokenView:
    bearer = one.bearer
    return TokenView(
        one.id, bearer.name, bearer.scope, bearer.within, int(one.made_s), int(one.expires_s)
    )
