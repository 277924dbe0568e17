"""Asking etcd, by its JSON gateway: one call at a time, at the first endpoint that answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec

from haptera.client import Access, Client
from haptera.client.address import parse_address
from haptera.client.call import ApiCall
from haptera.client.errors import RefusedError, UnreachableError
from haptera.model.declared.secrets import references, resolved
from haptera.model.errors import HapteraError, ParseError, UnreadableError
from haptera.runtime.processes.secrets import SecretStore

# Whose secrets the settings name: `haptera secret allow NAME etcd`.
USER: Final = "etcd"
_DO: Final = 'write {"url": "https://HOST:2379", "authority": "…", "identity": "/PATH"}'

Shape = TypeVar("Shape")


class EtcdFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One endpoint: `authority` and `identity` as in a client file, `user` and `password` of etcd.

    The password is `{"secret": NAME}`, as in settings of modules. Keys begin with `prefix`; a lease
    that is not renewed ends after `lease_s`.
    """

    url: str
    authority: str | None = None
    identity: str | None = None
    user: str | None = None
    password: dict[str, str] | None = None
    prefix: str = "haptera"
    lease_s: Annotated[int, msgspec.Meta(ge=5, le=300)] = 15


class _Authenticated(msgspec.Struct, frozen=True):
    token: str


class Etcd:
    """The endpoints of one etcd; `home` is the parent's directory, with its secrets."""

    def __init__(self, files: Sequence[str], home: Path) -> None:
        """Read the endpoints' files.

        Raises:
            HapteraError: one of them is none.
        """
        self._endpoints = [read_etcd_file(Path(one)) for one in files]
        self._secrets = SecretStore(home)
        self._tokens: dict[str, str] = {}

    @property
    def prefix(self) -> str:
        return self._endpoints[0].prefix

    @property
    def lease_s(self) -> int:
        return min(one.lease_s for one in self._endpoints)

    def ask(self, path: str, body: object, gives: type[Shape]) -> Shape:
        """Ask the endpoint that answered last, or else the others in turn.

        Raises:
            HapteraError: none answers, or etcd refuses.
        """
        error: HapteraError | None = None
        for one in tuple(self._endpoints):
            try:
                return self._ask(one, path, body, gives)
            except HapteraError as failed:
                error = failed
                # The next one comes first from now on.
                self._endpoints.append(self._endpoints.pop(0))
                self._tokens.pop(one.url, None)
        assert error is not None, "there is an endpoint"
        raise error

    def _ask(self, one: EtcdFile, path: str, body: object, gives: type[Shape]) -> Shape:
        access = Access(one.url, authority=one.authority, identity=one.identity)
        try:
            with Client(access, waiting=_give_up) as client:
                headers = self._headers(client, one)
                return client.ask(ApiCall("POST", path, gives, body=body, headers=headers))
        except UnreachableError as error:
            what = error.what.replace("cannot reach the parent", "cannot reach etcd")
            do = "check that etcd runs, and that the file has its address"
            raise UnreachableError(what, where=one.url, do=do) from None
        except RefusedError as error:
            what = f"etcd answers with status {error.status}"
            do = "see etcd's log; check the user and its password"
            raise HapteraError(what, where=one.url, do=do) from None

    def _headers(self, client: Client, one: EtcdFile) -> dict[str, str]:
        if one.user is None or one.password is None:
            return {}
        if one.url not in self._tokens:
            read = self._secrets.read_at_parent
            values = {ref: read(USER, ref) for ref in references(one.password)}
            body = {"name": one.user, "password": resolved(one.password, values)}
            call = ApiCall("POST", "/v3/auth/authenticate", _Authenticated, body=body)
            self._tokens[one.url] = client.ask(call).token
        return {"Authorization": self._tokens[one.url]}


def read_etcd_file(path: Path) -> EtcdFile:
    """Read where an endpoint is, and as whom it is asked.

    Raises:
        HapteraError: the file cannot be read, or says something else.
    """
    try:
        read = msgspec.json.decode(path.read_bytes(), type=EtcdFile)
        parse_address(read.url)
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UnreadableError(what, where=str(path), do="name an etcd file with --etcd") from None
    except (ValueError, RecursionError) as error:
        raise ParseError(f"is not an etcd file: {error}", where=str(path), do=_DO) from None
    except HapteraError as error:
        raise ParseError(error.what, where=str(path), do=_DO) from None
    return read


def _give_up() -> None:
    raise UnreachableError("cannot reach etcd: no answer in time")
