"""Which reasons are one reason, whichever node it is that has it."""

THE_NODE = "the node"
# What may stand before a node's name, and what stands before `the node` for it.
_SIGNS = {"node:": "", "node ": "", "@": " on "}


def cause(why: str | None, node: str | None) -> str:
    """Why, with `the node` where it names the entity's own.

    >>> cause("the agent of n1 is silent, not that of n12", "n1")
    'the agent of the node is silent, not that of n12'
    >>> cause("the budget of node n1 allows 1 at once: node:n1, service:web@n1", "n1")
    'the budget of the node allows 1 at once: the node, service:web on the node'
    """
    if why is None or node is None or node not in why:
        return why or ""
    told, begin = [], 0
    while (at := why.find(node, begin)) >= 0:
        end = at + len(node)
        apart = not (_joins(why[at - 1 : at]) or _joins(why[end : end + 1]))
        told += [_before(why[begin:at]), THE_NODE] if apart else [why[begin:at], node]
        begin = end
    return "".join([*told, why[begin:]])


def _before(text: str) -> str:
    """What stands before a node's name, without what only a name needs."""
    for sign, instead in _SIGNS.items():
        if text.endswith(sign):
            return f"{text.removesuffix(sign)}{instead}"
    return text


def _joins(character: str) -> bool:
    """Whether a name goes on with this."""
    return character.isalnum() or character in ("_", "-")
