"""What shells offer: bash itself runs the script; zsh and fish read theirs where they are."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haptera.cli.commands.completion import SHELLS
from haptera.cli.main import OK, run
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from tests.api.serving import WITHIN_S, serving
from tests.cli.test_commands import point_at

pytestmark = [pytest.mark.net, pytest.mark.slow]

NODES = [node_id(name) for name in ("rack1n1", "rack1n2", "rack1n10", "rack2n1")]
WEB = EntityId("service", "web", "rack1n1")
# A shell starts haptera for each line that is typed to it.
ALL_WITHIN_S = 3 * WITHIN_S
# As a terminal has it where nobody changed it, and as some set it.
BREAKS = [" \t\n\"'@><=;|&(:", " \t\n\"'><;|&("]

OFFERED = [
    ("haptera fr", ["freeze"]),
    ("haptera tok", ["token"]),
    ("haptera token re", ["revoke"]),
    ("haptera status --ch", ["--check"]),
    ("haptera status -o ", ["table", "wide", "json", "yaml", "name"]),
    ("haptera status rack1", ["rack1n1", "rack1n2", "rack1n10"]),
    ("haptera --client client.json why rack2", ["rack2n1"]),
    ("haptera get serv", ["service", "service:"]),
    ("haptera chain node:rack2", ["node:rack2n1"]),
    ("haptera chain service:", ["service:web@rack1n1"]),
    ("haptera chain service:web@r", ["service:web@rack1n1"]),
    ("haptera set node:rack1n1 pow", ["power=", "power_profile=", "power_why="]),
    ("haptera set node:rack1n1 power=o", ["power=off", "power=on"]),
    ("haptera set node:rack1n1 power=on bu", ["busy="]),
    ("haptera unset service:web@rack1n1 com", ["command"]),
    ("haptera completion z", ["zsh"]),
    ("haptera status nothing-begins-so", []),
]

ASK_BASH = """\
eval "$(haptera completion bash)"
compopt() { :; }
COMP_WORDBREAKS=$1
shift
for COMP_LINE; do
    COMP_POINT=${#COMP_LINE}
    _haptera_completion haptera
    echo "${COMPREPLY[*]}"
done
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A cluster and a client file, and `haptera` on the path."""
    made = tmp_path_factory.mktemp("completion")
    program = made / "haptera"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m haptera "$@"\n')
    program.chmod(0o755)
    changes = [Declare(one, {}, "site") for one in (*NODES, WEB)]
    with serving(*changes, SetDesired(NODES[0], "power", "on", "site")) as one:
        with pytest.MonkeyPatch.context() as patch:
            point_at(one.url, "admin-token", patch, made)
        yield made


def environment(folder):
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "HAPTERA_CLIENT": str(folder / "client.json")}


def asked(shell, script, folder, *arguments):
    done = subprocess.run(
        [shell, *arguments] if script is None else [shell, "-c", script, shell, *arguments],
        env=environment(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=ALL_WITHIN_S,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("breaks", BREAKS)
def test_bash_offers_what_could_be_typed_next(breaks, folder):
    """Without what bash takes for complete already, by where it breaks words."""
    lines = [line for line, _ in OFFERED if "@" in breaks or {*":="} & {*line}]
    found = asked("bash", ASK_BASH, folder, breaks, *lines)
    assert dict(zip(lines, found, strict=True)) == {
        line: " ".join(one[complete(line, breaks) :] for one in offered)
        for line, offered in OFFERED
        if line in lines
    }


def complete(line, breaks):
    word = line.rpartition(" ")[2]
    return max((word.rfind(one) + 1 for one in ":=@" if one in breaks), default=0)


def test_without_a_parent_what_is_known_without_one_is_offered(folder, tmp_path):
    client = tmp_path / "client.json"
    client.write_text('{"url": "unix:/nowhere", "token": "t"}')
    client.chmod(0o600)
    line = f"haptera --client {client} get node"
    assert asked("bash", ASK_BASH, folder, BREAKS[0], line) == ["node node:"]


ASK_FISH = """\
haptera completion fish | source
for line in $argv
    complete --do-complete $line | string replace --regex '\\t.*' '' | string join ' '; or true
end
"""


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_what_could_be_typed_next(folder, tmp_path):
    script = tmp_path / "ask.fish"
    script.write_text(ASK_FISH)
    lines = [line for line, offered in OFFERED if offered]
    found = asked("fish", None, folder, script, *lines)
    assert [sorted(line.split()) for line in found] == [
        sorted(offered) for _, offered in OFFERED if offered
    ]


# What zsh's own functions of completion would get, without a terminal to show it on.
ASK_ZSH = """\
compdef() { : }
compadd() { found+=($completions) }
_describe() { found+=(${completions_with_descriptions%%:*}) }
eval "$(haptera completion zsh)"
for line; do
    words=("${(@s: :)line}") CURRENT=${#words} found=()
    _haptera_completion
    print -r -- $found
done
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_offers_what_could_be_typed_next(folder, tmp_path):
    script = tmp_path / "ask.zsh"
    script.write_text(ASK_ZSH)
    # What has a colon is told with its description, which a colon begins.
    asked_for = [one for one in OFFERED if ":" not in "".join(one[1])]
    found = asked("zsh", None, folder, "-f", script, *(line for line, _ in asked_for))
    assert [sorted(line.split()) for line in found] == [sorted(one) for _, one in asked_for]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_can_read_its_script(shell, capsys, tmp_path, folder):
    assert run(["completion", shell]) == OK
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    assert "_HAPTERA_COMPLETE" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script is not read")
    asked(shell, None, folder, "-n", str(script))


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("zsh", {"COMP_WORDS": "haptera chain node:rack2", "COMP_CWORD": "2"}),
        ("fish", {"COMP_WORDS": "haptera chain node:rack2", "COMP_CWORD": "node:rack2"}),
    ],
)
def test_what_zsh_and_fish_ask_is_answered(shell, words, folder):
    """By the question that their scripts ask, whether or not they are installed."""
    done = subprocess.run(
        [folder / "haptera"],
        env={**environment(folder), **words, "_HAPTERA_COMPLETE": f"{shell}_complete"},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert "node:rack2n1" in done.stdout
    assert Path(folder / "client.json").exists()
