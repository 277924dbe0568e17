"""Programs as modules run them: real ones, whatever they print, keep open and leave behind."""

import ast
import asyncio
import os
import select
import sys
from pathlib import Path

import pytest

import haptera
from haptera.sdk import HapteraError
from haptera.sdk.commands import (
    OUTPUT_BYTES_MAX,
    NotStartedError,
    Program,
    UnfitWordsError,
    clean,
)

pytestmark = pytest.mark.net

LONG_S = 60.0
WAYS = {
    *("subprocess.Popen", "subprocess.run", "subprocess.check_output", "subprocess.check_call"),
    *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "os.system"),
}
# Who waits for a program by other ways than `Program`, and why.
OTHERWISE = {
    "app/whole.py": "stands alone: programs of others import it",
    "cli": "commands of people",
    "lab": "labs of people",
    "minos": "a command of people builds it",
    "daemon/executing/keeper.py": "hands on what is written as it is written, and without asyncio",
    "modules/image/inventory.py": "reads in a thread, as it is written, more than memory holds",
}


def test_of_what_is_printed_without_end_the_last_is_kept_and_that_there_was_more() -> None:
    script = "import sys\nfor _ in range(3000): sys.stdout.write('x' * 100_000)\nprint('end')"
    ended = asyncio.run(Program([sys.executable, "-c", script]).run(LONG_S))
    assert (len(ended.output), ended.cut) == (OUTPUT_BYTES_MAX, True)
    assert ended.out.endswith("xend\n")


def test_it_reads_what_it_is_given_also_where_it_opens_its_input_anew() -> None:
    ended = asyncio.run(Program(["cat", "-", "/dev/stdin"], given=b"once\n").run(LONG_S))
    assert (ended.status, ended.output, ended.cut) == (0, b"once\nonce\n", False)


def test_of_our_environment_it_has_the_search_path_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAPTERA_TOKEN", "secret")
    ended = asyncio.run(Program(["env"], clean(OWN="yes")).run(LONG_S))
    assert {line.partition("=")[0] for line in ended.out.splitlines()} == {"PATH", "LC_ALL", "OWN"}


@pytest.mark.parametrize("way", ["time", "cancelled"])
def test_one_that_is_not_waited_for_any_more_ends_with_its_whole_group(way: str) -> None:
    reading, writing = os.pipe()

    async def story() -> list[int]:
        both = Program(["sh", "-c", "sleep 600 & echo $$ $!; wait"], output=writing)
        running = await both.start()
        pids = await asyncio.to_thread(os.read, reading, 64)
        descriptors = [os.pidfd_open(int(one)) for one in pids.split()]
        if way == "time":
            with pytest.raises(TimeoutError):
                await running.ends(within_s=0)
        else:
            waits = asyncio.ensure_future(running.ends(None))
            await asyncio.sleep(0)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
        return descriptors

    for descriptor in asyncio.run(asyncio.wait_for(story(), LONG_S)):
        assert select.select([descriptor], (), (), LONG_S)[0] == [descriptor]
        os.close(descriptor)
    os.close(reading)
    os.close(writing)


def test_one_that_leaves_its_output_open_to_others_is_not_waited_for() -> None:
    script = "setsid sleep 600 & echo $!; exit 3"
    ended = asyncio.run(Program(["sh", "-c", script]).run(None))
    assert ended.status == 3
    os.kill(int(ended.output), 9)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["no-such-command"], "No such file or directory"),
        (["/etc"], "Permission denied"),
    ],
)
def test_one_that_cannot_be_started_is_named_with_the_reason(words: list[str], reason: str) -> None:
    with pytest.raises(NotStartedError, match=f"^{words[0]}: {reason}"):
        asyncio.run(Program(words).run(LONG_S))


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("a\0b", "embedded null byte"),
        ("\udcff\ud800", "'utf-8' codec can't encode"),
        ("a" * (1 << 18), "Argument list too long"),
    ],
    ids=["NUL", "surrogate", "long"],
)
def test_words_that_no_program_can_be_given_are_told_from_one_that_is_missing(
    word: str, reason: str
) -> None:
    for program in (Program(["true", word]), Program(["true"], clean(WORD=word))):
        with pytest.raises(UnfitWordsError, match=f"^true: {reason}"):
            asyncio.run(program.run(LONG_S))


def test_one_that_is_to_end_well_fails_in_its_own_words() -> None:
    failing = Program(["sh", "-c", "echo no room >&2; exit 2"])
    with pytest.raises(HapteraError, match=r"^sh: no room$"):
        asyncio.run(failing.done(LONG_S))
    with pytest.raises(HapteraError, match=r"^sleep has not ended within 0 s$"):
        asyncio.run(Program(["sleep", "600"]).done(0))


def test_programs_are_run_here_alone() -> None:
    """Another one in a module or a daemon: use `Program`."""
    source = Path(haptera.__file__).parent
    places = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in WAYS
    }
    known = {one for one in places if one in OTHERWISE or one.partition("/")[0] in OTHERWISE}
    assert places - known == set()
