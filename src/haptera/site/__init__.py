"""What people write down: site files, and the changes that they ask for."""

from haptera.site.apply.changes import changes
from haptera.site.apply.sites import Sites
from haptera.site.model.site import Site, SiteEntity, load_site, parse_site
from haptera.site.syntax.sources import gather

__all__ = [
    "Site",
    "SiteEntity",
    "Sites",
    "changes",
    "gather",
    "load_site",
    "parse_site",
]
