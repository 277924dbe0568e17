"""The processes of modules and controllers: forked, confined, spoken to in frames."""
