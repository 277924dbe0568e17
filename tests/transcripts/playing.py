"""Sessions of the command line as files: read, typed anew in a real lab or parent, and compared.

A transcript opens with a sentence and says where it is typed: `lab SITE`, `parent SITE` or
`folder`; the examples lie there, and small.yaml. Then come commands, each on a line with a `$`,
and below it all that was written, with a line `[exit N]` where it was not 0. What differs each
time has a name (`<duration>`). Three lines say how the next command is typed: `# wait` repeats it
until it exits with 0, `# in time` until it writes what stands below it; `# until TEXT` interrupts
it once it has written that, and keeps no output.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from haptera.runtime import clock
from tests.cli.rig import lab, served, without_waits
from tests.lab.rig import ROOT, WAIT_S_MAX
from tests.network import NETWORK
from tests.shell import Shell, said, shell

FOLDER: Final = Path(__file__).parent
PROMPT: Final = "$ "
WAIT: Final = "# wait"
IN_TIME: Final = "# in time"
UNTIL: Final = "# until "
ADDRESS: Final = f"{NETWORK}.47.1"
# Sixteen nodes come up meanwhile, on a busy machine too.
WITHIN_NS: Final = 3 * WAIT_S_MAX * 1_000_000_000

# What differs each time, and its name; in this order.
NAMED: Final = [
    (re.compile(r"hp1\.[0-9a-f]+\.[\w-]+|hp1\.…"), "<token>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC"), "<time>"),
    (re.compile(r"^ *\d+(?= {2,}<time>)", re.MULTILINE), "<revision>"),
    (re.compile(r"(?<=revision )\d+"), "<revision>"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min|h|d)\b|(?<=passed in )[\d.]+s"), "<duration>"),
    (re.compile(r"(?:(?<=^plan )|(?<=--digest ))[0-9a-f]{12}$", re.MULTILINE), "<digest>"),
    (re.compile(r"(?<=locked by )\d+"), "<pid>"),
    (re.compile(r"\b127(\.\d+){3}\b"), "<address>"),
    (re.compile(r"\b[0-9a-f]{16}\b|(?<=freeze:)[0-9a-f]{8}\b"), "<id>"),
    (re.compile(r"(?<=\S) {2,}"), "  "),  # columns are as wide as what differs
    (re.compile(r" +$", re.MULTILINE), ""),
    (re.compile(r"^(.+\n)\1+", re.MULTILINE), r"\1"),  # so many attempts, all alike
]


@dataclass(frozen=True, slots=True)
class Typed:
    """One command, how it is typed, and what was written, named as in a transcript."""

    command: str
    how: str | None
    output: str

    def __str__(self) -> str:
        how = "" if self.how is None else f"{self.how}\n"
        return f"{how}{PROMPT}{self.command}\n{self.output}"


@dataclass(frozen=True, slots=True)
class Transcript:
    title: str
    place: str
    typed: tuple[Typed, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.title}\n{self.place}\n", *map(str, self.typed)])


def transcripts() -> list[Path]:
    return sorted(FOLDER.glob("*.txt"))


def read(path: Path) -> Transcript:
    head, _, rest = path.read_text(encoding="utf-8").partition("\n\n")
    title, place = head.splitlines()
    return Transcript(title, place, tuple(commands(rest)))


def commands(text: str) -> Iterator[Typed]:
    """The commands of a session, each with what stands below it."""
    command, how, output = None, None, []
    next_how = None
    for line in [*text.splitlines(), PROMPT]:
        if line in (WAIT, IN_TIME) or line.startswith(UNTIL):
            next_how = line
        elif line.startswith(PROMPT):
            if command is not None:
                text = "".join(output).rstrip("\n")
                yield Typed(command, how, text and f"{text}\n")
            command, how, next_how, output = line.removeprefix(PROMPT), next_how, None, []
        else:
            output.append(f"{line}\n")


def named(text: str, folder: Path | None = None) -> str:
    """The text with what differs each time under its name."""
    if folder is not None:
        text = text.replace(str(folder), "<folder>")
    text = without_waits(text)
    for pattern, name in NAMED:
        text = pattern.sub(name, text)
    return text


def play(session: Transcript, folder: Path) -> Transcript:
    """Type it anew."""
    with ExitStack() as stack:
        stack.enter_context(_place(session.place, folder))
        typing = stack.enter_context(shell(folder))
        return Transcript(
            session.title,
            session.place,
            tuple(replace(one, output=_type(typing, one, folder)) for one in session.typed),
        )


@contextmanager
def _place(place: str, folder: Path) -> Iterator[None]:
    """What the session is typed to."""
    sort, _, site = place.partition(" ")
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(FOLDER / "small.yaml", folder)
    if sort == "folder":
        yield
    elif sort == "parent":
        with served(folder, "--site", folder / site, address=ADDRESS):
            yield
    else:
        assert sort == "lab", place
        shutil.copytree((folder / site).parent, folder, dirs_exist_ok=True)
        with lab(folder):
            yield


def _type(shell: Shell, one: Typed, folder: Path) -> str:
    """What is written, named; typed again for as long as the transcript says."""
    if one.how is not None and one.how.startswith(UNTIL):
        going = shell.begin(one.command)
        said(going, one.how.removeprefix(UNTIL))
        shell.interrupt(going)
        return ""
    deadline = clock.now_ns() + WITHIN_NS
    while True:
        code, output = _answer(shell, one.command, folder)
        again = (one.how == WAIT and code != 0) or (one.how == IN_TIME and output != one.output)
        if not again or clock.now_ns() > deadline:
            return output


def _answer(shell: Shell, command: str, folder: Path) -> tuple[int, str]:
    code, written = shell.type(command)
    return code, named(written, folder) + (f"[exit {code}]\n" if code else "")
