"""A problem in, a plan with its reasons out; pure, usable alone.

`docs/reference/planner.md` shows it; `docs/reference/semantics.md` says exactly what is a plan.
"""

from haptera.model.chain import Chain, Do, Find, NoChain, Reason, ReasonKind
from haptera.model.parts import ANY, Change, Look, Requirement, Step
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.problem import Problem, check, check_values
from haptera.planner.planner import next_part, plan
from haptera.planner.search.search_budget import SearchBudget

__all__ = [
    "ANY",
    "Chain",
    "Change",
    "Do",
    "Domain",
    "Find",
    "Look",
    "NoChain",
    "Problem",
    "Reason",
    "ReasonKind",
    "Requirement",
    "SearchBudget",
    "Step",
    "check",
    "check_values",
    "compile_class",
    "next_part",
    "plan",
]
