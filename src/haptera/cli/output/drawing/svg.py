"""Drawings as pictures, laid out by Graphviz where it is installed."""

import shutil
import subprocess
from typing import Final

from haptera.cli.output.drawing.dot import dot
from haptera.model.answers.graph import DrawingView
from haptera.model.errors import Code, HapteraError

PROGRAM: Final = "dot"
# A drawing has 1,024 edges a graph at most: they take Graphviz some seconds.
WITHIN_S: Final = 60.0


def svg(drawing: DrawingView) -> str:
    """A drawing as SVG.

    Raises:
        HapteraError: Graphviz is not here, or cannot lay it out.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise HapteraError(
            "there is no Graphviz here to make a picture",
            where=f"the command {PROGRAM}",
            do="install it (apt install graphviz), or write the graph as text: -o mermaid, -o dot",
            code=Code.NOT_INSTALLED,
        )
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=dot(drawing).encode(),
            capture_output=True,
            timeout=WITHIN_S,
            check=True,
        )
    except subprocess.SubprocessError as error:
        do = "write the graph as text: -o mermaid, or -o dot"
        raise HapteraError(f"no picture was made: {error}", where=program, do=do) from None
    return done.stdout.decode()
