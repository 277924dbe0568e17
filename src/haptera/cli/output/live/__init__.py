"""Answers that stay current on a terminal: written anew at each change, or drawn as cells."""
