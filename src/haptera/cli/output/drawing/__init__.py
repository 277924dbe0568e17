"""Drawings of graphs: in words, as Mermaid, as DOT, and as SVG by Graphviz; pictures of rolls."""
