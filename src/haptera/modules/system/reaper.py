"""The first process of a system whose image has none: it hands signals on, and reaps.

A process that is left by its parent belongs to the first one, which the kernel lets nobody else
reap: a slurmd or a server in its place leaves a zombie for each, until there is room for no more.
Built by tools/system-init from tools/system-init.c: a thousand bytes that need no library.
"""

import base64
import zlib
from pathlib import Path
from typing import Final

from haptera.images.manifest import ImageManifest, command_places
from haptera.modules.regular import open_regular
from haptera.modules.system.bundle import SYSTEMD_STOP, inside

# Programs that are made to be the first process; whatever is no program, but a script, is none.
INITS: Final = frozenset(
    (
        *("systemd", "init", "sysvinit", "busybox", "openrc-init", "runit", "runit-init", "finit"),
        *("s6-svscan", "dinit", "tini", "tini-static", "dumb-init", "catatonit", "docker-init"),
    )
)
ELF: Final = b"\x7fELF"
_PROGRAMS: Final = {
    "amd64": (
        "eNqrd/VxY2JkZIABJgY7BhBvA4MDmO8AFe9ggisBilkA1TkwsDAwg9WyMiADBxQ6A6oPRjMIQKjApyUpbAzEA6"
        "g2Bo/O5x7NTz68ALEdww0vOe7iALJcDQ84hjmGOoY47uEDckP3gmwL9uj87dOt79H53qPXReWDT2+Jyg+PzhAQ"
        "4aJywafzk0d3CYh+4HEcKP0fCPhZDS+5Gl7aYQHUvV8QbNs1flbPzoMerQdKE3YUAEV8Os/7dJ7z6TzFzwqxGq"
        "S/871P5zd+VqBWr96Q1wIevcUCHt3VAjusgfL8rB69pteAjB2goNqlDjb1PT/rjucgS+rBJkDMA7nyjeP+BpDP"
        "9toByd22YMUuKjc8ms/+d9wDMsBxH0if4SWP7hqVC3DP+3T+ADvVo/OY4QGghjcerd/qBD2a/wmWcANd5dP5Au"
        "ju164gD99wBfnxgEfnDbCzHwE1tR6oW+dpebD0QTdQZ+ch/m1Hmh/Vl7D1NjVArEr+AdHj0/kBbMvr7Yh4KclI"
        "VUjOz81NzEtRyE9TAHEzcxPTgYKJeXn5JQpJqQpFpXlcDAx6xRnFJUUliUkMeiWpFSUMekX5KYkliQxUAtxADA"
        "ofWJqCpd8NUH4bI6p6NC6DIFQMlkwdmKDpHyqggaZegQHTPGYs7oKle0kG/PYDAI/UuMo="
    ),
    "arm64": (
        "eNqtU01oE1EQ/nbfJiZt0QYFKwXzpBcPGjz24GEjKD14qeRetiY1HvJDskJRoU88enGroAhKtacuHoIgUlAIeN"
        "GbPEW9iJuEiNqTxwrpOm+zG5pQ0IMDw2O+me+beX8rZ8+f0zUNkel4ARU1YAaxGeKf9UEJYbNUZyIGI6iNYbeZ"
        "Q2sj5DUG/H6v+a6dj+PfbTJcPQYnCdz9zuB6THNbTHfbjLkdZrgGhCT1D0228LF37dVGl2oMTcgecX7chLMP5v"
        "bPdTiAWO2wMeIl3SxxvBV9w5sUcsv37ykNRq6TH9OFFNNCdgn/RlrcwPPdeY187aCQXyjfJj3VS+UCTdL7RPjj"
        "hLndScB5YsJR3PUJdmuNNN+FvTpGv56O5zYSQp7hSeftyBytA0I2x4V8TXi3DifAaPaoH08J+ZJyfhqbaeBXW+"
        "37zfzvJpBrsbgbaXGa6VkwayzAZvp7WBVcyKeEK+7Jnp/7Cmy1dvyclzY3B3NMoZaFnsLpuffB2Vw372i48UDN"
        "Red22C4W+MVKqWSV87yyxFV4uWRdItAqlys2Xyzw2pXy2OAetasXYCwf1aYn0gE2RX5ix/d5mD+kYvJZwqrqyW"
        "T3n3oYfxRDpl6s2zXbWkTGLizbyNQqecu2kCkUF5ZqVqmA/2Lj4UuN3mj0HxphfF8brjdG+KmQHz37Od0M1358"
        "fKR+RA5HRvjVkF/Vh39ZZIk99Nge+4r+4cxf+v8BGiTi1g=="
    ),
}


def reaper(architecture: str) -> bytes | None:
    """The program for a machine, by the name that images have for it; None where there is none."""
    packed = _PROGRAMS.get(architecture)
    return None if packed is None else zlib.decompress(base64.b64decode(packed))


def needs_reaper(manifest: ImageManifest, root: Path) -> bool:
    """True if the command of an image is none of the programs that are first processes.

    Raises:
        Refused: it is no file at all.
    """
    if manifest.stop_signal == SYSTEMD_STOP:
        return False
    found = next((one for place in command_places(manifest) if (one := inside(root, place))), None)
    if found is None or found.name not in INITS:
        return True
    with open_regular(found) as file:
        return file.read(len(ELF)) != ELF
