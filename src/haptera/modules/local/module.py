"""The cloud of a lab, as a provider: three calls over HTTP."""

import http.client
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from haptera.kinds import instance
from haptera.kinds.host_port import HostPort
from haptera.modules.local.provider import ListedInstance, provider_module
from haptera.sdk import HapteraError, Refused, Target

ANSWER_S_MAX: Final = 10.0
BODY_BYTES_MAX: Final = 1 << 20


class CloudError(Exception):
    """The cloud cannot be asked, or answers what is no answer."""


class CloudListing(msgspec.Struct, frozen=True):
    instances: list[ListedInstance]


class CloudProblem(msgspec.Struct, frozen=True):
    error: str


@dataclass(frozen=True, slots=True)
class LabCloudClient:
    """The cloud that listens there."""

    at: HostPort

    def listed(self) -> Iterable[ListedInstance]:
        return msgspec.json.decode(
            self._ask("GET", "/instances", None), type=CloudListing
        ).instances

    def create(self, name: str, owner: str, size: str) -> None:
        self._ask("POST", "/create", {"name": name, "owner": owner, "size": size})

    def destroy(self, name: str, owner: str) -> None:
        self._ask("POST", "/destroy", {"name": name, "owner": owner})

    def _ask(self, method: str, path: str, order: dict[str, Any] | None) -> bytes:
        connection = http.client.HTTPConnection(self.at.host, self.at.port, timeout=ANSWER_S_MAX)
        try:
            connection.request(method, path, None if order is None else msgspec.json.encode(order))
            answer = connection.getresponse()
            body = answer.read(BODY_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            raise CloudError(f"the cloud at {self.at} does not answer: {error}") from error
        finally:
            connection.close()
        if answer.status in (http.client.CONFLICT, http.client.FORBIDDEN):
            raise Refused(msgspec.json.decode(body, type=CloudProblem).error)
        if answer.status not in (http.client.OK, http.client.ACCEPTED):
            raise CloudError(f"the cloud at {self.at} answers {answer.status}: {body[:200]!r}")
        return body


def connect(target: Target) -> LabCloudClient:
    try:
        at = HostPort.parse(target.attributes.get(instance.at.name, ""), None)
    except HapteraError:
        where = str(target.entity)
        raise HapteraError(
            "has no ADDRESS:PORT to ask", where=where, do="give its pool an `at`"
        ) from None
    return LabCloudClient(at)


module = provider_module("local", connect)
