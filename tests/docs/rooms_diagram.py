"""The diagram of rooms in ARCHITECTURE.md, drawn from the import contracts.

Draw it anew: python -m tests.docs.rooms_diagram
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
BLOCK = re.compile(r"(?<=```text rooms\n).*?(?=```)", re.DOTALL)


def drawn() -> str:
    """One table per contract on layers: each line imports only from the lines below it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    layered = [one for one in contracts if one["type"] == "layers"]
    return "\n".join("".join(lines(one)) for one in layered)


def lines(contract: dict[str, object]) -> Iterator[str]:
    containers, layers = contract["containers"], contract["layers"]
    assert isinstance(containers, list)
    assert isinstance(layers, list)
    yield f"{', '.join(containers)}\n"
    for layer in layers:
        names = [one.strip(" ()") for one in layer.split("|")]
        yield f"    {'  '.join(names)}\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda _: drawn(), page), encoding="utf-8")
