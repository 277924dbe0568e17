"""Drawings of graphs: laid out, in words, as DOT and as SVG."""
