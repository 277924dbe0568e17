"""Every kind that comes with haptera fits a datagram, whatever modules a site names."""

from haptera.daemon.parts import catalog_of, codec_of
from haptera.modules import BUNDLED


def test_what_all_bundled_modules_declare_can_be_told() -> None:
    catalog = catalog_of(tuple(BUNDLED), ())
    assert codec_of(catalog).schema is not None
