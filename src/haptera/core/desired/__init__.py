"""Who may change what; changes checked, proposed and written."""
