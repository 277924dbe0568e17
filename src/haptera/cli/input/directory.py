"""The option that says where a parent's state is."""

from pathlib import Path

import click

dir_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="here",
    help="The directory that holds the parent's .haptera/, all of its state.",
)
