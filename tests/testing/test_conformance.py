"""What `haptera module check` finds: nothing in honest modules, each fault in wrong ones."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from haptera.cli.main import OK, REFUSED, USAGE, run
from haptera.conformance import CHECKS, CheckedModule, CheckVerdict, Report, check_module
from haptera.conformance.asking import check_reading
from haptera.conformance.report import CheckFailed
from haptera.model.parts import Context, Look
from haptera.modules import BUNDLED, load
from haptera.runtime.processes.places import ModulePlace
from tests.docs.answer_schemas import FOLDER, MODULE_CHECK
from tests.docs.problem_schema import valid_by
from tests.liars.modules import WAYS

pytestmark = [pytest.mark.net, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = FOLDER / MODULE_CHECK
PERL = ROOT / "examples" / "lamp_in_perl" / "lamp.pl"
# The fault, the check that finds it, and what that saw.
FAULTS = {
    "eager": ("waits-for-begin", "it sent `ready` before `begin`"),
    "two-faced": ("begins", "it declares the name of another module: {'op': 'ready'"),
    "absurd": (
        "can-be-planned-with",
        "lamp.look: it serves kind 'toaster', which is not declared [malformed]",
    ),
    "fickle": ("declares-again", "a second process declares something else"),
    "silent": ("answers-pings", "no `pong` within 5 s of a `ping`"),
    "hasty": ("takes-frames-cut-anywhere", "it ended: status 1: half a frame"),
    "narrow": ("takes-a-full-frame", "it ended: status 1: too much at once"),
    "strict": ("skips-unknown-keys", "it ended: status 1: a key that I do not know"),
    "alone": ("two-at-once", "it ended: status 1: OSError: [Errno 98] Address already in use"),
    "obliging": ("refuses-unknown-parts", "a call of an undeclared part was answered "),
    "late": ("refuses-late-looks", "look started after its deadline"),
    "unsure": ("refuses-late-looks", "look was called after its deadline, and failed: 'too late'"),
    "few": ("serves-side-by-side", "no answer within 1 s"),
    "lumping": (
        "tells-entities-apart",
        "with two other calls at the same time, the answer was Failed(",
    ),
    "headlong": ("heeds-stops", "it ended: status 1: no such op"),
    "untrue": ("heeds-stops", "switch_on was `refused`, and power is 'on', not 'off'"),
    "insistent": (
        "forgets-what-is-cancelled",
        "it sent an unrequested frame: {'op': 'answered', 'id': 1",
    ),
    "picky": ("skips-unknown-cancels", "it ended: status 1: I know no such call"),
    "dim": ("look look", "it found 'dim', which is not one of its outcomes"),
    "old": ("look look", "`at_ns` is 1, but the look was requested at "),
    "grasping": ("look look", "it failed: 'no port: Permission denied"),
    "wordless": ("look look", "a look was answered `ended`"),
    "twice": (
        "look look",
        "it sent an unrequested frame: {'op': 'answered', 'id': 1, 'value': 'off'",
    ),
    "staring": (
        "watch look",
        "it sent an unrequested frame: {'op': 'sighted', 'id': 1, 'value': 'off'",
    ),
    "lazy": ("takes-steps", "after switch_on power is 'off', not 'on'"),
    "half-held": ("holds-and-releases", "a request to hold was answered Failed("),
    "stuck": ("holds-and-releases", "a request to release was answered Failed("),
    "immortal": ("ends-with-its-link", "it continued to run for 2 s after its link was closed"),
    "anyhow": (
        "ends-on-another-beginning",
        "it continued to run for 2 s after a first frame that was",
    ),
    "patient-at-rubbish": (
        "ends-on-rubbish",
        "it continued to run for 2 s after invalid MessagePack",
    ),
    "patient": (
        "ends-on-a-frame-too-large",
        "it continued to run for 2 s after a frame whose length is over 1 MiB",
    ),
    "lenient": ("ends-on-an-unknown-op", "it continued to run for 2 s after an unknown `op`"),
    "leaky": ("keeps-secrets", "a secret is in its output"),
    "chatty": ("keeps-secrets", "a secret is in its output"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
@pytest.mark.long
def test_each_fault_is_found_by_its_check(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    name, seen = FAULTS[fault]
    report = check_module(faulty(fault), only=[name])

    failed = {one.name: one.seen for one in report.checks if one.verdict is CheckVerdict.FAILED}
    assert list(failed) == [name]
    assert failed[name][: len(seen)] == seen


@pytest.mark.slow
def test_a_lamp_without_faults_passes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    report = check_module(faulty("none"))

    assert wrong(report) == {}
    assert {one.name for one in report.checks} == {*CHECKS, "look look", "watch look"}


# What is seen of the modules that do a parent harm (tests/liars) when their steps are taken.
STEPS = {
    "raises": "switch_on failed: 'RuntimeError: on fire'$",
    "hangs": "no answer within 1 s",
    "blocks": "no `pong` within 5 s of a `ping`",
    "exits": "it ended: status 7",
    "killed": "it ended: killed by SIGKILL",
    "rubbish": "it sent a malformed frame",
    "raises_looking": "it failed: 'RuntimeError: on fire'",
    "hangs_looking": "no answer within 1 s",
    "melts": "it failed: .*look_power found 'melting', which is not among its outcomes",
    "melts_rudely": "(it sent an unrequested frame: .*'op': 'answered'|it found 'melting')",
    "repeats": "it sent an unrequested frame: .*'op': 'answered'",
    "meddles": "it sent an unrequested frame: .*'text': 'meddled'",
    "floods": "it sent an unrequested frame: .*'op': 'sighted'",
    "gigabyte": "it sent a malformed frame",
    "leaks": "switch_on failed: .*Too many open files",
}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "honest"])
@pytest.mark.slow
@pytest.mark.long
def test_each_liar_is_caught(way: str) -> None:
    report = check_module(liar(way), only=["takes-steps"])

    (steps,) = [one for one in report.checks if one.name == "takes-steps"]
    assert steps.verdict is CheckVerdict.FAILED
    assert re.match(STEPS[way], steps.seen), steps.seen


OF_PYTHON = """\
import time

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module


def connect(target):
    CONNECT


module = Module("mine", connect=connect)
power = module.serves(node.power)


@power.look(outcomes=(Power.ON,))
async def look(_):
    LOOK
    return Power.ON
"""


@pytest.mark.parametrize(
    ("connect", "look", "failed", "told"),
    [
        (
            "open('/no/such/tty')",
            "pass",
            set(),
            "it failed: \"FileNotFoundError: [Errno 2] No such file or directory: '/no",
        ),
        (
            "pass",
            "time.sleep(4)",  # twice as long as it takes to be found
            {"look look"},
            "look blocks the event loop at mine.py:18, for ",
        ),
    ],
    ids=["connect raises", "a look blocks"],
)
@pytest.mark.slow
def test_what_goes_wrong_within_is_told_and_no_deadline_is_blamed(
    tmp_path: Path, connect: str, look: str, failed: set[str], told: str
) -> None:
    text = OF_PYTHON.replace("CONNECT", connect).replace("LOOK", look)
    (tmp_path / "mine.py").write_text(text)
    place = ModulePlace("mine", Context.SELF, str(tmp_path), place="mine:module")
    report = check_module(
        CheckedModule(place, patience_s=5.0), only=["refuses-late-looks", "look look"]
    )

    seen = {one.name: one.seen for one in report.checks}
    assert {one.name for one in report.checks if one.verdict is CheckVerdict.FAILED} == failed
    assert seen["look look"][: len(told)] == told


@pytest.mark.parametrize("value", ["current", 65 * "a"])
def test_a_digest_that_can_be_none_is_found_of_commands_too(value: str) -> None:
    look = Look("lamp", "look", "service", "applied", ("stale", "current"))
    with pytest.raises(CheckFailed, match=r"it found .*digest"):
        check_reading(look, value)
    check_reading(look, "stale")


@pytest.mark.slow
def test_the_folder_of_a_module_has_nothing_in_it_that_the_module_did_not_write(
    tmp_path: Path,
) -> None:
    connect = "found = [*target.run_dir.iterdir()]; assert not found, found"
    (tmp_path / "mine.py").write_text(OF_PYTHON.replace("CONNECT", connect).replace("LOOK", "pass"))
    place = ModulePlace("mine", Context.SELF, str(tmp_path), place="mine:module")
    report = check_module(CheckedModule(place), only=["look look"])

    assert {one.name: one.seen for one in report.checks}["look look"] == "it found 'on'"


# Settings that a module cannot do without.
SETTINGS = {name: {"user": "admin", "password": "short"} for name in ("ipmi", "redfish")}
SETTINGS["qemu"] = {"arguments": []}
NOBODY = {"bmc": "127.0.0.1:9"}
# As long as the daemon waits for a sign of life: other tests may take the processors.
PATIENCE_S = 30


@pytest.mark.parametrize(
    ("name", "attributes"),
    [(name, NOBODY if name == "redfish" else {}) for name in BUNDLED],
)
@pytest.mark.slow
def test_nothing_is_wrong_with_the_modules_that_come_with_haptera(
    name: str, attributes: dict[str, str]
) -> None:
    place = ModulePlace(name, Context.SELF, "", place=BUNDLED[name])
    settings = SETTINGS.get(name, {})
    report = check_module(
        CheckedModule(place, settings, attributes=attributes, patience_s=PATIENCE_S)
    )

    assert [one for one in report.checks if one.verdict is CheckVerdict.FAILED] == []


@pytest.mark.slow
@pytest.mark.campaign
def test_each_look_at_a_bmc_that_does_not_answer_ends_in_time() -> None:
    """Not with as many calls as it takes at once: `ipmitool` waits for seconds in each."""
    looks = [part for part in load("ipmi").manifest().parts if isinstance(part, Look)]
    place = ModulePlace("ipmi", Context.SELF, "", place=BUNDLED["ipmi"])
    subject = CheckedModule(place, SETTINGS["ipmi"], attributes=NOBODY, patience_s=PATIENCE_S)
    report = check_module(subject, only=[f"look {look.name}" for look in looks])

    assert {one.name for one in report.checks if one.verdict is not CheckVerdict.FAILED} == {
        "begins",
        *(f"look {look.name}" for look in looks),
    }


@pytest.mark.slow
def test_a_check_that_was_asked_for_and_could_not_be_made_is_told() -> None:
    report = check_module(liar("honest"), only=["holds-and-releases", "look no-such"])

    assert [(one.name, one.verdict) for one in report.checks] == [
        ("begins", CheckVerdict.PASSED),
        ("holds-and-releases", CheckVerdict.SKIPPED),
        ("look no-such", CheckVerdict.SKIPPED),
    ]


@pytest.mark.slow
def test_the_honest_one_passes_and_is_switched_once() -> None:
    report = check_module(liar("honest"))

    assert wrong(report) == {}
    told = {one.name: one.seen for one in report.checks}
    assert told["takes-steps"] == "ran, with the declared results: switch_on"


@pytest.mark.slow
def test_a_module_in_perl_passes_and_acts_only_where_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("perl") is None:
        pytest.skip("there is no perl here: apt install perl")
    words = ["module", "check", "--setting", f"folder={tmp_path}", "perl", str(PERL)]

    assert run([*words[:2], "-o", "json", *words[2:]]) == OK
    told = json.loads(capsys.readouterr().out)
    assert valid_by(told, SCHEMA, "CheckForm")
    assert not valid_by(told | {"passed": "all"}, SCHEMA, "CheckForm")
    skipped = [one["name"] for one in told["checks"] if one["verdict"] == "skipped"]
    assert (told["module"], told["failed"], skipped) == (
        "lamp",
        0,
        ["refuses-late-steps", "takes-steps"],
    )
    assert list(tmp_path.iterdir()) == []

    assert run([*words[:2], "--act", "--strict", *words[2:]]) == OK
    told = capsys.readouterr().out
    # Its steps are not stoppable.
    assert told.splitlines()[-1] == f"lamp: {len(CHECKS) - 1} passed"
    assert (tmp_path / "n01").read_text() in ("on", "off")


def test_a_command_that_cannot_run_fails_the_first_check_and_nothing_more_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "lamp"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o700)
    assert run(["module", "check", str(program)]) == REFUSED
    seen, _, counted = capsys.readouterr().out.splitlines()
    assert seen.startswith("failed  begins: it ended: status 1: ")
    assert "lamp: cannot be run: No such file or directory" in seen
    assert counted == "no module: 1 failed"

    assert run(["module", "check", "-o", "json", str(program)]) == REFUSED
    told = json.loads(capsys.readouterr().out)
    assert valid_by(told, SCHEMA, "CheckForm")
    (begins,) = told.pop("checks")
    assert told == {"module": None, "passed": 0, "failed": 1, "skipped": 0}
    assert "{verdict}  {name}: {seen}".format(**begins) == seen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--setting", "port", "sh"], "'port' has no value: write NAME=VALUE"),
        (["no/such.py"], "there is no file no/such.py"),
        (["no-such-program"], "there is no program no-such-program: name one in PATH, or write"),
        (["no/such/program", "--quiet"], "there is no program no/such/program: "),
        (["."], "there is no program .: "),
        (
            ["README.md"],
            "README.md is not executable: chmod +x it, or write the program that runs it first",
        ),
        (["--only", "begin", "sh"], "there is no check 'begin': did you mean begins?"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["module", "check", *words]) == USAGE
    assert said in capsys.readouterr().err


def faulty(fault: str) -> CheckedModule:
    command = (sys.executable, "-m", "tests.testing.faulty", fault)
    place = ModulePlace("lamp", Context.SELF, str(ROOT), command=command)
    return CheckedModule(place, acts=True, patience_s=5.0)


def liar(way: str) -> CheckedModule:
    place = ModulePlace(way, Context.PARENT, str(ROOT), place=f"tests.liars.modules:{way}")
    return CheckedModule(place, acts=True, patience_s=5.0)


def wrong(report: Report) -> dict[str, str]:
    return {one.name: one.seen for one in report.checks if one.verdict is not CheckVerdict.PASSED}
