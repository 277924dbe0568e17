"""Which image each node should run by the jobs that ask for one: pure, and it remembers nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PersonalityPolicy:
    """`limits`: how many nodes may run each image but `base`; who idles for `idle_s` goes back."""

    base: str
    limits: Mapping[str, int]
    idle_s: float


@dataclass(frozen=True, slots=True)
class PersonalityHost:
    """One node: which image is desired of its system, and which one is known to run.

    `idle_since` is there while Slurm would begin a job on it and it has none. One that `waits`
    runs another image still, for a job's sake. On one that `refused`, what is desired does not run.
    """

    system: str
    desired: str | None
    runs: str | None
    has_jobs: bool = False
    idle_since: float | None = None
    waits: bool = False
    refused: bool = False


def wanted_images(
    policy: PersonalityPolicy,
    hosts: Sequence[PersonalityHost],
    asked: Mapping[str, int],
    now: float,
) -> dict[str, str]:
    """The systems that should desire another image; `asked`: nodes for waiting jobs.

    >>> policy = PersonalityPolicy("a", {"b": 1}, idle_s=60.0)
    >>> host = PersonalityHost("system:compute@n1", "a", "a", idle_since=0.0)
    >>> wanted_images(policy, [host], {"b": 2}, 1.0)
    {'system:compute@n1': 'b'}
    """
    base = policy.base
    wanted = {
        one.system: base
        for one in hosts
        if one.desired is None or (one.refused and one.desired != base)
    }
    rest = [one for one in hosts if one.system not in wanted]
    free = iter(
        [one for one in rest if one.desired == one.runs == base and one.idle_since is not None]
    )
    held = {one.desired for one in rest if one.desired is not None}
    for image in sorted({*policy.limits, *held} - {base}):
        holders = [one for one in rest if one.desired == image]
        busy = sum(one.has_jobs for one in holders if one.runs == image)
        target = min(policy.limits.get(image, 0), busy + asked.get(image, 0))
        # What is given back is free once it runs the base again, and not before.
        wanted |= {
            one.system: image for _, one in zip(range(target - len(holders)), free, strict=False)
        }
        spare = _spare(holders, policy.idle_s, now)[: max(0, len(holders) - target)]
        wanted |= dict.fromkeys(spare, base)
    return wanted


def _spare(holders: Iterable[PersonalityHost], idle_s: float, now: float) -> list[str]:
    """Whom nobody would miss: first who never got the image, then who idles longest."""
    holders = list(holders)
    idle = sorted(
        (one.idle_since, one.system)
        for one in holders
        if one.runs == one.desired and one.idle_since is not None and now - one.idle_since >= idle_s
    )
    return [one.system for one in holders if one.waits] + [name for _, name in idle]
