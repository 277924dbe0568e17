"""Serial consoles of nodes that their BMCs bring over the network: an ipmitool for each."""

import re
from functools import partial
from typing import Final

from haptera.modules.console import ConsoleError, ConsoleRecord
from haptera.modules.effects import LoginError
from haptera.modules.ipmi.bmc import IpmiBmc
from haptera.modules.recorders import keep
from haptera.modules.terminal import record_terminal
from haptera.sdk import Target

_OPENED: Final = re.compile(rb"\[SOL Session operational[^\n]*\n")


def connect(target: Target) -> IpmiBmc:
    """The BMC of a node; from now on its console is recorded, if consoles are."""
    bmc = IpmiBmc(target)
    keep(target, bmc.address, partial(record_session, bmc))
    return bmc


async def record_session(bmc: IpmiBmc, record: ConsoleRecord) -> None:
    """Record one session of serial over LAN, until it ends.

    Raises:
        HapteraError: ipmitool is not installed.
        ConsoleError: the BMC begins no session.
        OSError: the record cannot be written.
    """
    try:
        bmc.check_patience()
    except LoginError as error:
        raise ConsoleError(str(error)) from None

    await record_terminal(bmc.program("sol", "activate"), opened, record)


def opened(words: bytes) -> bytes | None:
    r"""What follows the line by which ipmitool begins.

    >>> opened(b"[SOL Session operational.  Use ~? for help]\r\nit boots")
    b'it boots'
    """
    found = _OPENED.search(words)
    return None if found is None else words[found.end() :]
