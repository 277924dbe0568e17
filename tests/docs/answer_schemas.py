"""The published schemas of what commands print as JSON: made of the code's types.

    python -m tests.docs.answer_schemas

writes them anew.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.cli.commands.inspect.chain import ChainForm
from haptera.cli.commands.inspect.watch import NotThere
from haptera.cli.commands.machines.health import HealthRuleForm, ToldForm
from haptera.cli.commands.module.check import CheckForm
from haptera.cli.commands.parent.secret import SecretView
from haptera.cli.commands.setup.ailments import Ailment
from haptera.cli.commands.site.check import SiteChecked
from haptera.cli.commands.site.import_ import Imported
from haptera.cli.output.findings.lint_forms import LintForm
from haptera.controllers.roll.timeline import RollTimeline
from haptera.kinds.brought import Brought
from haptera.minos.build import Inside
from haptera.model.answers.graph import DrawingView
from haptera.model.answers.past import Happened, Page, PastView
from haptera.model.answers.views import BrakeView, EntityDetail, EntityView
from haptera.modules.image.difference import ImageDifference
from haptera.rehearsal.finding import SearchedHistories
from haptera.rehearsal.summary import RehearsalSummary
from haptera.rest.jobs import HolderView, JobView, QueueView, Submitted
from haptera.rest.schemas import (
    AppliedView,
    Audit,
    Bulk,
    Difference,
    DifferenceView,
    Entities,
    Evicted,
    Exported,
    FreezeView,
    LogView,
    Overridden,
    Thawed,
    TokenMade,
    TokenView,
)
from haptera.rest.unclaimed import ClaimMade, Unclaimed

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs/reference"
DO: Final = "write it anew: python -m tests.docs.answer_schemas"
LINT, GRAPH, MODULE_CHECK = "lint.schema.json", "graph.schema.json", "module-check.schema.json"
VERBS: Final = "answers.schema.json"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
PUBLISHED: Final[dict[str, tuple[type[msgspec.Struct], str]]] = {
    LINT: (LintForm, "What `haptera module lint -o json` prints"),
    GRAPH: (DrawingView, "What `haptera graph -o json` prints"),
    MODULE_CHECK: (CheckForm, "What `haptera module check -o json` prints"),
}
# What a verb can answer, where it is not published by itself.
ANSWERS: Final[dict[str, tuple[Any, ...]]] = {
    "apply": (AppliedView,),
    "plan": (AppliedView,),
    "rehearse apply": (RehearsalSummary, SearchedHistories),
    "rehearse roll": (RehearsalSummary, SearchedHistories),
    "diff": (Difference, list[DifferenceView]),
    "export": (Exported,),
    "import ansible": (Imported,),
    "import clustershell": (Imported,),
    "import layercake": (Imported,),
    "import warewulf": (Imported,),
    "check": (SiteChecked,),
    "status": (Entities,),
    "why": (list[EntityDetail], list[EntityView], JobView, list[JobView]),
    "chain": (ChainForm,),
    "roll timeline": (RollTimeline,),
    "logs": (LogView,),
    "console": (LogView,),
    "get": (EntityView, list[EntityView], list[PastView], JobView, list[JobView]),
    "set": (EntityView, Bulk),
    "power": (EntityView, Bulk),
    "health": (list[EntityView],),
    "health rules": (list[HealthRuleForm],),
    "health test": (list[ToldForm],),
    "image diff": (ImageDifference,),
    "image list": (list[EntityView],),
    "image show": (EntityView,),
    "unset": (EntityView, Bulk),
    "retry": (list[str],),
    "history": (Page, tuple[Page, list[Happened]], Audit),
    "revert": (AppliedView,),
    "secret list": (list[SecretView],),
    "token certify": (TokenView,),
    "token list": (list[TokenView],),
    "token make": (TokenMade,),
    "token revoke": (list[TokenView],),
    "doctor": (list[Ailment],),
    "evict": (Evicted,),
    "unclaimed": (Unclaimed,),
    "claim": (ClaimMade,),
    "override": (Overridden,),
    "brake": (BrakeView,),
    "submit": (Submitted,),
    "jobs": (list[JobView],),
    "cancel": (list[JobView],),
    "queue": (QueueView,),
    "drain": (HolderView, list[HolderView]),
    "hold": (HolderView, list[HolderView]),
    "resume": (HolderView, list[HolderView]),
    "freeze": (FreezeView, list[FreezeView]),
    "thaw": (Thawed,),
    "watch": (EntityView, JobView, NotThere),
    "module list": (list[Brought],),
    "module reload": (EntityView, Bulk),
    "minos build": (Inside,),
    "minos show": (Inside,),
}


def made(file: str) -> dict[str, Any]:
    """The schema that this file should hold."""
    shape, title = PUBLISHED[file]
    _, components = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    return {
        "$schema": DIALECT,
        "title": title,
        "$ref": f"#/$defs/{shape.__name__}",
        "$defs": components,
    }


def made_of_verbs() -> dict[str, Any]:
    """The schema of all other answers, each called as its verb, with `-` for a space."""
    shapes = [one for some in ANSWERS.values() for one in some]
    told, components = msgspec.json.schema_components(shapes, ref_template="#/$defs/{name}")
    left = iter(told)
    verbs = {
        verb.replace(" ", "-"): {"anyOf": [next(left) for _ in some]}
        for verb, some in ANSWERS.items()
    }
    title = "What commands print with `-o json`: $defs has each by its verb"
    return {"$schema": DIALECT, "title": title, "$defs": {**verbs, **components}}


def text(file: str) -> str:
    schema = made_of_verbs() if file == VERBS else made(file)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in (*PUBLISHED, VERBS):
        (FOLDER / name).write_text(text(name), encoding="utf-8")
