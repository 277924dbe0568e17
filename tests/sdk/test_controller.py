"""What a controller's author is handed: watches that hold the present, and refusals as errors."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from haptera.model.answers.views import Condition, DesiredView, EntityView
from haptera.model.news import News
from haptera.sdk import Changes, Cluster, Conflict, Controller, HapteraError
from haptera.wire import control
from haptera.wire.control import Answer, frame_of


@dataclass(frozen=True)
class Settings:
    count: int
    nodes: str = "*"


def view(name: str, why: str | None = None, owner: str | None = None) -> EntityView:
    desired = {} if owner is None else {"power": DesiredView("on", owner)}
    return EntityView(
        entity=f"node:{name}",
        kind="node",
        name=name,
        node=name,
        revision=1,
        attributes={},
        desired=desired,
        observed={},
        condition=Condition.IDLE,
        chain=[],
        since_ms=0,
        why=why,
    )


N1, N2, N3 = view("n1"), view("n2"), view("n3")


def told(
    *entities: EntityView,
    fresh: bool = False,
    cursor: str | None = "e.1",
    gone: tuple[str, ...] = (),
    **types: list[News],
) -> control.ControlTold:
    named = {f"node:{name}": some for name, some in types.items()}
    return control.ControlTold(1, fresh, list(entities), named, list(gone), cursor, 5)


def talk(
    hold: Callable[[Cluster[None]], Awaitable[Any]], *answers: Answer
) -> tuple[Any, list[str]]:
    """What comes of it where the daemon gives these answers; and what it was asked."""

    async def run() -> tuple[Any, list[str]]:
        asked: list[str] = []
        left = list(answers)

        def ask(frame: dict[str, Any]) -> None:
            asked.append(frame["op"])
            if left and frame["op"] != "unwatch":
                asyncio.get_running_loop().call_soon(cluster.take, frame_of(left.pop(0)))

        cluster: Cluster[None] = Cluster("mine", None, ask, float)
        async with asyncio.timeout(60):
            return await hold(cluster), asked

    return asyncio.run(run())


async def watched(cluster: Cluster[None], count: int) -> list[Changes]:
    watch = cluster.watch()
    found = [await anext(watch) for _ in range(count)]
    await watch.aclose()
    return found


def test_a_snapshot_is_told_once_it_is_whole_and_changes_are_added_to_it() -> None:
    changed = view("n1", why="it waits")
    found, asked = talk(
        lambda cluster: watched(cluster, 2),
        told(N1, N2, fresh=True, cursor=None),
        told(N3),
        told(changed, gone=("node:n2",), cursor="e.4", n1=[News.CONDITION]),
    )
    assert asked == ["watch", "next", "next", "unwatch"]
    now = {"node:n1": N1, "node:n2": N2, "node:n3": N3}
    assert found == [
        Changes(now, tuple(now), {}, (), fresh=True, cursor="e.1", revision=5),
        Changes(
            {"node:n1": changed, "node:n3": N3},
            ("node:n1",),
            {"node:n1": frozenset({News.CONDITION})},
            ("node:n2",),
            fresh=False,
            cursor="e.4",
            revision=5,
        ),
    ]


def test_a_snapshot_anew_replaces_all_even_in_the_middle_of_another() -> None:
    found, _ = talk(
        lambda cluster: watched(cluster, 2),
        told(N1, fresh=True),
        told(N2, fresh=True, cursor=None),
        told(N1, cursor=None),
        told(N3, fresh=True, cursor="e.9"),
    )
    assert [(one.fresh, list(one.now)) for one in found] == [
        (True, ["node:n1"]),
        (True, ["node:n3"]),
    ]


def test_what_is_read_in_slices_is_one_answer() -> None:
    found, asked = talk(
        lambda cluster: cluster.read("node:n*"),
        control.Views(1, [N1, N2], "node:n2", 5),
        control.Views(2, [N3], None, 5),
    )
    assert asked == ["read", "read"]
    assert found == {"node:n1": N1, "node:n2": N2, "node:n3": N3}


def test_a_refusal_is_an_error_and_a_conflict_one_of_its_own() -> None:
    def refused(*, conflict: bool) -> Answer:
        return control.WriteRefused(1, "power of node:n1 belongs to site", conflict)

    with pytest.raises(Conflict, match="belongs to site"):
        talk(lambda cluster: cluster.write({"node:n1": {}}), refused(conflict=True))
    with pytest.raises(HapteraError, match="belongs to site"):
        talk(lambda cluster: cluster.write({"node:n1": {}}), refused(conflict=False))
    with pytest.raises(HapteraError, match="out of turn"):
        talk(lambda cluster: cluster.write({}), control.Views(1, [], None, 5))


def test_a_value_is_ones_own_to_write_where_no_other_has_written_it() -> None:
    async def hold(cluster: Cluster[None]) -> list[bool]:
        owners = (None, cluster.owner, "site")
        return [cluster.may(view("n1", owner=owner), "power") for owner in owners]

    assert talk(hold)[0] == [True, True, False]


def test_settings_have_the_declared_shape() -> None:
    controller = Controller("keep", settings=Settings)
    assert controller.settings({"count": "3"}) == Settings(3)
    for given in ({}, {"count": "three"}, {"count": [3]}):
        with pytest.raises(HapteraError) as caught:
            controller.settings(given)
        assert caught.value.where == "settings of controller keep"


def test_a_controller_has_one_function() -> None:
    controller = Controller("keep", settings=Settings)
    with pytest.raises(HapteraError, match="does nothing"):
        _ = controller.function

    async def run(cluster: Cluster[Settings]) -> None:
        """Nothing."""

    assert controller.run(run) is controller.function
    with pytest.raises(HapteraError, match="has two functions"):
        controller.run(run)


def test_what_the_daemon_may_not_say_is_an_error() -> None:
    cluster: Cluster[None] = Cluster("mine", None, lambda _: None, float)
    with pytest.raises(HapteraError, match="which means nothing"):
        cluster.take({"op": "do it"})
