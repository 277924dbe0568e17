"""`status --watch`: the table again whenever something of it changed."""

import subprocess

import pytest

from haptera.cli.main import REFUSED, USAGE, run
from haptera.cli.verb import unwatched_of
from haptera.model.answers.views import BrakeView, Condition
from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId, node_id
from tests.api.serving import serving
from tests.cli.rig import command, until, watching
from tests.cli.test_commands import point_at
from tests.cli.test_help import EVERY

N1, N2 = node_id("n1"), node_id("n2")
POWERED = [
    one
    for node in (N1, N2)
    for one in (Declare(node, {}, "site"), SetDesired(node, "power", "on", "site"))
]

SITE = """\
cluster: quick
nodes: {"n[1-2]": {}}
desired: {"n[1-2]": {power: on}}
"""
# What these are asked about.
ABOUT = {"get": ["node:n1"], "chain": ["node:n1"], "debug": ["node:n1"], "diff": ["site.yaml"]}


def is_watched_as_a_table(verb):
    """So is what has --watch, where that is not --follow of a log."""
    options = {option for each in verb.params for option in each.opts}
    return {"--watch", "-o"} <= options and "--follow" not in options


WATCHED = [
    [*path, *ABOUT.get(path[0], [])] for path, one in EVERY.items() if is_watched_as_a_table(one)
]

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text(SITE)
    with serving(*POWERED) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        yield one


@pytest.mark.slow
def test_the_table_is_written_again_for_each_change_until_it_is_interrupted(cluster):
    with watching("status", "--watch", "n1") as lines:
        table = [next(lines) for _ in range(3)]
        assert table[1:] == ["node  converged  1      n1\n", "\n"]
        cluster.do(cluster.backend.say, N2, condition=Condition.STUCK, why="of no interest")
        cluster.do(cluster.backend.say, N1, condition=Condition.STUCK, why="a refusal")
        assert next(lines).startswith("WHAT ")
        assert next(lines) == "node  stuck      1      n1  a refusal\n"


def test_what_cannot_be_followed_is_told(cluster, capsys):
    assert run(["status", "--watch", "age(power)>1m"]) == REFUSED
    assert "an age, or a number, changes without an event" in capsys.readouterr().err


@pytest.mark.parametrize("verb", WATCHED)
def test_only_a_table_is_watched(cluster, verb, capsys):
    assert run([*verb, "--watch", "-o", "json"]) == USAGE
    assert "leave out -o, or use haptera watch -o json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["status", "--check"], "leave out --check"),
        (["get", "node:n1", "--at", "10m"], "or --at"),
        (["diff", "--at", "10m"], "or --at"),
        (["history", "--audit"], "leave out --audit"),
        (["history", "--all"], "`haptera watch` shows all events"),
        (["freeze", "n1", "-m", "new fans"], "leave SELECTOR out"),
    ],
)
def test_what_ends_or_is_past_is_not_watched(cluster, words, advice, capsys):
    assert run([*words, "--watch"]) == USAGE
    assert advice in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (["get", "node"], "node:n[1-2]  converged", "node:n2  stuck"),
        (["get", "node:n2"], "node:n2  converged", "node:n2  stuck"),
        (["why", "n[1-2]"], "all is as desired", "node:n2 is stuck"),
        (["chain", "node:n2"], "node:n2 is as desired", "node:n2 is stuck"),
    ],
)
def test_other_answers_are_written_again_too(cluster, words, before, after):
    with watching(*words, "--watch") as lines:
        until(lines, before)
        cluster.do(cluster.backend.say, N2, condition=Condition.STUCK, why="a refusal")
        until(lines, after)


FREEZE = EntityId("freeze", "f1", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "before", "change", "after"),
    [
        (
            ["diff", "site.yaml"],
            "nothing differs",
            [SetDesired(N2, "power", "off", "site")],
            "+node:n2 power=on",
        ),
        (
            ["diff", "site.yaml"],
            "nothing differs",
            [Undeclare(N2)],
            "+node:n2",
        ),
        (
            ["history", "n2"],
            "4 ",
            [SetDesired(N2, "power", "off", "site")],
            "5 ",
        ),
        (
            ["freeze"],
            "nothing is frozen",
            [
                Declare(FREEZE, {}, "user:bob"),
                SetDesired(FREEZE, "of", "n1", "user:bob"),
                SetDesired(FREEZE, "reason", "new fans", "user:bob"),
            ],
            "n1        thawed  user:bob  1         new fans",
        ),
    ],
)
def test_what_is_desired_is_shown_again_when_it_changes(cluster, words, before, change, after):
    with watching(*words, "--watch") as lines:
        until(lines, before)
        cluster.do(cluster.backend.write, *change)
        until(lines, after)


@pytest.mark.slow
def test_the_brake_and_tokens_are_shown_again_though_no_event_tells_of_them(
    cluster, monkeypatch, tmp_path
):
    def make(name):
        words = command("token", "make", name, "-o", "name")
        return subprocess.run(words, stdout=subprocess.PIPE, text=True).stdout.strip()

    point_at(cluster.url, "admin-token", monkeypatch, tmp_path)
    first = make("prometheus")
    with watching("brake", "--watch") as brake, watching("token", "list", "--watch") as tokens:
        until(brake, "the brake is off")
        cluster.backend.braked = BrakeView("15 of 20 nodes fell silent within 30 s", 240_000)
        until(brake, "the brake is on for 4 min more: 15 of 20 nodes fell silent")
        until(tokens, first)
        until(tokens, make("grafana"))


@pytest.mark.parametrize("option", ["--watch", "-w"])
def test_a_verb_without_watch_says_why_and_what_to_do(option, capsys):
    statuses, told = {}, {}
    unwatched = {
        " ".join(path): why for path, one in EVERY.items() if (why := unwatched_of(one)) is not None
    }
    for verb in unwatched:
        statuses[verb] = run([*verb.split(), option])
        words = " ".join(capsys.readouterr().err.split())
        told[verb] = words.partition(f"Error: {verb} has no --watch: ")[2]
    assert (statuses, told) == (dict.fromkeys(unwatched, USAGE), unwatched)


def test_a_node_that_is_not_there_is_not_watched(cluster, capsys):
    assert run(["watch", "n9"]) == REFUSED
    assert capsys.readouterr().err.startswith("error: no such node: n9\n")
