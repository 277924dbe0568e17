"""The calls for numbers that machines report, and for readings of others."""

from collections.abc import Iterable

from haptera.client.call import ApiCall, call
from haptera.rest import endpoints
from haptera.rest.readings import ReadingBody, ReadingsBody, ReadingsTaken
from haptera.rest.samples import SamplesView, SeriesView


def samples(
    select: str | None = None,
    *,
    series: str | None = None,
    highest: int | None = None,
    lowest: int | None = None,
) -> ApiCall[SamplesView]:
    """The last number of each series of what a selector means, or of all.

    Of one series, so many of the highest or lowest numbers, in order.
    """
    return call(endpoints.SAMPLES, select=select, series=series, highest=highest, lowest=lowest)


def series(
    entity: str, name: str, *, last_s: int | None = None, step_s: int | None = None
) -> ApiCall[SeriesView]:
    """The measurements of one series; with a step, one point for each step."""
    return call(endpoints.SERIES, entity, series=name, last_s=last_s, step_s=step_s)


def observe(source: str, readings: Iterable[ReadingBody]) -> ApiCall[ReadingsTaken]:
    """Report readings of entities that `source`, a program outside haptera, has made."""
    return call(endpoints.OBSERVE, body=ReadingsBody(source, [*readings]))
