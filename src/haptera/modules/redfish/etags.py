"""Entity tags of a resource (DSP0266, *ETags*), in all the ways in which services write them."""

import re
from collections.abc import Sequence
from typing import Final

from haptera.modules.redfish.exchange import RedfishAnswer

# What may stand in a header.
_WRITABLE: Final = re.compile(r"[!-~]{1,256}")
_WEAK: Final = "W/"


def tags_of(answer: RedfishAnswer) -> Sequence[str]:
    """Those of what was read: as the head and as the body has it, then as strong ones.

    Some services send a weak tag and accept the strong one only, some put quotes about quotes.
    """
    shown = (answer.headers["ETag"], answer.document.text("@odata.etag"))
    found = [one.strip() for one in shown if one is not None]
    strong = [f'"{inner}"' for one in found if (inner := one.removeprefix(_WEAK).strip('"'))]
    return [one for one in dict.fromkeys([*found, *strong]) if _WRITABLE.fullmatch(one)]
