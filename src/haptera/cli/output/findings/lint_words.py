"""Findings in words: what is so in an example, what comes of it, and what to do."""

from collections.abc import Iterator, Mapping

from haptera.model.answers.finding import Example, Finding

Values = Mapping[str, str]


def shown(finding: Finding) -> Iterator[str]:
    """The lines below what is wrong: the examples, and what to do."""
    for one in finding.examples:
        yield f"for example, {_example(one)}"
    if finding.fix is not None:
        yield f"do: {finding.fix}"


def _example(one: Example) -> str:
    given = {name: "none" if value is None else value for name, value in one.attributes.items()}
    where = f"with {_state(one.known, one.remembered)}{f' ({_listed(given)})' if given else ''}"
    if one.part is None:
        return where
    return f"{where}: {one.part} leads to {_state(one.known_after, one.remembered_after)}"


def _state(known: Values, remembered: Values) -> str:
    """What is known, and, with a question mark, what is remembered."""
    doubtful = {name: f"{value}?" for name, value in remembered.items()}
    return _listed({**known, **doubtful}) or "nothing known"


def _listed(values: Values) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(values.items()))
