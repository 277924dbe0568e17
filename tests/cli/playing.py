"""Sessions of commands as files: typed anew to a served cluster that pretends, and compared whole.

A file opens with a sentence and the name of its cluster. Its stories, each with a title behind
`==`, begin anew there. A step is a command (`$`), a question about what the cluster holds (`?`), or
something that happens to it (`#`); below it stands all that was written, errors last, with a line
`[exit N]` where that was not 0, or `[as above]`. What differs each time has a name (`<time>`).

Write what is answered now into a file: python -m tests.cli.playing NAME
"""

import io
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from haptera.cli.main import run
from tests.api.serving import Serving
from tests.cli.clusters import HAPPENS, QUESTIONS, cluster_of
from tests.cli.rig import point_at, without_waits
from tests.kinds.listed import ALL_KINDS, ATTRIBUTES, DESIRABLE, MODULES

FOLDER: Final = Path(__file__).parent / "sessions"
STEPS: Final = ("$ ", "? ", "# ")
STORY: Final = "\n== "
AS_ABOVE: Final = "[as above]\n"
# What differs each time, and its name.
NAMED: Final = [
    (re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC"), "<time>"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "<url>"),
    # As in `plan …`, `--digest …`, `it is … now`.
    (re.compile(r"(?<=plan |gest |t is )[0-9a-f]{12}\b"), "<digest>"),
    (re.compile(r"(?<=freeze:)[0-9a-f]{8}\b"), "<id>"),
    (re.compile(r"^Usage: .*\nTry .*\n\nError: ", re.MULTILINE), "usage: "),
    # A line that looks like a step is none.
    (re.compile(r"^(?=[$?#] )", re.MULTILINE), "  | "),
]
# What there is more of with each new module, kind or attribute.
LISTED: Final = {
    "<modules>": MODULES,
    "<kinds>": ALL_KINDS,
    "<attributes of nodes>": ATTRIBUTES,
    "<what is desired of nodes>": DESIRABLE,
}


@dataclass(frozen=True, slots=True)
class Step:
    typed: str
    output: str

    def __str__(self) -> str:
        return f"{self.typed}\n{self.output}"


@dataclass(frozen=True, slots=True)
class Story:
    """`name` tells it apart from all others."""

    cluster: str
    name: str
    title: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{self.title}\n{''.join(map(str, self.steps))}"


def stories() -> list[Story]:
    return [story for path in sorted(FOLDER.glob("*.txt")) for story in read(path)[1]]


def read(path: Path) -> tuple[str, list[Story]]:
    """What stands above the stories of a file, and they."""
    head, *parts = path.read_text(encoding="utf-8").split(STORY)
    cluster = head.splitlines()[1]
    return head, [_story(cluster, path.stem, part) for part in parts]


def _story(cluster: str, file: str, text: str) -> Story:
    title, _, rest = text.partition("\n")
    name = f"{file}: {title}"
    return Story(cluster, name, title, tuple(_steps(rest.strip("\n"))))


def _steps(text: str) -> Iterator[Step]:
    typed, output = "", []
    for line in [*text.splitlines(), *STEPS[:1]]:
        if line.startswith(STEPS):
            if typed:
                yield Step(typed, "".join(output))
            typed, output = line, []
        else:
            output.append(f"{line}\n")


def play(story: Story, folder: Path) -> Story:
    """Type it anew, in this folder."""
    with ExitStack() as opened:
        patched = opened.enter_context(pytest.MonkeyPatch.context())
        cluster = opened.enter_context(cluster_of(story.cluster, patched, folder))

        def as_who(token: str) -> None:
            point_at(cluster.url, f"{token}-token", patched, folder)

        told = [_named(_answer(cluster, as_who, one.typed), folder) for one in story.steps]
    pairs = zip(story.steps, ["", *told[:-1]], told, strict=True)
    return replace(story, steps=tuple(replace(one, output=_short(*two)) for one, *two in pairs))


def _named(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "<folder>")
    for name, names in LISTED.items():
        text = text.replace(names, name)
    for pattern, name in NAMED:
        text = pattern.sub(name, text)
    return text


def _short(before: str, text: str) -> str:
    return AS_ABOVE if text == before and text.count("\n") > 1 else text


def _answer(cluster: Serving, as_who: Callable[[str], None], typed: str) -> str:
    sort, words = typed[0], shlex.split(typed[2:])
    match sort, words:
        case "$", ["haptera", *arguments]:
            return _typed(arguments)
        case "#", ["as", who]:
            as_who(who)
        case "#", [what, *arguments]:
            HAPPENS[what](cluster, *arguments)
        case "?", [what, *arguments]:
            return "".join(f"{line}\n" for line in QUESTIONS[what](cluster, *arguments))
        case _:
            pytest.fail(f"neither a command nor anything else: {typed}")
    return ""


def _typed(arguments: list[str]) -> str:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
        code = run(arguments)
    text = out.getvalue() + without_waits(errors.getvalue())
    return text + (f"[exit {code}]\n" if code else "")


def main(*names: str) -> None:
    for name in names:
        path = FOLDER / f"{name}.txt"
        head, there = read(path)
        path.write_text(STORY.join([head, *map(str, map(_anew, there))]), encoding="utf-8")


def _anew(story: Story) -> Story:
    with tempfile.TemporaryDirectory() as folder:
        return play(story, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
