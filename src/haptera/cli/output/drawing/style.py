"""How a drawing looks: its colours on light pages and on dark ones."""

from string import Template
from typing import Final

LIGHT: Final = {
    "paper": "#ffffff",
    "frame": "#d9dfe5",
    "ink": "#1f2933",
    "faint": "#66727f",
    "box": "#f4f6f8",
    "edge": "#8a96a3",
    "line": "#65727f",
    "now": "#1d4ed8",
    "here": "#dfeafe",
    "goal": "#15803d",
    "there": "#ddf7e5",
    "harm": "#c2410c",
}
DARK: Final = {
    "paper": "#14181d",
    "frame": "#39424c",
    "ink": "#e4e8ec",
    "faint": "#98a3ae",
    "box": "#20262d",
    "edge": "#76828e",
    "line": "#98a3ae",
    "now": "#7aa7ff",
    "here": "#172a52",
    "goal": "#4ade80",
    "there": "#12331f",
    "harm": "#fb923c",
}
SHAPES: Final = """\
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.head,.value,.tag,.taken{font-weight:600}
.memory{font-style:italic}
.line{fill:none;stroke-width:1.2}
.look{stroke-dasharray:5 4}
.chain{stroke-width:2.6}
.hoped{stroke-dasharray:2 4}
.now,.goal,.passed{stroke-width:2}
.inner{fill:none}
"""
COLOURS: Final = Template("""\
text{fill:$ink}
.faint,.memory{fill:$faint}
.paper{fill:$paper;stroke:$frame}
.halo{fill:$paper}
.box{fill:$box;stroke:$edge}
.inner{stroke:$goal}
.box.goal{fill:$there;stroke:$goal}
.box.now{fill:$here;stroke:$now}
.box.passed{stroke:$now}
.line{stroke:$line}
.tip{fill:$line}
.line.disruptive{stroke:$harm}
.tip.disruptive,.harm{fill:$harm}
.line.chain{stroke:$now}
.tip.chain,.tag,.taken{fill:$now}
""")


def style() -> str:
    """The style sheet that every drawing carries."""
    dark = f"@media (prefers-color-scheme:dark){{\n{COLOURS.substitute(DARK)}}}\n"
    return f"{SHAPES}{COLOURS.substitute(LIGHT)}{dark}"
