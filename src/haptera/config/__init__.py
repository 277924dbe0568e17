"""What people write down: site files, and the changes that they ask for."""

from haptera.config.changes import changes, site_changes
from haptera.config.site import Site, SiteEntity, load_site, parse_site
from haptera.config.sources import gather

__all__ = [
    "Site",
    "SiteEntity",
    "changes",
    "gather",
    "load_site",
    "parse_site",
    "site_changes",
]
