"""Parts that run programs: what their words are, what their status and output mean."""

import asyncio
import sys

import pytest

from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.modules.declared.module import kind_served, made
from haptera.modules.declared.texts import filled_path, filled_words
from haptera.sdk import HapteraError, Refused
from haptera.testing.bench import Bench
from tests.modules.declared.platform_terms import terms

# A strip of outlets with one file for each: what it says of one, and how it is switched.
SAYS = "import sys; print('OUTLET', sys.argv[1], 'is', open(sys.argv[2]).read())"
SWITCHES = """
import os, sys
assert os.environ["STRIP_TOKEN"] == "sesame", "who are you?"
open(sys.argv[2], "w").write(sys.argv[1])
"""


def strip(file, **changed):
    return terms(
        kind="outlet",
        kind_terms={"variables": {"power": ["off", "on"]}, "desired": {"at": "text"}},
        http=None,
        lists={},
        token_in="STRIP_TOKEN",
        looks={
            "look": {
                "of": "power",
                "run": [sys.executable, "-c", SAYS, "{name}", str(file)],
                "match": r"^OUTLET \S+ is (\w+)$",
                "values": {"0": "off", "1": "on"},
                **changed,
            }
        },
        steps={
            "switch_on": {
                "from": {"power": "off"},
                "to": {"power": "on"},
                "run": [sys.executable, "-c", SWITCHES, "1", str(file)],
                "within_s": 10,
            }
        },
    )


def settled(declaration, token="sesame"):
    kinds = {**KINDS, "outlet": kind_served(declaration)}
    bench = Bench(made("strip", declaration), {}, settings={"token": token}, kinds=kinds)
    return asyncio.run(bench.settle({"power": "on"}, within_s=60))


def test_an_outlet_is_switched_by_a_program_with_its_token_in_the_environment(tmp_path):
    file = tmp_path / "outlet"
    file.write_text("0")

    view = settled(strip(file))

    assert view.condition is Condition.CONVERGED
    assert file.read_text() == "1"


def test_a_program_that_fails_is_quoted_without_the_token(tmp_path):
    file = tmp_path / "outlet"
    file.write_text("0")

    view = settled(strip(file), token="other-token")

    assert "ends with status 1: AssertionError: who are you?" in str(view.error)
    assert "other-token" not in str(view)


def test_what_it_prints_without_a_match_is_no_value(tmp_path):
    file = tmp_path / "outlet"
    file.write_text("burnt\x1b[2J")

    view = settled(strip(file))

    assert "without a match" in str(view)
    assert "\x1b" not in str(view.why)


def test_a_status_may_be_the_value(tmp_path):
    by_status = {"match": None, "values": {}, "exit": {"0": "on", "1": "off"}}
    by_status["run"] = [sys.executable, "-c", "raise SystemExit(0)"]

    assert settled(strip(tmp_path / "x", **by_status)).condition is Condition.CONVERGED


@pytest.mark.parametrize("value", ["-oProxyCommand=id", "--", "-"])
def test_no_value_becomes_an_option(value):
    assert filled_words(["p", "--at={at}"], {"at": value}) == ["p", f"--at={value}"]
    with pytest.raises(Refused, match="as an option"):
        filled_words(["p", "{at}"], {"at": value})


@pytest.mark.parametrize("value", ["..", ".", ""])
def test_no_value_leads_to_another_path(value):
    with pytest.raises(Refused, match="no path below"):
        filled_path("/boxes/{at}/boot", {"at": value})
    assert filled_path("/boxes/{at}/", {"at": "a/../../x"}) == "/boxes/a%2F..%2F..%2Fx/"


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"run": ["{at}", "x"]}, "names no program"),
        ({"match": "("}, "no regular expression"),
        ({"match": "x"}, "not one group"),
        ({"get": "/x"}, "asks in no way, or in several"),
        ({"run": ["p", "{secret}"]}, "nothing is called {secret}"),
        ({"within_s": 0}, "out of bounds"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, changed, what):
    with pytest.raises(HapteraError, match=None) as error:
        made("strip", strip(tmp_path / "x", **changed))
    assert what in str(error.value)
