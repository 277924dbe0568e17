"""What people type and confirm: options, completion, files of plans and problems."""
