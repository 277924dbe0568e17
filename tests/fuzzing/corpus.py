"""The inputs that are kept of each target: a line each in corpus/NAME.hex."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "corpus"
# Together, of one target: what is kept is read by whoever changes it.
KEPT_BYTES_MAX: Final = 12_000


def kept(name: str) -> list[bytes]:
    path = FOLDER / f"{name}.hex"
    lines = path.read_text("ascii").splitlines() if path.exists() else []
    return [bytes.fromhex(line) for line in lines]


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Those that are kept, and more of these as far as there is room: the shortest."""
    known = list(dict.fromkeys(kept(name)))
    left = KEPT_BYTES_MAX - sum(map(len, known))
    for one in sorted({*inputs} - {*known}, key=lambda one: (len(one), one)):
        left -= len(one)
        if left >= 0:
            known.append(one)
    text = "".join(f"{one.hex()}\n" for one in known)
    (FOLDER / f"{name}.hex").write_text(text, encoding="ascii")
