"""Which reasons are one reason, whichever node it is that has it."""

THE_NODE = "the node"


def cause(why: str | None, node: str | None) -> str:
    """Why, told of `the node` where it names the entity's own.

    >>> cause("the agent of n1 is silent, not that of n12", "n1")
    'the agent of the node is silent, not that of n12'
    """
    if why is None or node is None or node not in why:
        return why or ""
    told, begin = [], 0
    while (at := why.find(node, begin)) >= 0:
        end = at + len(node)
        apart = not (_joins(why[at - 1 : at]) or _joins(why[end : end + 1]))
        told += [why[begin:at], THE_NODE if apart else node]
        begin = end
    return "".join([*told, why[begin:]])


def _joins(character: str) -> bool:
    """Whether a name goes on with this."""
    return character.isalnum() or character in ("_", "-")
