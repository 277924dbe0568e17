"""What goes over the API of a command that is run on a node: its words, and what comes of it."""

from typing import Annotated, Final

import msgspec

from haptera.model.declared.meaning import Meaning
from haptera.model.text import Argument

# A command runs for so long where nobody says for how long.
WITHIN_S_DEFAULT: Final = 600
WITHIN_S_MAX: Final = 86_400
# Its words, how many and how long with one byte more for each, and what it reads.
WORDS_MAX: Final = 1_000
WORDS_BYTES_MAX: Final = 16 * 1024
STDIN_BYTES_MAX: Final = 512 * 1024


class ExecBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A command: its words, without a shell; `stdin` is what it reads, nothing if not given."""

    words: Annotated[
        list[Argument], msgspec.Meta(min_length=1, max_length=WORDS_MAX), Meaning.COMMAND
    ]
    stdin: bytes | None = None
    within_s: Annotated[int, msgspec.Meta(ge=1, le=WITHIN_S_MAX)] = WITHIN_S_DEFAULT


class ExecView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of what comes of a command; an empty one says that it still runs.

    The last line has its exit `status`, with `why` where it did not end by itself, or in `lost` why
    nothing more is known of it.
    """

    stdout: bytes = b""
    stderr: bytes = b""
    status: int | None = None
    why: str | None = None
    lost: str | None = None
