"""What people write down: the site file, and the changes that it asks for."""

from haptera.config.changes import changes, site_changes
from haptera.config.site import Site, SiteEntity, load_site, parse_site

__all__ = ["Site", "SiteEntity", "changes", "load_site", "parse_site", "site_changes"]
