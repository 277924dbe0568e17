"""Which image nodes should run for the jobs that ask: by example, and by seed."""

import random
from dataclasses import replace

import pytest

from haptera.modules.slurm.personalities import PersonalityHost, PersonalityPolicy, wanted_images
from haptera.modules.slurm.personality import (
    PersonalityMemory,
    PersonalitySettings,
    asked_for,
)
from haptera.modules.slurm.shapes import SlurmJob
from haptera.sdk import Controller, HapteraError

POLICY = PersonalityPolicy("a", {"b": 2, "c": 1}, idle_s=60.0)
TURNS = 200


def asking(partition, state, reason, features="", nodes=1):
    return SlurmJob(1, "j", state, reason, None, "", partition, features, nodes)


def idle(name, image="a", since=0.0):
    return PersonalityHost(name, image, image, idle_since=since)


def busy(name, image="a"):
    return PersonalityHost(name, image, image, has_jobs=True)


def test_free_nodes_are_given_the_image_that_jobs_wait_for_and_no_more_than_may():
    hosts = [busy("n1"), idle("n2"), idle("n3"), idle("n4")]
    assert wanted_images(POLICY, hosts, {"b": 1}, 1.0) == {"n2": "b"}
    assert wanted_images(POLICY, hosts, {"b": 9}, 1.0) == {"n2": "b", "n3": "b"}
    assert wanted_images(POLICY, hosts, {"b": 9, "c": 9}, 1.0) == {
        "n2": "b",
        "n3": "b",
        "n4": "c",
    }


def test_a_node_with_a_job_or_that_is_not_known_to_run_what_it_should_is_left_alone():
    hosts = [busy("n1"), PersonalityHost("n2", "a", None, idle_since=0.0)]
    assert wanted_images(POLICY, hosts, {"b": 1}, 1.0) == {}


def test_nodes_on_their_way_and_idle_ones_count_for_the_jobs_that_wait():
    on_its_way = PersonalityHost("n1", "b", None, has_jobs=True)
    assert wanted_images(POLICY, [on_its_way, idle("n2")], {"b": 1}, 1.0) == {}
    assert wanted_images(POLICY, [busy("n1", "b"), idle("n2")], {"b": 1}, 1.0) == {"n2": "b"}
    assert wanted_images(POLICY, [idle("n1", "b"), idle("n2")], {"b": 1}, 999.0) == {}


def test_who_idles_long_enough_goes_back_the_longest_first():
    hosts = [idle("n1", "b", since=5.0), idle("n2", "b", since=0.0), busy("n3", "c")]
    assert wanted_images(POLICY, hosts, {}, 59.0) == {}
    assert wanted_images(POLICY, hosts, {"b": 1}, 99.0) == {"n2": "a"}
    assert wanted_images(POLICY, hosts, {}, 99.0) == {"n1": "a", "n2": "a"}


def test_who_waits_for_jobs_to_get_an_image_that_nobody_asks_for_any_more_keeps_the_base():
    waits = PersonalityHost("n1", "b", None, has_jobs=True, waits=True)
    assert wanted_images(POLICY, [waits], {"b": 1}, 1.0) == {}
    assert wanted_images(POLICY, [waits], {}, 1.0) == {"n1": "a"}


def test_what_has_no_image_or_refused_it_gets_the_base():
    hosts = [PersonalityHost("n1", None, None), PersonalityHost("n2", "b", None, refused=True)]
    assert wanted_images(POLICY, hosts, {}, 1.0) == {"n1": "a", "n2": "a"}
    assert wanted_images(POLICY, [PersonalityHost("n1", "a", None, refused=True)], {}, 1.0) == {}


def test_an_image_that_did_not_run_on_one_node_is_not_tried_on_another_for_half_an_hour():
    memory = PersonalityMemory()

    def wanted(hosts, now):
        asked = memory.untried({"b": 1, "c": 1}, hosts, now)
        return wanted_images(POLICY, hosts, asked, now)

    failed, after = [PersonalityHost("n1", "b", None, refused=True), idle("n2")], [idle("n2")]
    assert wanted(failed, 0.0) == {"n1": "a", "n2": "c"}
    assert wanted(after, 1_799.0) == {"n2": "c"}
    assert wanted(after, 1_800.0) == {"n2": "b"}


def test_an_image_that_is_in_no_policy_is_given_back_once_its_node_idles():
    assert wanted_images(POLICY, [idle("n1", "old")], {"old": 1}, 99.0) == {"n1": "a"}
    assert wanted_images(POLICY, [busy("n1", "old")], {}, 99.0) == {}


def test_of_waiting_jobs_those_count_that_need_nothing_but_nodes_which_there_may_be():
    jobs = [
        asking("all", "PENDING", "Resources", "image:b", 2),
        asking("other,all", "PENDING", "ReqNodeNotAvail", "gpu&image:c"),
        asking("all", "PENDING", "JobHeldUser", "image:c"),
        asking("all", "PENDING", "Resources", "image:c", 2),  # one at most may be
        asking("other", "PENDING", "Resources", "image:b"),
        asking("all", "PENDING", "Resources", "image:b|image:c"),
        asking("all", "PENDING", "Resources", "image:a"),
        asking("all", "PENDING", "Resources"),
        asking("all", "COMPLETED", "None", "image:b"),
        asking("all", "RUNNING", "None", "image:b"),
    ]
    assert asked_for(jobs, POLICY.limits, frozenset(["all"])) == {"b": 2, "c": 1}


@pytest.mark.parametrize("limits", [{"a": 1}, {"b": -1}, {"b": "many"}])
def test_a_policy_that_contradicts_itself_is_refused(limits):
    with pytest.raises(HapteraError):
        Controller("personality", settings=PersonalitySettings).settings(
            {"base": "a", "limits": limits}
        )


@pytest.mark.parametrize("seed", range(40))
def test_whatever_jobs_come_limits_hold_no_busy_node_is_touched_and_all_get_their_image(seed):
    rng = random.Random(seed)
    hosts = {f"n{at}": idle(f"n{at}") for at in range(rng.randint(3, 6))}
    queue = []
    ran = submitted = 0
    for turn in range(TURNS):
        now = turn * 10.0
        if turn < TURNS // 2 and rng.random() < 0.3:
            queue.append(rng.choice("bc"))
            submitted += 1
        for name, one in hosts.items():
            ends = one.has_jobs and rng.random() < 0.3
            if ends or (one.runs is None and rng.random() < 0.7):
                hosts[name] = idle(name, one.desired, now)
            elif one.runs in queue and one.idle_since is not None:
                queue.remove(one.runs)
                ran += 1
                hosts[name] = busy(name, one.desired)
        asked = {image: queue.count(image) for image in "bc"}
        for name, image in wanted_images(POLICY, list(hosts.values()), asked, now).items():
            assert not hosts[name].has_jobs
            hosts[name] = replace(hosts[name], desired=image, runs=None, idle_since=None)
        for image, limit in POLICY.limits.items():
            assert sum(one.desired == image for one in hosts.values()) <= limit
    assert (ran, queue) == (submitted, [])
    assert {one.runs for one in hosts.values()} == {"a"}
