"""Logs as the API tells them: whole lines, and the place after which the next ones come."""

import re
from typing import Final

from starlette.requests import Request

from haptera.model.entity import EntityId
from haptera.model.errors import ParseError
from haptera.rest.schemas import LogView
from haptera.runtime.network.peer_messages import LOG_BYTES_MAX, LogPlace, LogTold

_PLACE: Final = re.compile(r"(\d{1,19})\.(\d{1,19})", re.ASCII)


def log_place(request: Request) -> LogPlace | None:
    """After which place of a log one asks."""
    text = request.query_params.get("after")
    if text is None:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ParseError(
            f"after={text[:40]!r}", where="the query", do="send `after` of the last answer"
        )
    return LogPlace(int(found[1]), int(found[2]))


def log_view(entity: EntityId, told: LogTold, after: LogPlace | None) -> LogView:
    """Its complete lines; at first, and where a line is longer than an answer, all of it."""
    complete = told.text.rfind(b"\n") + 1
    if complete == 0 and len(told.text) == LOG_BYTES_MAX:
        complete = LOG_BYTES_MAX
    shown = told.text if after is None else told.text[:complete]
    return LogView(
        str(entity),
        shown.decode(errors="replace").splitlines(),
        f"{told.begin.file}.{told.begin.offset + complete}",
        anew=after not in (None, told.begin),
    )
