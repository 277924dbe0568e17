"""Every command of every page is typed, in the order of its page, and answers what that quotes.

What stands in fences of `sh` and `console` is typed here, to what `stages.py` has for it; the
the tour's in its transcript. What cannot be typed in a test is listed below, with the reason.
"""

import re
import select
import shutil
import sys
from pathlib import Path

import pytest

from haptera.cli.main import INTERRUPTED, OK
from haptera.runtime import clock
from tests.cli.test_help import calls_of
from tests.docs.pages import (
    BEGINS,
    FENCE,
    PAGES,
    ROOT,
    Quoted,
    in_sentences,
    name_of,
    sessions,
)
from tests.docs.running_demo import PAGES_OF_DEMOS
from tests.docs.stages import ADDRESS, STAGES
from tests.network import draw_cluster
from tests.shell import Going, Shell, shell
from tests.test_transcripts import LEFT_OUT, quotes
from tests.transcripts.playing import WITHIN_NS, named, read, transcripts

COMMENT = re.compile(r"\s+#\s.*")
# Typed before it, the page itself says so: this is to fail.
REFUSED = re.compile(r"\s# refused")
GOES_ON = re.compile(r"haptera (?:serve|lab|watch)\b")
# What only looks may be typed again: it answers what the page says so soon, not at once.
LOOKS = re.compile(r"(?:haptera (?:status|why|chain|get|logs|queue|jobs|module list)|cat|ls)\b")
NEEDED = {name for name in ("curl", "dot", "perl", "zsh", "fish") if shutil.which(name) is None}

WATCHED = "until Ctrl-C: tests/cli/test_watching.py"
RACK = "virtual machines, as root: tests/test_demos.py runs the rack's demo, whose check does it"
BROKEN = "tests/lab/test_breaking.py and the rack's demo do it"
ROLLED = "of a real roll, as root: tests/test_demos.py runs its demo, whose check does it"
EXECUTED = "needs a node: tests/cli/test_exec.py and the check of the images' demo do it"
ANOTHER_MINOS = "needs machines that boot it: tests/minos/test_rack.py does it"
LOGGED_IN = "needs a machine that boots it: tests/minos/test_booted.py does it"
# Commands that no page's test types, and why.
MEASURED = "needs sensors: tests/cli/test_measured.py has some"
NOT_TYPED: dict[str, str] = {
    "haptera minos build": "takes half a minute, and a kernel: tests/minos/test_build.py does it",
    "haptera minos show": "of what was built there",
    "haptera bmc check NODE": "needs a BMC of another maker: tests/cli/test_bmc_check.py has one",
    "haptera minos build --ssh-keys ~/.ssh/id_ed25519.pub": LOGGED_IN,
    "ssh root@10.0.0.101": LOGGED_IN,
    "make demo DEMO=rack": RACK,
    "make demo DEMO=containers": "tests/test_demos.py runs it with ARGS=--once",
    "make demo DEMO=containers ARGS=--once": "tests/test_demos.py runs it",
    "make demo DEMO=slurm": "tests/test_demos.py runs it with ARGS=--once",
    ".venv/bin/haptera lab break machine rack1n1 --dir .haptera/demos/rack": RACK,
    "haptera lab break": BROKEN,
    ".venv/bin/haptera lab break cable rack1n2 --for 60s --dir .haptera/demos/rack": BROKEN,
    ".venv/bin/haptera lab break bmc rack1n1 --dir .haptera/demos/rack": BROKEN,
    ".venv/bin/haptera lab break bmc rack1n1 --mend --dir .haptera/demos/rack": BROKEN,
    ".venv/bin/haptera --client .haptera/demos/rack/.haptera/api.sock "
    "set 'node:rack2n[4-7]' power=on agent=up": RACK,
    ".venv/bin/haptera lab --dir /tmp/rack --vms 4": RACK,
    ".venv/bin/haptera lab --dir /tmp/rack --vms 2 --uefi --bmc redfish": RACK,
    "make demo DEMO=rack ARGS=--once": RACK,
    "haptera console rack1n1": "needs a BMC: tests/cli/test_forms.py does it",
    "haptera console --follow rack1n1": "as above",
    "haptera get node:n1 -o wide": MEASURED,
    "haptera get node:n1 --samples temp.inlet --last 2h": MEASURED,
    "haptera get 'rack1*' --samples temp.inlet": MEASURED,
    "haptera get node:n1 --samples temp.inlet -o json": MEASURED,
    "haptera get -o name 'temp.inlet>35'": MEASURED,
    "haptera top --by temp.inlet -n 10": "tests/cli/test_top.py does it",
    "haptera exec": EXECUTED,
    "haptera exec n1/compute -- COMMAND": EXECUTED,
    'haptera token make eve --scope exec --within "rack1n*" --for 8h': "tests/cli/test_exec.py",
    "haptera exec rack1n1 -- uptime": EXECUTED,
    "haptera exec rack1n1/login -- cat /etc/os-release": EXECUTED,
    'haptera exec -i rack1n1 -- sh -c "cat > /etc/motd" < motd': EXECUTED,
    "haptera debug story ENTITY": "tests/cli/test_story.py does it",
    "haptera override": "tests/core/test_safety.py and tests/cli/test_forms.py do it",
    "haptera override NODE -m WHY": "tests/core/test_safety.py and tests/cli/test_forms.py do it",
    "haptera audit verify": "tests/cli/test_audit.py does it",
    "haptera module reload": "tests/cli/test_reloading.py does it",
    "haptera module reload NAME": "tests/cli/test_reloading.py does it",
    "haptera module reload outlet": "tests/cli/test_reloading.py does it",
    "haptera serve --keep-user personality": "tests/cli/test_confined.py serves so",
    "haptera serve --keep-user MODULE": "tests/cli/test_confined.py serves so",
    "make demo": "until Ctrl-C",
    "make demo ARGS=--once": "the last step of `make test`",
    "make demo DEMO=images ARGS=--once": "needs root: tests/modules/test_images_live.py",
    "make demo DEMO=pools ARGS=--once": "tests/test_demos.py runs it",
    "make demo DEMO=platform ARGS=--once": "tests/test_demos.py runs it",
    "haptera get --watch lease": "tests/cli/test_watching.py watches kinds",
    "haptera roll start": "tests/cli/test_roll.py does it",
    "haptera rehearse roll": "tests/cli/test_rehearse.py does it",
    "haptera rehearse compare ROLL": ROLLED,
    "haptera roll SELECTOR --image NAME --rehearsed": "tests/cli/test_rehearse.py does it",
    "make demo DEMO=queue ARGS=--once": "tests/test_demos.py runs it",
    "haptera health scores": "tests/cli/sessions/health.txt",
    "haptera lemons": "tests/cli/sessions/lemons.txt",
    "make demo DEMO=health ARGS=--once": "needs root: tests/test_demos.py runs it",
    "make demo DEMO=groups ARGS=--once": "needs root: tests/test_demos.py runs it",
    "make demo DEMO=channels ARGS=--once": "it lasts a minute: tests/test_demos.py runs it",
    "haptera channels serve": "examples/channels/site.yaml has it run",
    "haptera get --watch replica": "tests/cli/test_watching.py watches kinds",
    "make demo DEMO=router ARGS=--once": "needs root: tests/test_demos.py runs it",
    "haptera fence run COMMAND": "tests/cli/test_fence.py does it",
    "haptera fence check FILE COMMAND": "tests/cli/test_fence.py does it",
    "make demo DEMO=roll ARGS=--once": "needs root: tests/test_demos.py runs it",
    "make demo DEMO=slurm ARGS=--once": "needs root: tests/test_demos.py runs it",
    "make demo DEMO=slurm_images ARGS=--once": "needs root: tests/test_demos.py runs it",
    "make demo DEMO=slurm_power ARGS=--once": "needs root: tests/test_demos.py runs it",
    "for name in suspend resume reboot; do install -D -m 755 contrib/slurm/node-power "
    "/etc/haptera/slurm/$name; done": "the demo slurm_power installs it so",
    "(umask 077; haptera token make slurm --scope write --for 365d --client-file "
    "> /etc/haptera/slurm.json)": "the demo slurm_power makes it so",
    "haptera roll resume debian-b": "it follows the roll: tests/cli/test_roll.py types it",
    "haptera roll status --watch": WATCHED,
    "haptera trial status --watch": WATCHED,
    "haptera roll 'system:compute@n[1-4]' --image b --max-unavailable 1 --take --no-wait": ROLLED,
    "haptera roll timeline b -o svg > roll.svg": ROLLED,
    "haptera minos build --name 2026-12 --program runc": ANOTHER_MINOS,
    "haptera set 'node:n[01-40]' minos=2026-12 --take --dry-run": ANOTHER_MINOS,
    "haptera set 'node:n[01-40]' minos=2026-12 --take": ANOTHER_MINOS,
    "make core": "a part of `make check`",
    "make test": "it is what runs this",
    "make check": "a part of `make test`",
    "make changed": "takes a quarter of an hour: `.ci/run` runs it",
    "make nightly": "takes an hour",
    "make release": "takes minutes: tests/release/test_python.py makes one",
    "git tag -a vX.Y.Z -m vX.Y.Z": "as above, in a repository of its own",
    "haptera get --samples": "tests/cli/test_samples.py types it",
    "haptera serve --samples-mib MIB": "as above",
    "python -m haptera.planner FILE --explain": "docs/reference/problem.md types it with a file",
    "haptera plan -": "`apply -` reads a site in the same way: tests/cli/test_bad_input.py",
    "python -m tests.cli.playing NAME": "writes files of the tests'",
    ".venv/bin/python -m tests.cli.playing NAME": "writes files of the tests'",
    ".venv/bin/python -m tests.gate record": "writes a file of the tests'",
    "make gpu": "needs an NVIDIA GPU",
    "make soak HOURS=500": "takes half an hour",
    "make demo DEMO=NAME": "each example's demo is run by the campaign",
    "pip install haptera": "asks an index of packages",
    "pip install '.[parent]'": "asks an index of packages",
    "pip install 'haptera[parent]'": "asks an index of packages",
    "pip wheel -w wheels '.[parent]'": "asks an index of packages",
    "pip install --no-index --find-links wheels 'haptera[parent]'": "needs the wheels",
    "haptera import ansible": "docs/reference/import.md types it with its files",
    "haptera import warewulf": "docs/reference/import.md types it with its files",
    "make setup": "the first step of `make demo`",
    "make setup-dev": "the first step of `make test`",
    "make clean": "it removes the environment that this runs in",
    "haptera --client primary.json standby --dir /srv/standby --listen 10.0.0.2": (
        "tests/daemon/test_standby.py runs one"
    ),
    "haptera serve --dir /srv/m1 --listen 10.0.0.11 --name m1 --above root.json"
    " --above standby.json": "examples/tree/parents.sh starts three",
    "haptera serve --dir /srv/cluster --listen 10.0.0.1 --etcd etcd.json": (
        "tests/daemon/test_etcd_lease.py runs one"
    ),
    "haptera --client primary.json standby --dir /srv/standby --listen 10.0.0.2 --etcd etcd.json": (
        "tests/daemon/test_etcd_lease.py runs one"
    ),
    "make demo DEMO=tree": "tests/test_demos.py runs it",
    "haptera promote --dir /srv/standby": "tests/daemon/test_standby.py runs one",
    "haptera promote": "tests/daemon/test_standby.py runs one",
    "make docs": "asks an index of packages: tests/release/test_site.py builds it",
    "make lock": "asks an index of packages",
    "make lock ARGS=--upgrade": "asks an index of packages",
    "apt install make curl python3-venv iproute2": "asks an index of packages, as root",
    "pip install pyperplan": "asks an index of packages",
    "pip install .": "tests/cli/test_creating.py installs a new module",
    "pip install examples/fans": "tests/kinds/test_brought.py installs it",
    ".venv/bin/python -m tests.transcripts NAME": "tests/test_transcripts.py compares the same",
    "python -m tests.world.hunt 0-5000": "takes hours; tests/world/test_storm.py has some",
    ".venv/bin/python -m benchmarks.hello_path": "measures for minutes, by hand",
    ".venv/bin/python -m benchmarks.planner": "measures for minutes, by hand",
    "haptera evict NODE": "it ends a session for good: tests/cli/test_evicting.py",
    "haptera agent --respawn": "the first process of a minOS: tests/daemon/test_respawn.py",
    "haptera agent": "a BMC starts it, with a token: all labs do",
    "haptera status --watch": WATCHED,
    "haptera diff --watch FILE": WATCHED,
    "haptera chain --watch ENTITY": WATCHED,
    "haptera freeze --watch": WATCHED,
    "haptera get --watch node:NAME": WATCHED,
    "haptera get --watch module": WATCHED,
    "haptera get --watch image:NAME": WATCHED,
    "haptera get --watch job": WATCHED,
    "haptera logs -f ENTITY": "it does not end: tests/cli/test_following.py",
    "haptera VERB --help": "tests/cli/test_help.py reads it of every verb",
    "haptera apply off.yaml --digest HEX": "HEX is another each time: tests/cli/test_plans.py",
    "haptera serve --listen": "each parent here is started so",
    "haptera serve --blast-radius PERCENT": "the page's own parent is started so",
}
TRANSCRIBED = "docs/tutorial/tour.md"
# Typed, with all that it builds, by tests/minos/test_build.py.
BUILT = "docs/tutorial/minos.md"
# As root on a machine of its own; the pages themselves say where they were typed.
BY_ROOT = (
    "docs/reference/ansible.md",
    "docs/reference/modules.md as root",
    "docs/tutorial/install.md",
)
# Typed, with all that each needs, in tests of their own: test_arm64_page.py, test_slurm_page.py,
# test_demo_pages.py.
ALONE = ("docs/tutorial/arm64.md", "docs/tutorial/slurm.md", *PAGES_OF_DEMOS.values())
# Needs three machines with BMCs; the check of the rack's demo does the same to virtual ones.
BY_HAND = ("docs/tutorial/first-cluster.md",)

FOUND = {name: typed for page in PAGES for name, typed in sessions(page).items()}
TRANSCRIPTS = [one.command for path in transcripts() for one in read(path).typed]
LINES = {*TRANSCRIPTS, *(COMMENT.sub("", one.command) for all_ in FOUND.values() for one in all_)}
TYPED = {call for line in LINES if line not in NOT_TYPED for call in calls_of(line)}


def bare(command: str) -> str:
    return COMMENT.sub("", command)


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", STAGES)
def test_a_page_answers_what_it_says(name: str, tmp_path: Path) -> None:
    typed = [one for one in FOUND[name] if bare(one.command) not in NOT_TYPED]
    if missing := {word for one in typed for word in re.findall(r"\w+", one.command)} & NEEDED:
        pytest.skip(f"the page's commands need {', '.join(missing)}")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    going: list[Going] = []
    with STAGES[name](tmp_path) as variables, shell(tmp_path, variables) as one:
        for quoted in typed:
            if GOES_ON.match(quoted.command):
                going.append(begun(one, bare(quoted.command)))
            else:
                answered(one, quoted, tmp_path)
        for other in reversed(going):
            assert one.interrupt(other) in (OK, INTERRUPTED), other.written.read_text()


def begun(typing: Shell, command: str) -> Going:
    """What goes on until the end of its page; a parent once it can be asked."""
    # The address that it has by default may be that of a parent of somebody's own.
    own = f" --listen {ADDRESS}" if command.startswith("haptera serve") else ""
    if command.startswith("haptera lab"):
        draw_cluster(Path(typing.type("pwd")[1].strip()))
    going = typing.begin(command + own)
    if not command.startswith("haptera watch"):
        answered(typing, Quoted("haptera status", ""), Path())
    return going


def answered(typing: Shell, quoted: Quoted, folder: Path) -> None:
    """Type it, again if it only looks, until it answers what the page quotes."""
    deadline = clock.now_ns() + WITHIN_NS
    while True:
        began = clock.now_ns()
        code, written = typing.type(quoted.command)
        if as_quoted(quoted, code, named(lines(written), folder)):
            return
        ended = clock.now_ns()
        again = LOOKS.match(quoted.command) is not None and ended < deadline
        assert again, f"{quoted.command}: {code}\n{written}"
        # What is waited for needs the processors, too.
        select.select((), (), (), (ended - began) / 1e9)


def lines(written: str) -> str:
    """Also what has no end of line stands on a line of its own on a page."""
    return written if written.endswith("\n") or not written else f"{written}\n"


def as_quoted(quoted: Quoted, code: int, written: str) -> bool:
    if quoted.output.strip() not in ("", LEFT_OUT):
        return quotes(named(quoted.output), written)
    return (code == OK) is (REFUSED.search(quoted.command) is None)


def test_every_session_of_every_page_is_typed() -> None:
    typable = [
        name
        for name, typed in FOUND.items()
        if name not in (TRANSCRIBED, BUILT, *BY_ROOT, *ALONE, *BY_HAND)
        and any(bare(one.command) not in NOT_TYPED for one in typed)
    ]
    assert typable == [*STAGES]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_names_is_typed_somewhere(page: Path) -> None:
    """A command in a sentence: its verb is typed, with all the options that are named."""
    assert [line for line in in_sentences(page) if not is_typed(line)] == []


def is_typed(line: str) -> bool:
    if line in NOT_TYPED or line in LINES:
        return True
    called = [*calls_of(line)]
    return bool(called) and all(
        any(path[: len(verb)] == verb and options <= given for path, given in TYPED)
        for verb, options in called
    )


def test_each_command_of_the_readme_is_in_a_transcript() -> None:
    quoted = {bare(one.command) for one in FOUND[TRANSCRIBED]}
    assert quoted - {*TRANSCRIPTS} - set(NOT_TYPED) == set()


def test_nothing_is_listed_that_no_page_has() -> None:
    assert set(NOT_TYPED) - LINES - {line for page in PAGES for line in in_sentences(page)} == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_stand_in_fences_of_sh_and_console_only(page: Path) -> None:
    begins = re.compile(rf"^(?:\$ |{BEGINS})", re.MULTILINE)
    elsewhere = [
        text
        for language, _, text in FENCE.findall(page.read_text(encoding="utf-8"))
        if language not in ("sh", "console") and begins.search(text) is not None
    ]
    assert elsewhere == []


def test_an_answer_that_is_not_as_quoted_is_found() -> None:
    assert as_quoted(Quoted("haptera status", f"one\n{LEFT_OUT}\n"), OK, "one\ntwo\n")
    assert not as_quoted(Quoted("haptera status", "one\n"), OK, "two\n")
    assert not as_quoted(Quoted("haptera apply site/", ""), 1, "error: no\n")
    assert not as_quoted(Quoted("haptera apply site/", f"{LEFT_OUT}\n"), 1, "error: no\n")
    assert not as_quoted(Quoted("haptera apply site/  # refused: not yours", ""), OK, "")
