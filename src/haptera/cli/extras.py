"""What an installation may lack: a node has neither the client's packages nor the server's."""

from typing import Final

from haptera.model.errors import Code, HapteraError

EXTRAS: Final = {
    **dict.fromkeys(("h11", "yaml", "rich"), "cli"),
    **dict.fromkeys(("prometheus_client", "starlette", "uvicorn"), "parent"),
}


def lacking(error: ModuleNotFoundError) -> HapteraError:
    """Which extra to install.

    Raises:
        ModuleNotFoundError: it is in no extra, so somebody's code is wrong.
    """
    package, dot, _ = (error.name or "").partition(".")
    if package == "haptera" and dot:
        what = f"this needs {error.name}, which a node has no use for"
        do = "run it where haptera is installed whole"
        return HapteraError(what, do=do, code=Code.NOT_INSTALLED)
    if package not in EXTRAS:
        raise error
    what = f"this needs {package}, which is not installed here"
    return HapteraError(
        what, do=f"pip install 'haptera[{EXTRAS[package]}]'", code=Code.NOT_INSTALLED
    )
