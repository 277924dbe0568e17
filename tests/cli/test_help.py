"""What `--help` says: two examples at least of each command, each of which can be typed."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from haptera.cli.input.naming import NodeName
from haptera.cli.main import OK, USAGE, cli, run
from haptera.client import calls as api_calls

EXAMPLES_MIN = 2
WITHIN = re.compile(r"\$\((haptera [^)]*)\)")


def commands(group=cli, path=()):
    """Each command that does something, by the words it is called with."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield (*path, name), command


EVERY = dict(commands())


def test_a_verb_is_in_the_file_of_its_name():
    places = {path: command.callback.__module__ for path, command in EVERY.items()}
    elsewhere = {
        " ".join(path): place
        for path, place in places.items()
        if not set(path) & {place.rpartition(".")[2].rstrip("_")}
        or not place.startswith("haptera.cli.commands.")
    }
    assert elsewhere == {}


def examples(command):
    """The lines below `Examples:`, which stands on a line of its own."""
    _, _, told = (command.help or "").partition("Examples:\n")
    return [line.strip() for line in told.partition("\n\n")[0].splitlines() if line.strip()]


def calls(line):
    """The arguments of each call of haptera in a line for a shell, without what is redirected."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    words.whitespace_split = True
    call, skip = [], False
    for word in [*words, ";"]:
        if skip:
            skip = False
        elif re.fullmatch(r"[<>]+", word):
            skip = True
        elif re.fullmatch(r"[|&;]+", word):
            if call[:1] == ["haptera"]:
                yield call[1:]
            call = []
        else:
            call.append(word)


def parsed(arguments):
    """The words of the command that these arguments call, all of them read by it."""
    found, command, context = [], cli, None
    while True:
        name = found[-1] if found else "haptera"
        context = command.make_context(name, [*arguments], parent=context)
        # Click is about to keep all of them in `args`.
        arguments = [*getattr(context, "_protected_args", ()), *context.args]
        if not isinstance(command, click.Group) or not arguments:
            return tuple(found)
        name, command, arguments = command.resolve_command(context, arguments)
        found.append(name)


def calls_of(line):
    """Of each call of haptera in a line, in a `$(…)` too: the verb, and the options it names."""
    inner = WITHIN.findall(line)
    for call in (one for text in (*inner, WITHIN.sub("X", line)) for one in calls(text)):
        command, verb, options = cli, (), set()
        for word in call:
            known = {name: one.opts[-1] for one in command.params for name in one.opts}
            if isinstance(command, click.Group) and word in command.list_commands(None):
                command, verb = command.get_command(None, word), (*verb, word)
            elif (name := word.partition("=")[0]).startswith("-"):
                options.add(known.get(name, name))
        yield verb, frozenset(options)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_each_command_shows_two_examples_that_can_be_typed(path, monkeypatch, tmp_path):
    (tmp_path / "invitation.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    told = examples(EVERY[path])
    assert len(told) >= EXAMPLES_MIN, f"haptera {' '.join(path)} --help"
    for line in told:
        assert path in [parsed(call) for call in calls(line)], line


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_examples_stand_one_a_line_in_the_help(path, capsys):
    assert run([*path, "--help"]) == OK
    shown = capsys.readouterr().out
    for line in examples(EVERY[path]):
        assert f"\n    {line}\n" in shown, "a docstring with examples begins with r, and has a \\b"


@pytest.mark.parametrize("group", ["", "import", "module", "secret", "site", "token"])
def test_a_list_of_commands_says_whole_sentences(group, capsys):
    assert run([*group.split(), "--help"]) == OK
    listed = capsys.readouterr().out.partition("Show this message and exit.\n")[2]
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize("verb", ["", "why", "token make", "roll start"])
def test_help_has_a_short_word(verb, capsys):
    assert run([*verb.split(), "-h"]) == OK
    assert "-h, --help" in capsys.readouterr().out


def test_each_verb_about_one_node_takes_its_name_and_its_entity():
    about = {
        path: one.type
        for path, command in EVERY.items()
        for one in command.params
        if one.name == "node" and isinstance(one, click.Argument)
    }
    assert len(about) > 3
    assert [path for path, form in about.items() if not isinstance(form, NodeName)] == []


# The verbs of calls that are called otherwise.
VERBS = {
    "begin_roll": "roll start",
    "cancel_job": "cancel",
    "cancel_jobs": "cancel",
    "describe": "set",
    "desire": "set",
    "patch": "set",
    "release_brake": "brake",
}
WITH_WHY = [
    name
    for name, one in vars(api_calls).items()
    if getattr(one, "__module__", None) == api_calls.__name__
    and "why" in getattr(one, "__annotations__", ())
]


@pytest.mark.parametrize("call", WITH_WHY)
def test_whoever_changes_something_can_say_why(call):
    command = EVERY[tuple(VERBS.get(call, call).split())]
    assert "-m" in [name for one in command.params for name in one.opts]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("token create", "'create': it is haptera token make."),
        ("token delete", "'delete': it is haptera token revoke."),
        ("validate", "'validate': it is haptera check."),
        ("describe", "'describe': it is haptera why."),
    ],
)
def test_what_other_programs_call_a_verb_is_answered_with_its_name(words, told, capsys):
    assert run(words.split()) == USAGE
    assert capsys.readouterr().err.splitlines()[-1] == f"Error: No such command {told}"


def test_a_word_that_is_no_command_is_told():
    with pytest.raises(click.UsageError, match="No such command"):
        parsed(["statsu"])
    with pytest.raises(click.UsageError, match="No such option"):
        parsed(["status", "--chek"])


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("strt", "No such command 'strt'. (Did you mean one of: 'start', 'status'?)"),
        ("rack1n*", "Missing option '--image'."),
    ],
)
def test_a_mistyped_command_of_rolls_is_no_selector(word, told):
    ended = CliRunner().invoke(cli, ["roll", word])
    assert (ended.exit_code, ended.output.rpartition("Error: ")[2].strip()) == (2, told)
