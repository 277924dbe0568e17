"""What people write down: site files, and the changes that they ask for."""

from haptera.config.changes import changes
from haptera.config.site import Site, SiteEntity, load_site, parse_site
from haptera.config.sites import Sites
from haptera.config.sources import gather

__all__ = [
    "Site",
    "SiteEntity",
    "Sites",
    "changes",
    "gather",
    "load_site",
    "parse_site",
]
