"""A run fails for what fails alone, too; for what fails among others only, it says so."""

import tempfile
from pathlib import Path

import pytest

from tests.gate.__main__ import FAILED, OUT, PASSED, Run
from tests.gate.selection import Choice
from tests.gate.stages import Stage

# Passes from its second run on.
UNSTEADY = """
from pathlib import Path
def test_unsteady():
    seen = Path(__file__).with_suffix(".seen")
    there = seen.exists()
    seen.touch()
    assert there
"""
ALWAYS = "def test_always():\n    assert False\n"
# No file of tests has this mark: a stage that names it reads what its options name.
NOWHERE = "no" + "where"


@pytest.fixture
def folder():
    """A folder of the checkout: pytest names tests elsewhere by no path that leads to them."""
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as made:
        yield Path(made)


def stage_of(*files, **more):
    return Stage(
        "trial",
        marks="not net",
        holding=(NOWHERE,),
        workers="0",
        options=tuple(map(str, files)),
        **more,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        ("def test_well():\n    pass\n", PASSED, "trial                  0:0"),
        (UNSTEADY, PASSED, "unsteady, failed among others and passed alone"),
        (ALWAYS, FAILED, "ended with 1"),
        ("import nothing_of_this_name\n", FAILED, "ended with 2"),
        ("".join(ALWAYS.replace("always", f"n{n}") for n in range(4)), FAILED, "ended with 1"),
    ],
)
def test_a_failure_has_one_second_try_unless_there_are_many(folder, capfd, content, status, said):
    file = folder / "test_trial.py"
    file.write_text(content)
    assert Run("made", [stage_of(file)], folder).to_its_end() == status
    printed = capfd.readouterr().out
    assert said in printed
    assert ("second tries:" in printed) == (content in (UNSTEADY, ALWAYS))


@pytest.mark.slow
def test_a_turn_that_holds_none_of_a_stages_tests_is_well(folder):
    file = folder / "test_trial.py"
    file.write_text(ALWAYS)
    none = stage_of(file, choice=Choice(("another",)))
    assert Run("made", [none], folder).to_its_end() == PASSED


def test_what_only_computes_has_no_second_try_and_fails_the_run_beside_which_it_runs(folder, capfd):
    bad = Stage("bad", ("sh", "-c", "echo of its own; exit 3"), beside=True)
    assert Run("made", [bad, Stage("good", ("true",))], folder).to_its_end() == FAILED
    printed = capfd.readouterr().out
    assert "of its own\n" in printed
    assert "ended with 3, beside" in printed
    assert "second tries" not in printed
