"""Where one entity stands, and what comes next."""
