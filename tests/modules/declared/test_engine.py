"""A declared module under the real engine: what it asks of a platform, and what comes of that."""

import asyncio
from dataclasses import replace

from haptera.model.answers.views import Condition
from haptera.modules.declared.module import made
from haptera.sdk import Policy
from haptera.testing.bench import Bench
from tests.modules.declared.platform_terms import KINDS_WITH_BOX, FakePlatform, answer, terms


def bench(platform: FakePlatform) -> Bench:
    return Bench(made("boxes", terms(), platform), {}, settings={}, kinds=KINDS_WITH_BOX)


def test_what_is_desired_comes_about_over_the_api() -> None:
    platform = FakePlatform()

    view = asyncio.run(bench(platform).settle({"run": "serving", "version": "2"}))

    assert view.condition is Condition.CONVERGED
    changes = [one for one in platform.asked if not one.startswith("GET")]
    assert changes == ["POST /api/boxes/bench/boot", "PUT /api/boxes/bench/version"]
    assert platform.box["version"] == "2"


def test_a_failed_update_is_rolled_back_and_why_has_the_platforms_words() -> None:
    platform = FakePlatform()
    platform.bad = {"2"}

    view = asyncio.run(bench(platform).settle({"run": "serving", "version": "2"}, within_s=120))

    assert view.condition is not Condition.CONVERGED
    assert platform.asked.count("POST /api/boxes/bench/back") >= 1
    assert "layer 3" in str(view.why)


def test_an_update_that_is_given_up_is_not_begun_again_once_it_is_rolled_back() -> None:
    platform = FakePlatform()
    platform.bad = {"2"}
    twice = Policy(2, backoff_ms=1_000, backoff_ms_max=1_000, cool_down_ms=1_800_000)
    module = made("boxes", terms(), platform)
    module._steps["update"] = replace(module._steps["update"], policy=twice)
    wished = {"run": "serving", "version": "2"}

    on = Bench(module, {}, settings={}, kinds=KINDS_WITH_BOX)
    view = asyncio.run(on.settle(wished, within_s=600))

    assert platform.asked.count("PUT /api/boxes/bench/version") == 2
    assert platform.box["state"] == "SERVING"
    assert "layer 3 is wrong" in str(view.why)


def test_a_platform_that_refuses_is_quoted_and_does_not_break_the_engine() -> None:
    busy = answer({"error": {"message": "the disk\x1b[2J is full"}}, 409)
    platform = FakePlatform(lambda one: busy if one.method == "POST" else None)

    view = asyncio.run(bench(platform).settle({"run": "serving"}, within_s=30))

    assert view.condition is not Condition.CONVERGED
    assert "it answers 409 Conflict: the disk [2J is full" in str(view.why)


def test_both_looks_are_answered_by_one_request() -> None:
    platform = FakePlatform()
    platform.box |= {"state": "SERVING", "version": "2"}

    asyncio.run(bench(platform).settle({"run": "serving", "version": "2"}))

    assert platform.asked == ["GET /api/boxes"]
