"""The calls for numbers that machines report, as `calls` has all others."""

from haptera.client.call import ApiCall, path
from haptera.rest.samples import SamplesView, SeriesView


def samples(select: str | None = None, *, series: str | None = None) -> ApiCall[SamplesView]:
    """The last number of each series of what a selector means, or of all."""
    query = {"select": select, "series": series}
    found = {name: text for name, text in query.items() if text is not None}
    return ApiCall("GET", path("samples"), SamplesView, found)


def series(
    entity: str, name: str, *, last_s: int | None = None, step_s: int | None = None
) -> ApiCall[SeriesView]:
    """The measurements of one series; with a step, one point for each step."""
    query = {"last_s": last_s, "step_s": step_s}
    found = {name: str(one) for name, one in query.items() if one is not None}
    return ApiCall(
        "GET", path("entities", entity, "samples"), SeriesView, {"series": name, **found}
    )
