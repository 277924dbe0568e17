"""Entities as people name them: a node by its name alone."""

from haptera.model.entity import is_name


def entity_named(text: str) -> str:
    """The entity that is meant where one has to be: `rack1n1` is `node:rack1n1`.

    >>> entity_named("rack1n1"), entity_named("service:web@rack1n1"), entity_named("rack1*")
    ('node:rack1n1', 'service:web@rack1n1', 'rack1*')
    """
    return f"node:{text}" if is_name(text) else text
